"""Searching a ZONEMAP index: all zones that may hold what is asked for; the rows in them must be looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import Corrupt
from lancelet.index.answers import Answer, Domain, Statistics
from lancelet.index.files import IndexFiles, StoredTable
from lancelet.index.order import compare, extremes, holds_nan
from lancelet.index.queries import Between, Equals, IsIn, IsNull, Query
from lancelet.index.types import fits
from lancelet.index.zones import ZonePlaces, read_null_rows
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet
from lancelet.storage.objects import process_objects

__all__ = ["FILE", "ROWS_PER_ZONE", "ZoneMapIndex", "Zones", "read_zones"]

FILE = "zonemap.lance"
ROWS_PER_ZONE = 8192
Bools = npt.NDArray[np.bool_]
#: More values than this are asked for by the smallest and largest of them.
_MOST_VALUES = 1000


@dataclass(frozen=True, slots=True)
class Zones:
    """All that the file says, in memory."""

    low: pa.Array
    high: pa.Array
    null_counts: npt.NDArray[np.int64]
    nan_counts: npt.NDArray[np.int64]
    places: ZonePlaces
    #: None where nulls are known by zone only.
    nulls: RowSet | None
    #: Whether nothing is known of a zone's bounds, though it may hold values.
    unknown: Bools
    rows_per_zone: int


def read_zones(table: StoredTable, kind: pa.DataType) -> Zones:
    """All that the file of an index over a type says. Corrupt where it is over another."""
    low, high, null_counts, nan_counts = table.read(["min", "max", "null_count", "nan_count"])
    if low.type != kind or high.type != kind:
        raise Corrupt(f"the index is over {low.type}, its column is {kind}", uri=table.uri, column="min")
    places = ZonePlaces.read(table)
    nulls, nans = (np.asarray(counts).astype(np.int64) for counts in (null_counts, nan_counts))
    # No bounds mean nothing but nulls and NaNs, or a writer that knows no bounds of the type.
    missing = np.asarray(low.is_null()) & np.asarray(high.is_null())
    unknown = missing & (nulls + nans < places.lengths.astype(np.int64))
    rows = table.number("rows_per_zone", ROWS_PER_ZONE)
    return Zones(low, high, nulls, nans, places, read_null_rows(table), unknown, rows)


@dataclass(frozen=True, slots=True)
class ZoneMapIndex:
    """A ZONEMAP index, open. Its rows are always addresses."""

    files: IndexFiles
    value_type: pa.DataType
    kind: str = "ZONEMAP"
    domain: Domain = Domain.ADDRESSES

    def answers(self, query: Query) -> bool:
        """Equality, membership, ranges and nulls."""
        return fits(query, self.value_type)

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """Exact for nulls, if the index lists them; else the zones that may hold a row that is meant."""
        zones = self._zones()
        if isinstance(query, IsNull):
            if zones.nulls is not None:
                return Answer(SelectionMask(zones.nulls))
            return Answer(SelectionMask(zones.places.rows(zones.null_counts > 0)), exact=False)
        null_rows = zones.nulls if nulls and zones.nulls is not None else NO_ROWS
        return Answer(SelectionMask(zones.places.rows(self._kept(zones, query)), null_rows), exact=False)

    def estimate(self, query: Query) -> int | None:
        """The rows of the zones that would have to be looked at."""
        zones = self._zones()
        kept = zones.null_counts > 0 if isinstance(query, IsNull) else self._kept(zones, query)
        return int(zones.places.lengths[kept].sum())

    def statistics(self) -> Statistics:
        """Zones, and rows in each."""
        zones = self._zones()
        return {"num_zones": len(zones.places), "rows_per_zone": zones.rows_per_zone}

    def prewarm(self) -> None:
        """Load the file."""
        self._zones()

    def _zones(self) -> Zones:
        def make() -> tuple[Zones, int]:
            zones = read_zones(self.files.open(FILE), self.value_type)
            return zones, int(zones.low.nbytes + zones.high.nbytes) + zones.places.nbytes + 17 * len(zones.places)

        return process_objects().get((self.files.uri(FILE), "zones", str(self.value_type)), make)

    def _kept(self, zones: Zones, query: Query) -> Bools:
        match query:
            case Equals(value):
                return self._between(zones, Between(value, value))
            case Between():
                return self._between(zones, query)
            case IsIn(values) if len(values) <= _MOST_VALUES:
                found = np.zeros(len(zones.places), np.bool_)
                for value in values:
                    found |= self._between(zones, Between(value, value))
                return found
            case IsIn(values):
                return self._between(zones, _around(values))
        raise TypeError(f"a ZONEMAP index is not asked {query}")

    def _between(self, zones: Zones, query: Between) -> Bools:
        kept = np.ones(len(zones.places), np.bool_)
        if query.high is not None:
            kept &= compare(zones.low, query.high, "<=" if query.high_inclusive else "<")
        if query.low is not None:
            above = compare(zones.high, query.low, ">=" if query.low_inclusive else ">")
            # NaN for the largest hides what else there is.
            kept &= above | (zones.nan_counts > 0) | _nan(zones.high)
        kept &= np.asarray(zones.low.is_valid())
        bounds = query.low, query.high, query.low_inclusive, query.high_inclusive
        if holds_nan(*bounds, self.value_type):
            kept |= zones.nan_counts > 0
        found: Bools = kept | zones.unknown
        return found


def _around(values: pa.Array) -> Between:
    """The range from the smallest to the largest of some values."""
    low, high = extremes(values)
    open_end = pat.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())
    return Between(low[0] if low[0].is_valid else None, None if open_end else high[0])


def _nan(values: pa.Array) -> Bools:
    if not pat.is_floating(values.type):
        return np.zeros(len(values), np.bool_)
    return np.asarray(pc.is_nan(values).fill_null(False))
