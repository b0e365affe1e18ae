"""Moves: where rows went when fragments were rewritten, for those who still know them by the addresses they had.

The rows of some fragments that were not deleted follow each other, in order, in the fragments that take their place.
Ids of fragments are given once, so that a row that moved several times is followed from fragment to fragment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from lancelet.errors import Corrupt
from lancelet.rows.addresses import LARGEST, UInt64s, by_fragment, fragments_of
from lancelet.rows.bitmaps import BitMap, to_bitmap, write_bitmap
from lancelet.rows.deletions import NO_DELETIONS, DeletionVector
from lancelet.rows.row_sets import RowSet, union_all

__all__ = ["Move", "Moves", "Source", "parse_survivors", "write_survivors"]

_ENTRY = struct.Struct("<I")
_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class Source:
    """A fragment that was rewritten: its id, the rows in its files, and those of them that were deleted then."""

    fragment: int
    rows: int
    deleted: DeletionVector

    @property
    def survivors(self) -> int:
        """Rows that were not deleted."""
        return self.rows - len(self.deleted)


@dataclass(frozen=True, slots=True)
class Move:
    """The rows of some fragments, one behind the other, in new ones: of these the ids and the rows."""

    sources: tuple[Source, ...]
    targets: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        before, after = sum(item.survivors for item in self.sources), sum(rows for _, rows in self.targets)
        if before != after:
            raise Corrupt(f"{before} rows of fragment {self._first} and others were moved, but {after} arrived")

    @property
    def _first(self) -> int:
        return self.sources[0].fragment if self.sources else -1

    def places(self, numbers: npt.NDArray[np.int64]) -> UInt64s:
        """The addresses of the rows by their number in all that was moved."""
        ends = np.cumsum([rows for _, rows in self.targets], dtype=np.int64)
        which = np.searchsorted(ends, numbers, side="right")
        starts = ends - np.array([rows for _, rows in self.targets], np.int64)
        ids = np.array([number for number, _ in self.targets], np.uint64)
        found: UInt64s = (ids[which] << _HALF) | (numbers - starts[which]).astype(np.uint64)
        return found


class Moves:
    """All moves of a table that somebody may have to follow. Immutable.

    >>> one = Move((Source(0, 3, DeletionVector([1])), Source(1, 2, DeletionVector())), ((5, 4),))
    >>> names, kept = Moves([one]).remap(np.array([2, 1, 2**32], np.uint64))
    >>> (names[kept] & np.uint64(0xFFFFFFFF)).tolist(), kept.tolist(), fragments_of(names[kept]).tolist()
    ([1, 2], [True, False, True], [5, 5])
    """

    __slots__ = ("_from", "_ids", "_in_order", "moves")

    def __init__(self, moves: Iterable[Move]) -> None:
        """Corrupt where a fragment was moved away twice, or rows come to where they were before."""
        self.moves = tuple(moves)
        #: Of each fragment that was moved: the move, its own source, and the rows of the move before its own.
        self._from: dict[int, tuple[Move, Source, int]] = {}
        for move in self.moves:
            before = 0
            for source in move.sources:
                if source.fragment in self._from:
                    raise Corrupt(f"fragment {source.fragment} was rewritten twice")
                self._from[source.fragment] = move, source, before
                before += source.survivors
        self._ids = np.array(sorted(self._from), np.uint64)
        self._in_order = _in_order(self.moves)

    def __bool__(self) -> bool:
        return bool(self._from)

    def __repr__(self) -> str:
        return f"Moves({len(self.moves)} moves of {len(self._from)} fragments)"

    @property
    def sources(self) -> frozenset[int]:
        """Ids of the fragments that were moved."""
        return frozenset(self._from)

    @property
    def nbytes(self) -> int:
        """Memory held, about."""
        return sum(256 + source.deleted.nbytes for _, source, _ in self._from.values())

    def remap(self, names: UInt64s) -> tuple[UInt64s, npt.NDArray[np.bool_]]:
        """What rows are called now, and which of them are still there; the name of others means nothing."""
        found, kept = names.astype(np.uint64, copy=True), np.ones(len(names), np.bool_)
        at = np.flatnonzero(np.isin(found >> _HALF, self._ids))
        while len(at):
            for fragment, offsets, places in by_fragment(found[at]):
                here = at[fragments_of(found[at]) == fragment] if places is None else at[places]
                move, source, before = self._from[fragment]
                stays = offsets < source.rows
                stays &= ~source.deleted.contains(offsets)
                kept[here] = stays
                numbers = source.deleted.to_logical(offsets[stays]).astype(np.int64) + before
                found[here[stays]] = move.places(numbers)
            at = at[kept[at]]
            at = at[np.isin(found[at] >> _HALF, self._ids)]
        return found, kept

    def of_rows(self, rows: RowSet) -> RowSet:
        """A set of rows by the addresses that they have now."""
        parts, left = [], rows
        while moved := [number for number in left.fragments if number in self._from]:
            unmoved = {number: found for number, found in left.fragments.items() if number not in self._from}
            parts.append(RowSet(unmoved))
            left = union_all(self._of_fragment(number, left) for number in moved)
        return union_all([*parts, left])

    def _of_fragment(self, number: int, rows: RowSet) -> RowSet:
        move, source, before = self._from[number]
        if rows.fragments[number] is None:
            return _range(move, before, before + source.survivors)
        offsets = rows.offsets(number)
        offsets = offsets[offsets < source.rows]
        offsets = offsets[~source.deleted.contains(offsets)]
        return RowSet.of(move.places(source.deleted.to_logical(offsets).astype(np.int64) + before))

    def of_fragments(self, fragments: BitMap) -> BitMap:
        """The fragments in which all rows are that some others had, for those of them that were moved.

        A fragment into which rows of any others went, too, is not among them.
        """
        found = BitMap(fragments)
        # A move that is looked at after those that led to it finds all its sources that will ever be among them.
        for move in self._in_order:
            sources = BitMap([item.fragment for item in move.sources])
            if sources and sources <= found:
                found |= BitMap([number for number, _ in move.targets])
            found -= sources
        return found


def _range(move: Move, begin: int, end: int) -> RowSet:
    """The rows of a move from one number up to but not including another."""
    parts, start = [], 0
    for number, rows in move.targets:
        low, high = max(begin - start, 0), min(end - start, rows)
        if low < high:
            parts.append(RowSet({number: BitMap(range(low, high))}))
        start += rows
    return union_all(parts)


def _in_order(moves: Sequence[Move]) -> list[Move]:
    """The moves in an order in which each follows those that its rows came by; Corrupt where rows come back."""
    arrives = {number: at for at, move in enumerate(moves) for number, _ in move.targets}
    waiting = [{arrives[item.fragment] for item in move.sources if item.fragment in arrives} for move in moves]
    followers: dict[int, list[int]] = {}
    for at, before in enumerate(waiting):
        for earlier in before:
            followers.setdefault(earlier, []).append(at)
    ready = [at for at, before in enumerate(waiting) if not before]
    ordered: list[Move] = []
    while ready:
        earlier = ready.pop()
        ordered.append(moves[earlier])
        for at in followers.get(earlier, ()):
            waiting[at].discard(earlier)
            if not waiting[at]:
                ready.append(at)
    if len(ordered) < len(moves):
        raise Corrupt("rows that were moved come back to a fragment that they left")
    return ordered


def write_survivors(sources: Iterable[Source]) -> bytes:
    """The rows of fragments that were not deleted, by address, as a stored set of 64-bit numbers.

    In little endian: ``u64 fragments``, then of each ``u32 fragment | Roaring bitmap of the offsets``.
    """
    kept = [item for item in sorted(sources, key=lambda item: item.fragment) if item.survivors]
    pieces = [len(kept).to_bytes(8, "little")]
    for item in kept:
        pieces += [_ENTRY.pack(item.fragment), write_bitmap(_survivors(item))]
    return b"".join(pieces)


def _survivors(source: Source) -> BitMap:
    every = BitMap(range(source.rows))
    return every - to_bitmap(source.deleted.rows) if len(source.deleted) else every


def parse_survivors(data: bytes, fragments: Sequence[tuple[int, int, int]]) -> tuple[Source, ...]:
    """The sources that a stored set tells of; given of each its id, its rows, and how many of them were deleted.

    Corrupt where the set says otherwise.

    >>> two = (Source(3, 5, DeletionVector([0])), Source(4, 2, DeletionVector()))
    >>> parse_survivors(write_survivors(two), [(3, 5, 1), (4, 2, 0)]) == two
    True
    """
    try:
        known = BitMap64.deserialize(bytes(data))
    except (ValueError, IndexError) as error:
        raise Corrupt(f"{len(data)} bytes are no set of moved rows: {error}") from None
    found, seen = [], 0
    for number, rows, count in fragments:
        first = number << 32
        if not (0 <= number <= LARGEST and 0 <= count <= rows <= LARGEST + 1):
            raise Corrupt(f"fragment {number} of {rows} rows, {count} of them deleted, was moved")
        survivors = known.range_cardinality(first, first + rows)
        if survivors != rows - count:
            text = f"{survivors} rows of fragment {number} were moved, expected {rows - count} of its {rows}"
            raise Corrupt(text, fragment=number)
        seen += survivors
        found.append(Source(number, rows, _deleted(known, first, rows) if count else NO_DELETIONS))
    if seen != len(known):
        raise Corrupt(f"{len(known)} rows were moved, {seen} of them of the fragments that were rewritten")
    return tuple(found)


def _deleted(known: BitMap64, first: int, rows: int) -> DeletionVector:
    gone = np.asarray((BitMap64(range(first, first + rows)) - known).to_array(), np.uint64)
    return DeletionVector(gone - np.uint64(first))
