"""Searching a BITMAP index: the keys are loaded whole, the row sets of those that are asked for one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.errors import Corrupt, LanceletError
from lancelet.index.answers import Answer, Domain, Statistics
from lancelet.index.files import IndexFiles, StoredTable
from lancelet.index.order import Ascending, are_ascending
from lancelet.index.queries import Between, Equals, IsIn, IsNull, Query
from lancelet.index.sorting import sort_places
from lancelet.index.types import fits
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet, parse_row_set, union_all
from lancelet.rows.runs import Int64s
from lancelet.storage.objects import process_objects

__all__ = ["BITMAPS", "FILE", "KEYS", "BitmapIndex", "Keys"]

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
class BitmapIndex:
    """A BITMAP index, open."""

    files: IndexFiles
    value_type: pa.DataType
    domain: Domain
    kind: str = "BITMAP"

    def answers(self, query: Query) -> bool:
        """Equality, membership, ranges and nulls."""
        return fits(query, self.value_type)

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """Exact, always."""
        table = self.files.open(FILE)
        keys = self._keys(table)
        null_rows = self._union(table, keys.at(np.arange(keys.ordered.nulls))) if nulls else NO_ROWS
        match query:
            case IsNull():
                found = null_rows if nulls else self._union(table, keys.at(np.arange(keys.ordered.nulls)))
                return Answer(SelectionMask(found))
            case Equals() | IsIn() | Between():
                places = keys.at(places_of(keys.ordered, query))
                return Answer(SelectionMask(self._union(table, places), null_rows))
        raise TypeError(f"a BITMAP index is not asked {query}")

    def estimate(self, query: Query) -> int | None:
        """The rows themselves where few keys are meant; a share of all in proportion to the keys otherwise."""
        keys = self._keys(self.files.open(FILE))
        if not len(keys.ordered):
            return 0
        if isinstance(query, Equals | IsIn | Between) and not len(places_of(keys.ordered, query)):
            return 0
        return None

    def statistics(self) -> Statistics:
        """The number of keys, null among them."""
        return {"num_bitmaps": self.files.open(FILE).num_rows}

    def prewarm(self) -> None:
        """Load the keys, and the row sets as far as they fit."""
        table = self.files.open(FILE)
        self._keys(table)
        for start in range(0, table.num_rows, _AT_ONCE):
            list(self._sets(table, np.arange(start, min(start + _AT_ONCE, table.num_rows))))

    def _keys(self, table: StoredTable) -> Keys:
        return process_objects().get((table.uri, KEYS, str(self.value_type)), lambda: load_keys(table, self.value_type))

    def _union(self, table: StoredTable, rows: Int64s) -> RowSet:
        found = NO_ROWS
        for start in range(0, len(rows), _AT_ONCE):
            found = union_all([found, *self._sets(table, np.sort(rows[start : start + _AT_ONCE]))])
        return found

    def _sets(self, table: StoredTable, rows: Int64s) -> Iterator[RowSet]:
        """The row sets at some rows of the file, ascending; those that the cache lacks are read together."""
        cache = process_objects()
        missing = np.array([row for row in rows.tolist() if not cache.holds((table.uri, row))], np.int64)
        fresh = dict(zip(missing.tolist(), read_sets(table, missing), strict=True)) if len(missing) else {}
        for row in rows.tolist():

            def make(row: int = row) -> tuple[RowSet, int]:
                stored = fresh.get(row) or read_sets(table, np.array([row]))[0]
                return _parsed(stored, table.uri, row), len(stored) + 100

            yield cache.get((table.uri, row), make)


def read_sets(table: StoredTable, rows: Int64s) -> list[bytes]:
    """The stored row sets at some rows of the file, ascending."""
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


def load_keys(table: StoredTable, value_type: pa.DataType) -> tuple[Keys, int]:
    """The keys of a file and the memory they take. Corrupt where they are of another type than what is indexed."""
    keys = table.read([KEYS])[0]
    if keys.type != value_type:
        raise Corrupt(f"the index has keys of type {keys.type}, its column is {value_type}", uri=table.uri, column=KEYS)
    if are_ascending(keys):
        found = Keys(Ascending(keys), None)
    else:
        order = sort_places(keys)
        found = Keys(Ascending(keys.take(pa.array(order))), order)
    return found, found.ordered.nbytes + (0 if found.rows is None else found.rows.nbytes)


def places_of(keys: Ascending, query: Equals | IsIn | Between) -> Int64s:
    """Which of the values in order a query means."""
    match query:
        case Equals(value):
            ranges = keys.ranges(value, value)
        case IsIn(values):
            return keys.places(values)
        case Between(low, high, low_inclusive, high_inclusive):
            ranges = keys.ranges(low, high, low_inclusive=low_inclusive, high_inclusive=high_inclusive)
    return np.concatenate([np.arange(*one) for one in ranges])
