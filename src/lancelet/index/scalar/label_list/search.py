"""Searching a LABEL_LIST index: row sets of items, joined for any of them, intersected for all.

A null item is an item like others: lists may be asked for it. Only of a list that is null nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.errors import LanceletError
from lancelet.index.answers import Answer, Domain, Statistics
from lancelet.index.files import IndexFiles
from lancelet.index.order import Ascending
from lancelet.index.queries import HasAll, HasAny, IsNull, Query
from lancelet.index.scalar.bitmap.stored import StoredBitmaps
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet, parse_row_set
from lancelet.rows.runs import Int64s

__all__ = ["NULL_LISTS", "LabelListIndex"]

#: The metadata that name the global buffer with the rows whose list is null.
NULL_LISTS = "lance:label_list_nulls"


@dataclass(frozen=True, slots=True)
class LabelListIndex:
    """A LABEL_LIST index, open."""

    files: IndexFiles
    value_type: pa.DataType
    domain: Domain
    kind: str = "LABEL_LIST"

    @property
    def stored(self) -> StoredBitmaps:
        """Its file."""
        return StoredBitmaps(self.files, self.value_type.value_type)

    def answers(self, query: Query) -> bool:
        """Whether lists hold any, or all, of some items; and whether they are null."""
        match query:
            case HasAny(values) | HasAll(values):
                return bool(values.type == self.value_type.value_type and len(values))
        return isinstance(query, IsNull)

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """Exact, except where an old index does not say which lists are null."""
        null_lists = self._null_lists() if nulls or isinstance(query, IsNull) else NO_ROWS
        match query:
            case IsNull():
                if null_lists is None:
                    # A list without items has no entries either.
                    return Answer(SelectionMask(NO_ROWS, inverted=True), exact=False)
                return Answer(SelectionMask(null_lists))
            case HasAny(values):
                found = self.stored.union(_places(self.stored.keys().ordered, values))
            case HasAll(values):
                found = self._all(values)
            case _:
                raise TypeError(f"a LABEL_LIST index is not asked {query}")
        return Answer(SelectionMask(found, null_lists or NO_ROWS), exact=null_lists is not None)

    def estimate(self, query: Query) -> int | None:
        """The rows themselves: their sets are small beside the lists."""
        return len(self.search(query, nulls=False).mask.listed)

    def statistics(self) -> Statistics:
        """The number of different items."""
        return {"num_bitmaps": self.stored.table.num_rows}

    def prewarm(self) -> None:
        """Load the items, and the row sets as far as they fit."""
        self.stored.prewarm()

    def _all(self, values: pa.Array) -> RowSet:
        ordered, found = self.stored.keys().ordered, None
        for value in values.unique():
            rows = self.stored.union(_places(ordered, pa.repeat(value, 1)))
            found = rows if found is None else found & rows
            if not found:
                return NO_ROWS
        return found or NO_ROWS

    def _null_lists(self) -> RowSet | None:
        table = self.stored.table
        data = table.buffer(NULL_LISTS)
        if data is None:
            return None
        try:
            return parse_row_set(data, what="set of null lists")
        except LanceletError as error:
            raise error.where(uri=table.uri) from None


def _places(keys: Ascending, values: pa.Array) -> Int64s:
    """Which of the items in order are meant; null is the first, if there is any."""
    found = keys.places(values.drop_null())
    return np.concatenate([np.arange(keys.nulls), found]) if values.null_count else found
