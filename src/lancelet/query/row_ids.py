"""From stable row ids to addresses: only fragments whose ids reach as far as those asked for are looked into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lancelet.query.opened import OpenTable
from lancelet.rows.addresses import UInt64s
from lancelet.rows.row_id_index import RowIdIndex, build_row_id_index

__all__ = ["addresses_of"]


@dataclass(frozen=True, slots=True)
class _Reach:
    """The smallest and the largest id in each fragment, by place; a fragment without rows reaches nowhere."""

    lows: UInt64s
    highs: UInt64s


def addresses_of(table: OpenTable, ids: UInt64s) -> UInt64s:
    """The address of the live row with each id, NO_ADDRESS where there is none; ids are addresses in other tables.

    >>> from lancelet.rows.addresses import NO_ADDRESS
    >>> from lancelet.ops.write import create
    >>> from lancelet.query.opened import open_table
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.paths import Places
    >>> from lancelet.table.snapshot import open_snapshot
    >>> import pyarrow as pa
    >>> made = create(open_store("memory://by-id"), pa.table({"x": [1, 2]}), stable_row_ids=True)
    >>> table = open_table(Places.of(open_snapshot(open_store("memory://by-id"))))
    >>> (addresses_of(table, np.array([1, 7], np.uint64)) == [1, NO_ADDRESS]).tolist()
    [True, True]
    """
    reach = table.kept("row id reach", lambda: _reach(table))
    places = _candidates(reach, ids)
    return table.kept(("row ids", tuple(places)), lambda: _index(table, places)).lookup(ids)


def _candidates(reach: _Reach, ids: UInt64s) -> list[int]:
    """Places of the fragments that may hold any of the ids."""
    ordered = np.sort(ids)
    first = np.searchsorted(ordered, reach.lows, "left")
    last = np.searchsorted(ordered, reach.highs, "right")
    found: list[int] = np.flatnonzero(first < last).tolist()
    return found


def _reach(table: OpenTable) -> _Reach:
    count = len(table.facts.counts.ids)
    lows, highs = np.full(count, np.iinfo(np.uint64).max), np.zeros(count, np.uint64)
    for place in range(count):
        sequence = table.fragment(place).all_row_ids
        if len(sequence):
            lows[place], highs[place] = sequence.firsts.min(), sequence.lasts.max()
    return _Reach(lows, highs)


def _index(table: OpenTable, places: Sequence[int]) -> RowIdIndex:
    fragments = map(table.fragment, places)
    return build_row_id_index((stored.fragment.id, stored.all_row_ids, stored.deleted) for stored in fragments)
