"""Searching a BITMAP index: the row sets of the values that are meant, joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.index.answers import Answer, Domain, Statistics
from lancelet.index.files import IndexFiles
from lancelet.index.order import Ascending
from lancelet.index.queries import Between, Equals, IsIn, IsNull, Query
from lancelet.index.scalar.bitmap.stored import StoredBitmaps
from lancelet.index.types import fits
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS
from lancelet.rows.runs import Int64s

__all__ = ["BitmapIndex"]


@dataclass(frozen=True, slots=True)
class BitmapIndex:
    """A BITMAP index, open."""

    files: IndexFiles
    value_type: pa.DataType
    domain: Domain
    kind: str = "BITMAP"

    @property
    def stored(self) -> StoredBitmaps:
        """Its file."""
        return StoredBitmaps(self.files, self.value_type)

    def answers(self, query: Query) -> bool:
        """Equality, membership, ranges and nulls."""
        return fits(query, self.value_type)

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """Exact, always."""
        stored = self.stored
        if isinstance(query, IsNull):
            return Answer(SelectionMask(stored.nulls()))
        found = stored.union(_places(stored.keys().ordered, query))
        return Answer(SelectionMask(found, stored.nulls() if nulls else NO_ROWS))

    def estimate(self, query: Query) -> int | None:
        """Exact where few values are meant; only searching tells otherwise."""
        stored = self.stored
        ordered = stored.keys().ordered
        places = np.arange(ordered.nulls) if isinstance(query, IsNull) else _places(ordered, query)
        return len(stored.union(places)) if len(places) < 8 else None

    def statistics(self) -> Statistics:
        """The number of keys, null among them."""
        return {"num_bitmaps": self.stored.table.num_rows}

    def prewarm(self) -> None:
        """Load the keys, and the row sets as far as they fit."""
        self.stored.prewarm()


def _places(keys: Ascending, query: Query) -> Int64s:
    """Which of the values in order a query means."""
    match query:
        case Equals(value):
            ranges = keys.ranges(value, value)
        case IsIn(values):
            return keys.places(values)
        case Between(low, high, low_inclusive, high_inclusive):
            ranges = keys.ranges(low, high, low_inclusive=low_inclusive, high_inclusive=high_inclusive)
        case _:
            raise TypeError(f"a BITMAP index is not asked {query}")
    return np.concatenate([np.arange(*one) for one in ranges])
