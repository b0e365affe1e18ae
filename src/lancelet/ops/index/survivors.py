"""Which rows of a segment are still what it says they are: those of fragments that it covers now."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np

from lancelet.index.answers import Domain
from lancelet.index.merging import Bools, Remap, keep_fragments
from lancelet.query.opened import open_table
from lancelet.query.row_ids import addresses_of
from lancelet.rows.addresses import NO_ADDRESS, UInt64s
from lancelet.rows.moves import Moves
from lancelet.table.paths import Places

__all__ = ["survivors"]


def survivors(
    places: Places, fragments: Collection[int], domain: Domain, *, by_address: bool, moves: Moves | None = None
) -> Remap:
    """What becomes of the rows of a segment that covers some fragments, and calls its rows as a domain has it.

    A row that has a stable id and was updated lies in another fragment now: the segment still has its old value,
    which must not be merged with the new one. ``by_address`` says what the merged segment calls rows where they
    have stable ids. ``moves`` are those that rows made since they got the addresses that the segment knows.
    """
    if domain is Domain.ADDRESSES:
        return keep_fragments(fragments) if moves is None else partial(_by_moves, moves, keep_fragments(fragments))
    return partial(_by_id, places, np.array(sorted(fragments), np.uint64), by_address)


def _by_moves(moves: Moves, keep: Remap, names: UInt64s) -> tuple[UInt64s, Bools]:
    moved, there = moves.remap(names)
    _, kept = keep(moved)
    return moved, there & kept


def _by_id(places: Places, fragments: UInt64s, by_address: bool, names: UInt64s) -> tuple[UInt64s, Bools]:
    addresses = addresses_of(open_table(places), names)
    kept = (addresses != NO_ADDRESS) & np.isin(addresses >> np.uint64(32), fragments)
    return addresses if by_address else names, kept
