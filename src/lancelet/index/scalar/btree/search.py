"""Searching a BTREE index: the lookup tells which pages, a search in the first and last of them which rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.errors import Corrupt
from lancelet.index.answers import Answer, Domain, Statistics
from lancelet.index.display import as_text
from lancelet.index.files import IndexFiles, StoredTable
from lancelet.index.order import Ascending, are_ascending, holds_nan
from lancelet.index.queries import Between, Equals, IsIn, IsNull, Query
from lancelet.index.scalar.btree.lookup import LOOKUP, PAGES, Lookup, load_lookup
from lancelet.index.types import fits
from lancelet.rows.addresses import UInt64s
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet
from lancelet.rows.runs import Int64s
from lancelet.storage.objects import process_objects

__all__ = ["IDS", "VALUES", "BTreeIndex"]

VALUES, IDS = "values", "ids"
#: So many pages at most go through the cache for one query; rows of longer ranges are read past it.
_CACHED_PAGES = 16
#: Rows read at a time past the cache.
_WINDOW_ROWS = 2**20


@dataclass(frozen=True, slots=True)
class _Page:
    values: Ascending
    ids: UInt64s


@dataclass(frozen=True, slots=True)
class BTreeIndex:
    """A BTREE index, open."""

    files: IndexFiles
    value_type: pa.DataType
    domain: Domain
    kind: str = "BTREE"

    def answers(self, query: Query) -> bool:
        """Equality, membership, ranges and nulls."""
        return fits(query, self.value_type)

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """Exact, always."""
        match query:
            case IsNull():
                return Answer(SelectionMask(self._nulls()))
            case Equals(value):
                found = self._between(Between(value, value))
            case Between():
                found = self._between(query)
            case IsIn(values):
                found = self._in(values)
            case _:
                raise TypeError(f"a BTREE index is not asked {query}")
        return Answer(SelectionMask(found, self._nulls() if nulls else NO_ROWS))

    def estimate(self, query: Query) -> int | None:
        """Rows of the pages within the range; the pages at its ends count half."""
        lookup = self._lookup()
        match query:
            case IsNull():
                return int(lookup.null_counts.sum())
            case Equals(value):
                first, last = lookup.pages(value, value)
                return max((last - first - 1) * lookup.page_rows, int(last > first))
            case Between(low, high, low_inclusive, high_inclusive):
                first, last = lookup.pages(low, high, low_inclusive=low_inclusive, high_inclusive=high_inclusive)
                return (last - first) * lookup.page_rows // (2 if last - first < 3 else 1)
            case IsIn(values):
                return len(values)
        return None

    def bound(self, count: int, *, largest: bool) -> pa.Scalar | None:
        """A value that so many rows do not exceed or, if ``largest``, do not fall below; None where pages do not tell.

        Rows that were deleted since count as well, so that fewer may be left.
        """
        lookup = self._lookup()
        if not lookup.in_order:
            return None
        held = lookup.page_rows - lookup.null_counts[lookup.all_null :]
        enough = np.cumsum(held[::-1] if largest else held) >= count
        if not enough.any():
            return None
        place = int(enough.argmax())
        value = lookup.smallest[len(held) - 1 - place] if largest else lookup.largest[place]
        return value if value.is_valid else None

    def statistics(self) -> Statistics:
        """Pages, and the smallest and largest value as text."""
        lookup = self._lookup()
        smallest, largest = lookup.smallest, lookup.largest
        return {
            "min": as_text(smallest[0] if len(smallest) else None),
            "max": as_text(largest[-1] if len(largest) else None),
            "num_pages": len(lookup.numbers),
        }

    def prewarm(self) -> None:
        """Load every page, as far as the cache has room."""
        table = self.files.open(PAGES)
        lookup = self._lookup()
        for place in range(len(lookup.numbers)):
            self._page(lookup, place, table)

    def _lookup(self) -> Lookup:
        uri = self.files.uri(LOOKUP)
        return process_objects().get(
            (uri, "lookup", str(self.value_type)), lambda: load_lookup(self.files.open(LOOKUP), self.value_type)
        )

    def _nulls(self) -> RowSet:
        lookup = self._lookup()
        if not lookup.null_counts.any():
            return NO_ROWS

        def make() -> tuple[RowSet, int]:
            table = self.files.open(PAGES)
            # Nulls come first in each page, and pages of nothing else before all others.
            pieces = [
                self._ids(table, _rows(lookup, place, table).start, int(lookup.null_counts[place]))
                for place in lookup.null_pages().tolist()
            ]
            found = RowSet.of(np.concatenate(pieces))
            return found, 16 * sum(len(piece) for piece in pieces)

        return process_objects().get((self.files.uri(PAGES), "nulls"), make)

    def _between(self, query: Between) -> RowSet:
        lookup = self._lookup()
        bounds = query.low, query.high, query.low_inclusive, query.high_inclusive
        first, last = lookup.pages(
            query.low, query.high, low_inclusive=query.low_inclusive, high_inclusive=query.high_inclusive
        )
        pieces: list[UInt64s] = []
        if holds_nan(*bounds, self.value_type):
            # NaNs with a minus sign come first in the file, and count as the largest all the same.
            start, stop = lookup.first_pages()
            places = [place for place in range(start, stop) if not first <= place < last]
            pieces = [_within(self._page(lookup, place), query) for place in places]
        if not lookup.in_order or last - first <= _CACHED_PAGES:
            pieces += [_within(self._page(lookup, place), query) for place in range(first, last)]
        else:
            pieces += self._span(lookup, first, last, query)
        if not pieces:
            return NO_ROWS
        return RowSet.of(pieces[0] if len(pieces) == 1 else np.concatenate(pieces))

    def _span(self, lookup: Lookup, first: int, last: int, query: Between) -> list[UInt64s]:
        """The rows of a long range: its first and last page are searched, those between are taken whole."""
        table = self.files.open(PAGES)
        head, tail = self._page(lookup, first, table), self._page(lookup, last - 1, table)
        start, stop = _rows(lookup, first + 1, table).start, _rows(lookup, last - 1, table).start
        inner = [self._ids(table, begin, min(_WINDOW_ROWS, stop - begin)) for begin in range(start, stop, _WINDOW_ROWS)]
        return [_within(head, query), *inner, _within(tail, query)]

    def _in(self, values: pa.Array) -> RowSet:
        lookup = self._lookup()
        by_page = _values_by_page(lookup, values)
        pieces = []
        for place, wanted in by_page.items():
            page = self._page(lookup, place)
            pieces.append(page.ids[page.values.places(values.take(pa.array(wanted)))])
        return RowSet.of(np.concatenate(pieces)) if pieces else NO_ROWS

    def _page(self, lookup: Lookup, place: int, opened: StoredTable | None = None) -> _Page:
        """A page; the file that holds it is opened, if it is not yet, where the cache does not have the page."""
        number = int(lookup.numbers[place])

        def make() -> tuple[_Page, int]:
            table = self.files.open(PAGES) if opened is None else opened
            values, ids = table.read([VALUES, IDS], _rows(lookup, place, table))
            if values.type != self.value_type:
                found = f"the index has values of type {values.type}, its column is {self.value_type}"
                raise Corrupt(found, uri=table.uri, column=VALUES)
            if not are_ascending(values):
                raise Corrupt(
                    f"the values of page {number} of the index are not in order", uri=table.uri, column=VALUES
                )
            page = _Page(Ascending(values), _ids_of(ids, table))
            return page, page.values.nbytes + page.ids.nbytes

        return process_objects().get((self.files.uri(PAGES), number), make)

    def _ids(self, table: StoredTable, start: int, count: int) -> UInt64s:
        return _ids_of(table.read([IDS], slice(start, start + count))[0], table)


def _rows(lookup: Lookup, place: int, table: StoredTable) -> slice:
    start = int(lookup.numbers[place]) * lookup.page_rows
    if start >= table.num_rows:
        found = f"the index names page {lookup.numbers[place]}, its pages have {table.num_rows} rows in all"
        raise Corrupt(found, uri=table.uri)
    return slice(start, min(start + lookup.page_rows, table.num_rows))


def _ids_of(ids: pa.Array, table: StoredTable) -> UInt64s:
    if ids.null_count or ids.type != pa.uint64():
        raise Corrupt("rows of the index are not 64-bit numbers", uri=table.uri, column=IDS)
    found: UInt64s = ids.to_numpy()
    return found


def _within(page: _Page, query: Between) -> UInt64s:
    ranges = page.values.ranges(
        query.low, query.high, low_inclusive=query.low_inclusive, high_inclusive=query.high_inclusive
    )
    pieces = [page.ids[start:stop] for start, stop in ranges]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _values_by_page(lookup: Lookup, values: pa.Array) -> dict[int, Int64s]:
    """For each page that may hold any of the values, which of them."""
    found: dict[int, list[int]] = {}
    for at, value in enumerate(values):
        places = set(range(*lookup.pages(value, value)))
        if holds_nan(value, value, True, True, values.type):
            places |= set(range(*lookup.first_pages()))
        for place in places:
            found.setdefault(place, []).append(at)
    return {place: np.array(wanted, np.int64) for place, wanted in sorted(found.items())}
