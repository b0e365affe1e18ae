"""Row sets by key, as BITMAP, LABEL_LIST and NGRAM indexes store them: keys loaded whole, row sets when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

__all__ = ["BITMAPS", "FILE", "KEYS", "Keys", "Layout", "StoredBitmaps"]

FILE = "bitmap_page_lookup.lance"
KEYS, BITMAPS = "keys", "bitmaps"
#: Stored bitmaps that are read at once.
_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Layout:
    """Where keys and their row sets stand, and what reads a row set."""

    file: str = FILE
    keys: str = KEYS
    sets: str = BITMAPS
    parse: Callable[..., RowSet] = parse_row_set


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
    layout: Layout = Layout()

    @property
    def table(self) -> StoredTable:
        """The open file."""
        return self.files.open(self.layout.file)

    def keys(self) -> Keys:
        """All values that occur."""
        table = self.table
        return process_objects().get(
            (table.uri, self.layout.keys, str(self.value_type)), lambda: self._load_keys(table)
        )

    def union(self, places: Int64s) -> RowSet:
        """The rows that have any of the values at some places of the order."""
        table, rows, found = self.table, self.keys().at(places), NO_ROWS
        for start in range(0, len(rows), _AT_ONCE):
            found = union_all([found, *_sets(table, self.layout, np.sort(rows[start : start + _AT_ONCE]))])
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
            for _ in _sets(table, self.layout, np.arange(start, min(start + _AT_ONCE, table.num_rows))):
                pass

    def _load_keys(self, table: StoredTable) -> tuple[Keys, int]:
        keys = table.read([self.layout.keys])[0]
        if keys.type != self.value_type:
            found = f"the index has keys of type {keys.type}, its column has {self.value_type}"
            raise Corrupt(found, uri=table.uri, column=self.layout.keys)
        if are_ascending(keys):
            loaded = Keys(Ascending(keys), None)
        else:
            order = sort_places(keys)
            loaded = Keys(Ascending(keys.take(pa.array(order))), order)
        return loaded, loaded.ordered.nbytes + (0 if loaded.rows is None else loaded.rows.nbytes)


def _sets(table: StoredTable, layout: Layout, rows: Int64s) -> Iterator[RowSet]:
    """The row sets at some rows of the file, ascending; those that the cache lacks are read together."""
    cache = process_objects()
    missing = np.array([row for row in rows.tolist() if not cache.holds((table.uri, row))], np.int64)
    fresh = dict(zip(missing.tolist(), _read(table, layout, missing), strict=True)) if len(missing) else {}
    for row in rows.tolist():

        def make(row: int = row) -> tuple[RowSet, int]:
            # What was there a moment ago may have made way for something else.
            stored = fresh[row] if row in fresh else _read(table, layout, np.array([row]))[0]
            return _parsed(stored, table.uri, layout, row), len(stored) + 100

        yield cache.get((table.uri, row), make)


def _read(table: StoredTable, layout: Layout, rows: Int64s) -> list[bytes]:
    if int(rows[-1]) - int(rows[0]) + 1 == len(rows):
        found = table.read([layout.sets], slice(int(rows[0]), int(rows[-1]) + 1))[0]
    else:
        found = table.read([layout.sets], rows)[0]
    if found.null_count:
        raise Corrupt("a bitmap of the index is null", uri=table.uri, column=layout.sets)
    sets: list[bytes] = found.to_pylist()
    return sets


def _parsed(stored: bytes, uri: str, layout: Layout, row: int) -> RowSet:
    try:
        return layout.parse(stored, what=f"row set {row}")
    except LanceletError as error:
        raise error.where(uri=uri, column=layout.sets) from None
