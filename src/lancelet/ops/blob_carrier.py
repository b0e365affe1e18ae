"""Blobs carried to new files: descriptions as a scan hands them out become values again, a few bytes at a time.

What lies in data files and sidecars is read, and goes where the new file's writer puts it. References to external
objects stay references: below a base path of the table by the same base, else by the same URI.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import Corrupt
from lancelet.file.blob_columns import LOGICAL
from lancelet.file.blob_reader import BlobReader
from lancelet.file.blobs import BlobKind, parse_descriptors
from lancelet.format.blobs import is_blob_v1
from lancelet.format.fields import Field, Schema
from lancelet.query.blob_outputs import holds_blobs, is_blob
from lancelet.query.blob_values import BlobReaders, blob_sizes, bytes_type, relisted
from lancelet.rows.addresses import UInt64s, fragments_of
from lancelet.storage.paths import join_uri
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["BlobCarrier", "has_blobs"]


class BlobCarrier:
    """Brings blobs of one version of a table from where they lie."""

    def __init__(self, snapshot: Snapshot, places: Places) -> None:
        self._readers = BlobReaders(places, snapshot.options)
        self._fields = {item.name: item for item in snapshot.schema.fields if holds_blobs(item)}

    def batches(self, rows: pa.Table, addresses: UInt64s) -> Iterator[pa.RecordBatch]:
        """The rows with values for descriptions; ``addresses`` say whence each came, those of a fragment together."""
        names = [name for name in rows.column_names if name in self._fields]
        if not names:
            yield from rows.to_batches()
            return
        for start, stop in _runs(fragments_of(addresses)):
            fragment = int(addresses[start] >> np.uint64(32))
            for batch in rows.slice(start, stop - start).combine_chunks().to_batches():
                yield from self._of_fragment(fragment, batch, names)

    def _of_fragment(self, fragment: int, batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        sizes = np.zeros(batch.num_rows, np.int64)
        for name in names:
            sizes += blob_sizes(self._fields[name], batch.column(name))
        ends = np.cumsum(sizes)
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + self._readers.window, "right")))
            piece = batch.slice(start, stop - start)
            columns = [
                self._values(self._fields[name], piece.column(name), fragment) if name in names else piece.column(name)
                for name in piece.schema.names
            ]
            yield pa.record_batch(columns, names=piece.schema.names)
            start = stop

    def _values(self, field: Field, array: pa.Array, fragment: int) -> pa.Array:
        """A column, or a part of one, with values where it has descriptions."""
        if is_blob(field):
            # Blobs of the first kind may come as their values already.
            return self._payloads(field, array, fragment) if pat.is_struct(array.type) else array
        if pat.is_struct(array.type):
            below = {child.name: child for child in field.children}
            children = [
                self._values(below[item.name], array.field(place), fragment)
                if item.name in below
                else array.field(place)
                for place, item in enumerate(array.type)
            ]
            fields = [pa.field(item.name, child.type) for item, child in zip(array.type, children, strict=True)]
            return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(array))
        if holds_blobs(field) and (pat.is_list(array.type) or pat.is_large_list(array.type)):
            return relisted(array, self._values(field.children[0], array.flatten(), fragment))
        return array

    def _payloads(self, field: Field, array: pa.Array, fragment: int) -> pa.Array:
        reader = self._reader(field, fragment)
        if is_blob_v1(field):
            return reader.read_array(array).cast(bytes_type(field))
        found = parse_descriptors(array)
        outside = found.valid & (found.kind == BlobKind.EXTERNAL)
        there = pa.array(found.valid & ~outside)
        data = reader.read_array(pc.if_else(there, array, pa.scalar(None, array.type)))
        whole = ~outside | ((found.size == 0) & (found.position == 0))
        children = [
            data,
            pa.array(self._uris(found.uri, found.blob_id, outside), pa.string()),
            pa.array(found.position, mask=whole),
            pa.array(found.size, mask=whole),
        ]
        mask = None if found.valid.all() else pa.array(~found.valid)
        return pa.StructArray.from_arrays(children, fields=list(LOGICAL), mask=mask)

    def _uris(
        self, uri: pa.StringArray, base: npt.NDArray[np.uint32], outside: npt.NDArray[np.bool_]
    ) -> list[str | None]:
        # Few blobs are references, and their URIs are texts already.
        found: list[str | None] = [None] * len(uri)
        for row in np.flatnonzero(outside).tolist():
            name, number = uri[row].as_py(), int(base[row])
            found[row] = join_uri(self._readers.bases[number].rstrip("/"), name) if number else name
        return found

    def _reader(self, field: Field, fragment: int) -> BlobReader:
        found = self._readers.of(fragment, field)
        if found is None:
            raise Corrupt(f"no file of fragment {fragment} holds field {field.name!r}", fragment=fragment)
        return found


def has_blobs(schema: Schema) -> bool:
    """Whether a table has columns of blobs.

    >>> has_blobs(Schema((Field("x", "int8"),)))
    False
    """
    return any(map(is_blob, schema.walk()))


def _runs(values: npt.NDArray[np.uint32]) -> list[tuple[int, int]]:
    if not len(values):
        return []
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1]))).tolist()
    return list(zip(starts, [*starts[1:], len(values)], strict=True))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
