"""Row sets by value, as BITMAP and LABEL_LIST indexes store them: keys loaded whole, row sets when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.errors import Corrupt, LanceletError
from lancelet.index.files import IndexFiles, StoredTable
from lancelet.index.order import Ascending, are_ascending
from lancelet.index.sorting import sort_places
from lancelet.rows.row_sets import NO_ROWS, RowSet, parse_row_set, union_all
from lancelet.rows.runs import Int64s
from lancelet.storage.objects import process_objects

__all__ = ["BITMAPS", "FILE", "KEYS", "Keys", "StoredBitmaps"]

FILE = "bitmap_page_lookup.lance"
KEYS, BITMAPS = "keys", "bitmaps"
#: Stored bitmaps that are read at once.
_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Keys:
    """The values that occur, in order, and at which row of the file each stands."""

    ordered: Ascending
    #: None where the file has them in order.
    rows: Int64s | None

    def at(self, places: Int64s) -> Int64s:
        """The rows of the file at some places of the order."""
        return places if self.rows is None else self.rows[places]


@dataclass(frozen=True, slots=True)
class StoredBitmaps:
    """The file of an index over values of a type."""

    files: IndexFiles
    value_type: pa.DataType

    @property
    def table(self) -> StoredTable:
        """The open file."""
        return self.files.open(FILE)

    def keys(self) -> Keys:
        """All values that occur."""
        table = self.table
        return process_objects().get((table.uri, KEYS, str(self.value_type)), lambda: self._load_keys(table))

    def union(self, places: Int64s) -> RowSet:
        """The rows that have any of the values at some places of the order."""
        table, rows, found = self.table, self.keys().at(places), NO_ROWS
        for start in range(0, len(rows), _AT_ONCE):
            found = union_all([found, *_sets(table, np.sort(rows[start : start + _AT_ONCE]))])
        return found

    def nulls(self) -> RowSet:
        """The rows whose value is null."""
        return self.union(np.arange(self.keys().ordered.nulls))

    def each(self, places: Sequence[int]) -> Iterator[RowSet]:
        """The rows that have the value at each of some places."""
        for place in places:
            yield self.union(np.array([place]))

    def prewarm(self) -> None:
        """Load the keys, and the row sets as far as they fit."""
        table = self.table
        self.keys()
        for start in range(0, table.num_rows, _AT_ONCE):
            for _ in _sets(table, np.arange(start, min(start + _AT_ONCE, table.num_rows))):
                pass

    def _load_keys(self, table: StoredTable) -> tuple[Keys, int]:
        keys = table.read([KEYS])[0]
        if keys.type != self.value_type:
            found = f"the index has keys of type {keys.type}, its column has {self.value_type}"
            raise Corrupt(found, uri=table.uri, column=KEYS)
        if are_ascending(keys):
            loaded = Keys(Ascending(keys), None)
        else:
            order = sort_places(keys)
            loaded = Keys(Ascending(keys.take(pa.array(order))), order)
        return loaded, loaded.ordered.nbytes + (0 if loaded.rows is None else loaded.rows.nbytes)


def _sets(table: StoredTable, rows: Int64s) -> Iterator[RowSet]:
    """The row sets at some rows of the file, ascending; those that the cache lacks are read together."""
    cache = process_objects()
    missing = np.array([row for row in rows.tolist() if not cache.holds((table.uri, row))], np.int64)
    fresh = dict(zip(missing.tolist(), _read(table, missing), strict=True)) if len(missing) else {}
    for row in rows.tolist():

        def make(row: int = row) -> tuple[RowSet, int]:
            # What was there a moment ago may have made way for something else.
            stored = fresh[row] if row in fresh else _read(table, np.array([row]))[0]
            return _parsed(stored, table.uri, row), len(stored) + 100

        yield cache.get((table.uri, row), make)


def _read(table: StoredTable, rows: Int64s) -> list[bytes]:
    if int(rows[-1]) - int(rows[0]) + 1 == len(rows):
        found = table.read([BITMAPS], slice(int(rows[0]), int(rows[-1]) + 1))[0]
    else:
        found = table.read([BITMAPS], rows)[0]
    if found.null_count:
        raise Corrupt("a bitmap of the index is null", uri=table.uri, column=BITMAPS)
    sets: list[bytes] = found.to_pylist()
    return sets


def _parsed(stored: bytes, uri: str, row: int) -> RowSet:
    try:
        return parse_row_set(stored, what=f"bitmap {row}")
    except LanceletError as error:
        raise error.where(uri=uri, column=BITMAPS) from None
