"""Blobs of rows: from rows of a dataset to the objects that hold their bytes, whatever files the rows lie in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.file.blob_file import BlobFile, BlobLocation
from lancelet.file.blob_reader import BlobReader
from lancelet.format.fields import Field, Schema
from lancelet.query.blob_outputs import is_blob
from lancelet.query.blob_values import BlobReaders
from lancelet.query.request import ROW_ADDRESS, ROW_ID
from lancelet.query.take import Numbers, RowsBy, numbers_of, take
from lancelet.schema.paths import parse_field_path

if TYPE_CHECKING:
    from lancelet.dataset.core import DatasetCore

__all__ = ["BlobRows", "blob_field_at", "blob_rows", "read_ranges"]

_Ints: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class BlobRows:
    """A blob column of some rows: where each row is, and what is stored of its blob."""

    dataset: DatasetCore
    field: Field
    addresses: npt.NDArray[np.uint64]
    descriptors: pa.Array

    def open(self, buffer_size: int) -> list[BlobFile | None]:
        """A lazy file for each row, None for nulls."""
        found: list[BlobFile | None] = [None] * len(self.addresses)
        for reader, rows in self._readers():
            files = reader.open(self.descriptors.take(pa.array(rows)), buffer_size=buffer_size)
            for row, file in zip(rows.tolist(), files, strict=True):
                found[row] = file
        return found

    def locations(self) -> list[BlobLocation | None]:
        """Where the bytes of each row are, None for nulls."""
        found: list[BlobLocation | None] = [None] * len(self.addresses)
        for reader, rows in self._readers():
            for row, place in zip(rows.tolist(), reader.locations(self.descriptors.take(pa.array(rows))), strict=True):
                found[row] = place
        return found

    def read(self, window_bytes: int | None) -> Iterator[tuple[int, bytes | None]]:
        """The number and the bytes of each row, None for nulls, fragment by fragment."""
        for reader, rows in self._readers():
            values = reader.read_blobs(self.descriptors.take(pa.array(rows)), window_bytes=window_bytes)
            yield from zip(rows.tolist(), values, strict=True)

    def _readers(self) -> Iterator[tuple[BlobReader, _Ints]]:
        """A reader for each fragment that has any of the rows, and which of them."""
        dataset = self.dataset
        readers = BlobReaders(dataset.places, dataset.location.options, dataset.location.storage_options)
        fragments = self.addresses >> np.uint64(32)
        for number in np.unique(fragments).tolist():
            reader = readers.of(number, self.field)
            if reader is None:
                # The column was added later: all its values here are null.
                continue
            yield reader, np.flatnonzero(fragments == number)


def blob_field_at(schema: Schema, column: str) -> Field:
    """The blob field at a path; InvalidInput where there is none, or where it is no blob."""
    fields: Sequence[Field] = schema.fields
    found: Field | None = None
    for name in parse_field_path(column):
        found = next((item for item in fields if item.name == name), None)
        if found is None:
            hint = f"there are: {', '.join(item.name for item in schema.fields)}"
            raise InvalidInput(f"there is no column {column!r}", column=column, hint=hint)
        fields = found.children
    if found is None or not is_blob(found):
        raise InvalidInput("the column holds no blobs", column=column)
    return found


def blob_rows(dataset: DatasetCore, column: str, rows: Numbers, by: RowsBy) -> BlobRows:
    """A blob column of some rows, in their order; InvalidInput where one of them is not there."""
    snapshot = dataset.snapshot
    field = blob_field_at(snapshot.schema, column)
    numbers = numbers_of(rows)
    table = take(snapshot, numbers, [column, ROW_ADDRESS, ROW_ID], by=by, places=dataset.places)
    if table.num_rows < len(numbers):
        known = table[ROW_ID if by is RowsBy.ID else ROW_ADDRESS].to_numpy()
        missing = int(np.setdiff1d(numbers, known)[0])
        raise InvalidInput(f"{by.value} {missing} was deleted, or never was", uri=dataset.uri, version=snapshot.version)
    return BlobRows(dataset, field, table[ROW_ADDRESS].to_numpy(), below(table, column))


def below(table: pa.Table, column: str) -> pa.Array:
    """The column at a path, which may lead into structs."""
    first, *steps = parse_field_path(column)
    found = table[first].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    for step in steps:
        # Flattened children are null where the struct is.
        found = found.flatten()[found.type.get_field_index(step)]
    return found


def read_ranges(places: Sequence[BlobLocation | None], ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
    """A range of each blob, None for nulls; the ranges of one object are read together."""
    found: list[bytes | None] = [None] * len(places)
    groups: dict[tuple[int, str], list[int]] = {}
    sized: list[BlobLocation | None] = []
    for number, (place, (offset, length)) in enumerate(zip(places, ranges, strict=True)):
        sized.append(None if place is None else place.sized())
        if place is None:
            continue
        size = sized[number].size or 0  # type: ignore[union-attr]
        if offset < 0 or length < 0 or offset + length > size:
            raise InvalidInput(
                f"request {number} asks for bytes {offset:,}..{offset + length:,} of a blob with {size:,}"
            )
        groups.setdefault((id(place.store), place.path), []).append(number)
    for numbers in groups.values():
        first = sized[numbers[0]]
        assert first is not None
        pieces = [(sized[number].position + ranges[number][0], ranges[number][1]) for number in numbers]  # type: ignore[union-attr]
        for number, piece in zip(numbers, first.store.read(first.path, pieces), strict=True):
            found[number] = bytes(piece)
    return found
