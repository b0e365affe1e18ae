"""The upper layer of a BTREE index: the smallest and largest value of each page, and which pages a query may need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.errors import Corrupt, Unsupported
from lancelet.index.files import StoredTable
from lancelet.index.order import Ascending, are_ascending
from lancelet.rows.runs import Int64s

__all__ = ["LOOKUP", "PAGES", "PAGE_ROWS", "Lookup", "load_lookup"]

LOOKUP, PAGES = "page_lookup.lance", "page_data.lance"
#: Rows of a page where the file does not say otherwise.
PAGE_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is known of the pages of an index without reading one."""

    #: Rows of each page but the last.
    page_rows: int
    #: The number of each page in the order of the lookup.
    numbers: Int64s
    null_counts: Int64s
    #: Pages of nothing but nulls; they come first.
    all_null: int
    #: Of the others; a page with nulls has a null for its smallest value.
    smallest: pa.Array
    largest: pa.Array
    _largest: Ascending | None
    _smallest: Ascending | None

    @property
    def in_order(self) -> bool:
        """Whether the values of each page come behind those of the page before, in the file too."""
        return self._largest is not None

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return 2 * int(self.smallest.nbytes + self.largest.nbytes) + self.numbers.nbytes + self.null_counts.nbytes

    def pages(
        self,
        low: pa.Scalar | None,
        high: pa.Scalar | None,
        *,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
    ) -> tuple[int, int]:
        """The first and behind the last place of the pages that may hold values within bounds.

        NaNs with a minus sign are left out, which come before all values: :meth:`first_pages` are theirs.
        """
        if self._largest is None or self._smallest is None:
            return self.all_null, len(self.numbers)
        first = 0 if low is None else self._largest.span(low, None, low_inclusive=low_inclusive)[0]
        last = len(self.largest) if high is None else self._smallest.span(None, high, high_inclusive=high_inclusive)[1]
        # A page that begins with nulls, or such a NaN, may hold any value up to its largest.
        last = max(last, self._smallest.first)
        return self.all_null + first, self.all_null + max(first, last)

    def first_pages(self) -> tuple[int, int]:
        """The first and behind the last place of the pages that may begin with NaNs with a minus sign."""
        if self._smallest is None:
            return self.all_null, self.all_null
        return self.all_null, self.all_null + self._smallest.first

    def null_pages(self) -> Int64s:
        """The places of the pages that hold nulls."""
        return np.flatnonzero(self.null_counts > 0)


def load_lookup(table: StoredTable, value_type: pa.DataType) -> tuple[Lookup, int]:
    """The lookup that a file holds, and the memory it takes. Corrupt where it does not fit the column."""
    if table.metadata.get("range_partitioned", "false") != "false":
        raise Unsupported("the index has its pages in files by range", uri=table.uri, hint="build it again")
    smallest, largest, counts, numbers = table.read(["min", "max", "null_count", "page_idx"])
    if smallest.type != value_type or largest.type != value_type:
        found = f"the index is over {smallest.type}, its column is {value_type}"
        raise Corrupt(found, uri=table.uri, column="min")
    if counts.null_count or numbers.null_count:
        raise Corrupt("a page of the index has no number or no count of nulls", uri=table.uri)
    page_rows = table.number("batch_size", PAGE_ROWS)
    if page_rows < 1:
        raise Corrupt(f"pages of the index have {page_rows} rows", uri=table.uri)
    null_counts = np.asarray(counts).astype(np.int64)
    places = np.asarray(numbers).astype(np.int64)
    all_null = largest.null_count
    if all_null and largest[:all_null].null_count != all_null:
        raise Corrupt("pages of nulls stand behind others in the index", uri=table.uri, column="max")
    smallest, largest = smallest[all_null:], largest[all_null:]
    in_order = bool(np.array_equal(places, np.arange(len(places))))
    searchable = in_order and are_ascending(largest) and are_ascending(smallest)
    lookup = Lookup(
        page_rows,
        places,
        null_counts,
        all_null,
        smallest,
        largest,
        Ascending(largest) if searchable else None,
        Ascending(smallest) if searchable else None,
    )
    return lookup, lookup.nbytes
