"""The row-id index: where the row with a stable id lies, over all fragments of a version.

Runs of consecutive ids stay runs, so that a table that was only appended to costs a few bytes per fragment. Ids in no
order are kept one by one: in a table from the smallest id to the largest where they lie close, sorted otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelet.errors import Corrupt
from lancelet.rows.addresses import LARGEST, NO_ADDRESS, UInt64s, as_uint64s, join
from lancelet.rows.deletions import NO_DELETIONS, DeletionVector
from lancelet.rows.ordering import order_of, places_in
from lancelet.rows.runs import Int64s, starts_of
from lancelet.rows.sequences import RowIdSequence

__all__ = ["RowIdIndex", "build_row_id_index"]

#: Runs of so many rows or more are kept as runs.
_LONG = 8
#: A table may have so many places for each id in it: no more memory than the ids and addresses sorted take.
_PLACES_PER_ID = 2

_NO_RUNS = (np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Runs by first id: ``lengths`` ids from ``firsts`` on lie at ``addresses`` and the addresses behind it."""

    firsts: UInt64s
    lengths: UInt64s
    addresses: UInt64s

    def lookup(self, ids: UInt64s) -> UInt64s:
        """The address of each id, or NO_ADDRESS."""
        if not len(self.firsts) or not len(ids):
            return np.full(len(ids), NO_ADDRESS)
        run = places_in(self.firsts, ids, "right") - 1
        np.maximum(run, 0, out=run)
        # An id before the first run wraps around to a distance past the end of any.
        distance = ids - self.firsts[run]
        found: UInt64s = self.addresses[run] + distance
        found[distance >= self.lengths[run]] = NO_ADDRESS
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The address of every id from ``first`` on, NO_ADDRESS where there is no such row."""

    first: int
    addresses: UInt64s

    def lookup(self, ids: UInt64s) -> UInt64s:
        """The address of each id, or NO_ADDRESS."""
        places = ids - np.uint64(self.first)
        inside = places < len(self.addresses)
        found = np.full(len(ids), NO_ADDRESS)
        found[inside] = self.addresses[places[inside]]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Sorted:
    """Ids in order, and the address of each."""

    ids: UInt64s
    addresses: UInt64s

    def lookup(self, ids: UInt64s) -> UInt64s:
        """The address of each id, or NO_ADDRESS."""
        if not len(self.ids) or not len(ids):
            return np.full(len(ids), NO_ADDRESS)
        places = np.minimum(places_in(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.addresses[places], NO_ADDRESS)


@dataclass(frozen=True, slots=True, eq=False)
class RowIdIndex:
    """From stable row ids to row addresses.

    >>> index = build_row_id_index([(4, RowIdSequence.from_range(10, 20), None)])
    >>> index.lookup([11, 99]).tolist() == [(4 << 32) + 1, 2**64 - 1]
    True
    """

    _long: _Runs
    _short: _Table | _Sorted
    #: Ids that have an address.
    size: int

    def lookup(self, ids: npt.ArrayLike) -> UInt64s:
        """The address of each id, and NO_ADDRESS for those that no live row has."""
        asked = as_uint64s(ids, "row ids").ravel()
        found = self._long.lookup(asked)
        missing = np.flatnonzero(found == NO_ADDRESS)
        if len(missing) == len(found):
            return self._short.lookup(asked)
        if len(missing):
            found[missing] = self._short.lookup(asked[missing])
        return found

    def find(self, ids: npt.ArrayLike) -> tuple[UInt64s, UInt64s]:
        """The addresses of those ids that have one, in the order asked, and the ids that have none.

        >>> index = build_row_id_index([(0, RowIdSequence.from_range(0, 3), DeletionVector([1]))])
        >>> [part.tolist() for part in index.find([2, 1, 0])]
        [[2, 0], [1]]
        """
        asked = as_uint64s(ids, "row ids").ravel()
        found = self.lookup(asked)
        has = found != NO_ADDRESS
        return found[has], asked[~has]

    @property
    def nbytes(self) -> int:
        """Memory held."""
        parts = [self._long.firsts, self._long.lengths, self._long.addresses, self._short.addresses]
        if isinstance(self._short, _Sorted):
            parts.append(self._short.ids)
        return sum(part.nbytes for part in parts)


def build_row_id_index(fragments: Iterable[tuple[int, RowIdSequence, DeletionVector | None]]) -> RowIdIndex:
    """The index over fragments: the id of each, the ids of its rows, and which are deleted.

    A deleted row has no address: an update leaves the id with the row that replaced it. Corrupt where an id still
    belongs to two rows.
    """
    gathered = _Gathered()
    for fragment, sequence, deleted in fragments:
        gathered.add(fragment, *sequence.live_runs(deleted or NO_DELETIONS))
    runs = _runs(*gathered.all_runs())
    for ids, addresses in gathered.singles if len(runs.firsts) else []:
        # The runs do not overlap each other; neither may an id that is kept by itself lie in one of them.
        found = runs.lookup(ids)
        at = np.flatnonzero(found != NO_ADDRESS)[:1]
        if len(at):
            raise _shared(ids[at], addresses[at], found[at])
    size = int(runs.lengths.sum()) + sum(len(ids) for ids, _ in gathered.singles)
    return RowIdIndex(runs, _single(gathered.singles), size)


class _Gathered:
    """The live runs of the fragments so far: the long ones as runs, the ids of the others one by one."""

    __slots__ = ("_counts", "_fragments", "_runs", "singles")

    def __init__(self) -> None:
        self._fragments: list[int] = []
        self._counts: list[int] = []
        self._runs: list[tuple[UInt64s, Int64s, Int64s]] = [_NO_RUNS]
        self.singles: list[tuple[UInt64s, UInt64s]] = []

    def add(self, fragment: int, firsts: UInt64s, lengths: Int64s, positions: Int64s) -> None:
        """Take in a fragment's live runs: first ids, rows, positions."""
        # One run costs no more than a row by itself, so the fragments of an ordinary table are not looked into.
        if len(firsts) > 1:
            long = lengths >= _LONG
            if not bool(long.all()):
                short = ~long
                ids, offsets = _one_by_one(firsts[short], lengths[short], positions[short])
                self.singles.append((ids, join(fragment, offsets)))
                firsts, lengths, positions = firsts[long], lengths[long], positions[long]
        self._fragments.append(fragment)
        self._counts.append(len(firsts))
        self._runs.append((firsts, lengths, positions))

    def all_runs(self) -> tuple[UInt64s, Int64s, UInt64s]:
        """The runs of all fragments: first ids, rows, first addresses."""
        firsts, lengths, positions = (np.concatenate(parts) for parts in zip(*self._runs, strict=True))
        fragments = np.repeat(as_uint64s(self._fragments, "fragment ids"), self._counts)
        return firsts, lengths, join(fragments, positions)


def _one_by_one(firsts: UInt64s, lengths: Int64s, positions: Int64s) -> tuple[UInt64s, Int64s]:
    """Every id of the runs, and its position."""
    ends = np.cumsum(lengths)
    if int(ends[-1]) == len(ends):
        return firsts, positions
    within = np.arange(ends[-1]) - np.repeat(starts_of(ends), lengths)
    return np.repeat(firsts, lengths) + within.astype(np.uint64), np.repeat(positions, lengths) + within


def _runs(firsts: UInt64s, lengths: Int64s, addresses: UInt64s) -> _Runs:
    """Runs by first id; Corrupt where two hold the same id."""
    order = order_of(firsts)
    runs = _Runs(firsts[order], lengths[order].astype(np.uint64), addresses[order])
    overlaps = np.flatnonzero(runs.firsts[1:] - runs.firsts[:-1] < runs.lengths[:-1])
    if len(overlaps):
        at = overlaps[:1]
        shared = runs.firsts[at + 1]
        raise _shared(shared, runs.addresses[at] + (shared - runs.firsts[at]), runs.addresses[at + 1])
    return runs


def _single(parts: list[tuple[UInt64s, UInt64s]]) -> _Table | _Sorted:
    """The ids kept one by one, with their addresses; Corrupt where two rows have the same."""
    if not parts:
        return _Sorted(np.empty(0, np.uint64), np.empty(0, np.uint64))
    count = sum(len(ids) for ids, _ in parts)
    first = min(int(ids.min()) for ids, _ in parts)
    span = max(int(ids.max()) for ids, _ in parts) - first + 1
    if span <= _PLACES_PER_ID * count:
        table = np.full(span, NO_ADDRESS)
        for ids, addresses in parts:
            table[ids - np.uint64(first)] = addresses
        if int(np.count_nonzero(table != NO_ADDRESS)) == count:
            return _Table(first, table)
    ids, addresses = (np.concatenate(side) for side in zip(*parts, strict=True))
    order = order_of(ids)
    ids, addresses = ids[order], addresses[order]
    at = np.flatnonzero(ids[1:] == ids[:-1])[:1]
    if len(at):
        raise _shared(ids[at], addresses[at], addresses[at + 1])
    return _Sorted(ids, addresses)


def _shared(row_id: UInt64s, one: UInt64s, other: UInt64s) -> Corrupt:
    """The error for an id that two live rows have."""
    places = " and ".join(
        f"row {offset} of fragment {fragment}"
        for fragment, offset in sorted((int(at[0]) >> 32, int(at[0]) & LARGEST) for at in (one, other))
    )
    return Corrupt(f"row id {int(row_id[0])} belongs to {places}, expected one row")
