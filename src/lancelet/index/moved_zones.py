"""Zones whose rows are renamed: to which stretches of which fragments the rows of each went.

A zone keeps what is known of its values wherever its rows are, and may become several: one in each fragment that has
any of them. A stretch may hold rows of other zones, too; what is said of zones is what their rows may be, not must.
"""

from __future__ import annotations

import numpy as np

from lancelet.index.merging import Part, Remap
from lancelet.index.zones import ZonePlaces
from lancelet.rows.addresses import LARGEST, UInt64s
from lancelet.rows.row_sets import RowSet
from lancelet.rows.runs import Int64s, cut

__all__ = ["moved_zones", "nulls_within"]

#: Rows that are renamed at once.
_AT_ONCE = 2**18
_HALF, _LOW = np.uint64(32), np.uint64(LARGEST)


def moved_zones(part: Part, places: ZonePlaces) -> tuple[Int64s, ZonePlaces]:
    """The zones that those of a segment become, and which of its zones each is of; some become none, some many."""
    if part.remap is None:
        return np.arange(len(places)), places
    ends = np.cumsum(places.lengths.astype(np.int64))
    total = int(ends[-1]) if len(ends) else 0
    windows = [_window(part.remap, places, ends, at, min(at + _AT_ONCE, total)) for at in range(0, total, _AT_ONCE)]
    columns = [np.concatenate([np.empty(0, np.uint64), *column]) for column in zip(*windows, strict=True)]
    origins, fragments, lows, highs = columns or [np.empty(0, np.uint64)] * 4
    origins, fragments, lows, highs = _bounds(origins, fragments, lows, highs)
    return origins.astype(np.int64), ZonePlaces(fragments, lows, highs - lows + np.uint64(1))


def _window(remap: Remap, places: ZonePlaces, ends: Int64s, begin: int, stop: int) -> tuple[UInt64s, ...]:
    """Of some rows, counted through all zones: zone, fragment, and the first and last offset that they have now."""
    pieces = cut(ends, np.array([begin]), np.array([stop]))
    zones = np.repeat(pieces.run, pieces.lengths).astype(np.uint64)
    first = (places.fragments[pieces.run] << _HALF) + places.starts[pieces.run] + pieces.skipped.astype(np.uint64)
    before = np.cumsum(pieces.lengths) - pieces.lengths
    within = np.arange(stop - begin) - np.repeat(before, pieces.lengths)
    names, kept = remap(np.repeat(first, pieces.lengths) + within.astype(np.uint64))
    names, zones = names[kept], zones[kept]
    return _bounds(zones, names >> _HALF, names & _LOW, names & _LOW)


def _bounds(zones: UInt64s, fragments: UInt64s, lows: UInt64s, highs: UInt64s) -> tuple[UInt64s, ...]:
    """The smallest and largest offset of each zone in each fragment."""
    order = np.lexsort((fragments, zones))
    zones, fragments, lows, highs = zones[order], fragments[order], lows[order], highs[order]
    changed = np.ones(len(zones), np.bool_)
    changed[1:] = (zones[1:] != zones[:-1]) | (fragments[1:] != fragments[:-1])
    starts = np.flatnonzero(changed)
    if not len(starts):
        return zones, fragments, lows, highs
    return zones[starts], fragments[starts], np.minimum.reduceat(lows, starts), np.maximum.reduceat(highs, starts)


def nulls_within(places: ZonePlaces, nulls: RowSet) -> Int64s:
    """How many of the rows that are null lie in each zone."""
    found = np.zeros(len(places), np.int64)
    columns = places.fragments.tolist(), places.starts.tolist(), places.lengths.tolist()
    for at, (fragment, start, length) in enumerate(zip(*columns, strict=True)):
        if fragment in nulls.fragments:
            bitmap = nulls.fragments[fragment]
            found[at] = length if bitmap is None else bitmap.range_cardinality(start, start + length)
    return found
