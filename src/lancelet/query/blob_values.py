"""Bytes for descriptions of blobs: the rows of a scan in pieces whose blobs fit into memory, each blob fetched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.config import Options, default_options
from lancelet.errors import Corrupt, InvalidInput
from lancelet.file.blob_reader import BlobReader
from lancelet.file.blobs import BlobKind, parse_descriptors
from lancelet.format.fields import Field
from lancelet.query.blob_outputs import BlobOutput, holds_blobs, is_blob
from lancelet.rows.addresses import fragments_of
from lancelet.table.paths import Places

__all__ = ["BlobReaders", "blob_sizes", "bytes_type", "item_lengths", "relisted", "with_bytes"]

#: Bytes of blobs held at once unless the memory budget is small.
_WINDOW = 64 * 2**20

Sizes = npt.NDArray[np.int64]


class BlobReaders:
    """Readers of the blobs of one version, by the fragment that a row lies in and the field."""

    def __init__(
        self, places: Places, options: Options | None = None, storage_options: Mapping[str, str] | None = None
    ) -> None:
        self._places, self._storage_options = places, storage_options
        self._options = options or default_options()
        self.bases = {item.id: item.path for item in places.manifest.base_paths}

    @property
    def window(self) -> int:
        """Bytes of blobs to hold at once."""
        return min(_WINDOW, max(self._options.memory_budget // 8, 2**16))

    def of(self, fragment: int, field: Field) -> BlobReader | None:
        """The reader of a field's blobs in a fragment; None where the column was added later and all is null."""
        fragments = self._places.manifest.fragments
        place = fragments.place_of(fragment)
        if place is None:
            uri = self._places.base(None).uri
            raise Corrupt(f"rows lie in fragment {fragment}, which the version does not have", uri=uri)
        for item in fragments[place].files:
            if field.id in item.fields:
                store, path = self._places.data_file(item)
                return BlobReader(
                    store, path, bases=self.bases, storage_options=self._storage_options, options=self._options
                )
        return None


def with_bytes(
    tables: Iterable[pa.Table], outputs: Sequence[BlobOutput], schema: pa.Schema, readers: BlobReaders
) -> Iterator[pa.Table]:
    """The rows of tables, which have the row addresses as an additional last column, in pieces of bounded size."""
    for table in tables:
        for batch in table.combine_chunks().to_batches():
            yield from _pieces(batch, outputs, schema, readers)


def _pieces(
    batch: pa.RecordBatch, outputs: Sequence[BlobOutput], schema: pa.Schema, readers: BlobReaders
) -> Iterator[pa.Table]:
    addresses = batch.column(batch.num_columns - 1)
    if addresses.null_count:
        hint = "ask for descriptions, or leave deleted rows out"
        raise InvalidInput("the bytes of blobs in deleted rows are asked for", hint=hint)
    fragments = fragments_of(np.asarray(addresses).astype(np.uint64))
    sizes = np.zeros(batch.num_rows, np.int64)
    for blob in outputs:
        sizes += blob_sizes(blob.field, batch.column(blob.place))
    ends = np.cumsum(sizes)
    start = 0
    while start < batch.num_rows:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + readers.window, "right")))
        # A piece lies in one fragment.
        stop = start + int(np.argmin(np.append(fragments[start:stop] == fragments[start], False)))
        columns = [batch.column(place).slice(start, stop - start) for place in range(len(schema))]
        for blob in outputs:
            columns[blob.place] = _bytes(blob.field, columns[blob.place], int(fragments[start]), readers)
        yield pa.Table.from_arrays(columns, schema=schema)
        start = stop


def _bytes(field: Field, array: pa.Array, fragment: int, readers: BlobReaders) -> pa.Array:
    """A column, or a part of one, with bytes where it has descriptions."""
    if is_blob(field):
        kind, reader = bytes_type(field), readers.of(fragment, field)
        return pa.nulls(len(array), kind) if reader is None else reader.read_array(array).cast(kind)
    if pat.is_struct(array.type):
        below = {child.name: child for child in field.children}
        children = [
            _bytes(below[item.name], array.field(place), fragment, readers) for place, item in enumerate(array.type)
        ]
        fields = [
            item if item.type == child.type else pa.field(item.name, child.type)
            for item, child in zip(array.type, children, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if holds_blobs(field) and (pat.is_list(array.type) or pat.is_large_list(array.type)):
        return relisted(array, _bytes(field.children[0], array.flatten(), fragment, readers))
    return array


def bytes_type(field: Field) -> pa.DataType:
    """The type of a blob as bytes.

    >>> bytes_type(Field("b", "large_binary", metadata={"lance-encoding:blob": "true"}))
    DataType(large_binary)
    """
    return pa.binary() if field.logical_type == "binary" else pa.large_binary()


def relisted(array: pa.Array, items: pa.Array) -> pa.Array:
    """Lists of the same lengths with other items, given those of ``array.flatten()``.

    >>> relisted(pa.array([[1], None, [2, 3]]), pa.array(["a", "b", "c"])).to_pylist()
    [['a'], None, ['b', 'c']]
    """
    large = pat.is_large_list(array.type)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(item_lengths(array))))
    made = pa.LargeListArray if large else pa.ListArray
    mask = array.is_null() if array.null_count else None
    return made.from_arrays(pa.array(offsets, pa.int64() if large else pa.int32()), items, mask=mask)


def blob_sizes(field: Field, array: pa.Array) -> Sizes:
    """The bytes of blobs of each row; those of external objects count nothing, and neither does what has none."""
    nothing = np.zeros(len(array), np.int64)
    if is_blob(field):
        if not pat.is_struct(array.type):
            return nothing
        found = parse_descriptors(array)
        return np.where(found.kind == BlobKind.EXTERNAL, 0, found.size.astype(np.int64))
    if pat.is_struct(array.type):
        below: Mapping[str, Field] = {child.name: child for child in field.children}
        for place, item in enumerate(array.type):
            if item.name in below:
                nothing = nothing + blob_sizes(below[item.name], array.field(place))
        return nothing
    if holds_blobs(field) and (pat.is_list(array.type) or pat.is_large_list(array.type)):
        sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(blob_sizes(field.children[0], array.flatten()))))
        lengths = item_lengths(array)
        ends = np.cumsum(lengths)
        result: Sizes = sums[ends] - sums[ends - lengths]
        return result
    return nothing


def item_lengths(array: pa.Array) -> Sizes:
    """How many items each list has, none where it is null."""
    return np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
