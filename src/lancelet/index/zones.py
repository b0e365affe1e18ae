"""Zones: rows of one fragment that follow each other, so many to a zone; what indexes by zones have in common.

A zone counts the rows that lived when the index was built. In the file it is a range of physical offsets, deleted rows
between them included:

    fragment_id u64 | zone_start u64 | zone_length u64        null_bitmap: the addresses of all nulls, a global buffer
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import Corrupt, LanceletError
from lancelet.index.external_sort import IDS, VALUES
from lancelet.index.files import StoredTable
from lancelet.rows.addresses import LARGEST, UInt64s
from lancelet.rows.bitmaps import BitMap
from lancelet.rows.row_sets import NO_ROWS, RowSet, parse_row_set, union_all
from lancelet.rows.runs import Int64s

__all__ = ["NULL_BITMAP", "NullRows", "Zone", "ZonePlaces", "read_null_rows", "zones_of"]

#: The metadata that name the global buffer with the nulls.
NULL_BITMAP = "null_bitmap"
_COLUMNS = ("fragment_id", "zone_start", "zone_length")


@dataclass(frozen=True, slots=True)
class Zone:
    """The values of a zone while it is built, and where it lies."""

    values: pa.Array
    fragment: int
    start: int
    length: int


class NullRows:
    """The addresses of nulls, gathered while rows go by."""

    def __init__(self) -> None:
        self._parts: list[RowSet] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the nulls of the next rows."""
        values = batch.column(VALUES)
        if values.null_count:
            self._parts.append(RowSet.of(batch.column(IDS).to_numpy()[np.asarray(values.is_null())]))

    def watched(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Hand on rows whose nulls have been taken in."""
        for batch in rows:
            self.add(batch)
            yield batch

    def rows(self) -> RowSet:
        """All of them."""
        return union_all(self._parts)


def zones_of(rows: Iterable[pa.RecordBatch], size: int) -> Iterator[Zone]:
    """Rows in the order of their addresses, in zones of so many; the last zone of a fragment may be smaller."""
    waiting: list[pa.RecordBatch] = []
    count, fragment = 0, -1
    for batch in rows:
        for piece, owner in _by_fragment(batch):
            if owner != fragment and waiting:
                yield _zone(waiting, fragment)
                waiting, count = [], 0
            fragment = owner
            start = 0
            while start < piece.num_rows:
                part = piece.slice(start, size - count)
                waiting.append(part)
                count, start = count + part.num_rows, start + part.num_rows
                if count == size:
                    yield _zone(waiting, fragment)
                    waiting, count = [], 0
    if waiting:
        yield _zone(waiting, fragment)


def _by_fragment(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
    fragments = batch.column(IDS).to_numpy() >> np.uint64(32)
    cuts = np.flatnonzero(fragments[1:] != fragments[:-1]) + 1
    bounds = [0, *cuts.tolist(), batch.num_rows]
    for start, stop in pairwise(bounds):
        if start < stop:
            yield batch.slice(start, stop - start), int(fragments[start])


def _zone(parts: list[pa.RecordBatch], fragment: int) -> Zone:
    values = [part.column(VALUES) for part in parts]
    first = parts[0].column(IDS)[0].as_py() & LARGEST
    last = parts[-1].column(IDS)[parts[-1].num_rows - 1].as_py() & LARGEST
    return Zone(values[0] if len(values) == 1 else pa.concat_arrays(values), fragment, first, last - first + 1)


@dataclass(frozen=True, slots=True)
class ZonePlaces:
    """Where the zones of an index lie."""

    fragments: UInt64s
    starts: UInt64s
    lengths: UInt64s

    @staticmethod
    def read(table: StoredTable) -> ZonePlaces:
        """The places that a file holds. Corrupt where they are none."""
        columns = []
        for name, column in zip(_COLUMNS, table.read(_COLUMNS), strict=True):
            if column.null_count or not pa.types.is_integer(column.type):
                raise Corrupt(f"column {name!r} of the index is no column of whole numbers", uri=table.uri, column=name)
            columns.append(np.asarray(column).astype(np.uint64))
        places = ZonePlaces(*columns)
        ends = places.starts + places.lengths
        if len(ends) and (int(ends.max()) > LARGEST + 1 or int(places.fragments.max()) > LARGEST):
            raise Corrupt("a zone of the index lies beyond all addresses", uri=table.uri)
        return places

    def __len__(self) -> int:
        return len(self.fragments)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.fragments.nbytes + self.starts.nbytes + self.lengths.nbytes

    def arrays(self) -> tuple[UInt64s, UInt64s, UInt64s]:
        """Fragments, starts and lengths."""
        return self.fragments, self.starts, self.lengths

    def columns(self) -> dict[str, pa.Array]:
        """As a file has them."""
        return dict(zip(_COLUMNS, map(pa.array, self.arrays()), strict=True))

    def rows(self, kept: npt.NDArray[np.bool_]) -> RowSet:
        """The rows of some of the zones."""
        bitmaps: dict[int, BitMap | None] = {}
        places: Int64s = np.flatnonzero(kept)
        starts, ends = self.starts[places], self.starts[places] + self.lengths[places]
        for fragment, start, end in zip(self.fragments[places].tolist(), starts.tolist(), ends.tolist(), strict=True):
            bitmap = bitmaps.setdefault(fragment, BitMap())
            if bitmap is not None and start < end:
                bitmap.add_range(start, end)
        return RowSet(bitmaps)


def read_null_rows(table: StoredTable) -> RowSet | None:
    """The addresses of all nulls; None where the index does not list them."""
    stored = table.buffer(NULL_BITMAP)
    if stored is None:
        return None
    try:
        return parse_row_set(stored, what="null bitmap") if stored else NO_ROWS
    except LanceletError as error:
        raise error.where(uri=table.uri) from None
