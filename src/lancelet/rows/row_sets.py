"""Row sets: sets of row addresses or row ids of any size, a compressed bitmap for each fragment that has any.

A row id is treated like an address: its upper 32 bits stand for a fragment. Stored sets look like this, in little
endian:

    u32 fragments, then for each:  u32 fragment | u32 bytes | Roaring bitmap of the offsets; 0 bytes: every row
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from lancelet.errors import Corrupt, InvalidInput
from lancelet.rows.addresses import LARGEST, UInt32s, UInt64s, as_uint64s, by_fragment, join
from lancelet.rows.bitmaps import BitMap, parse_bitmap, to_bitmap, to_values, write_bitmap
from lancelet.rows.deletions import DeletionVector

__all__ = ["NO_ROWS", "RowSet", "parse_row_set", "union_all", "write_row_set"]

_EVERY = LARGEST + 1
#: A range that goes on through so many fragments is a mistake or an attack.
_MOST_FRAGMENTS = 2**24
_ENTRY = struct.Struct("<II")


class RowSet:
    """Which rows. Immutable; equal by content, where ``None`` for a fragment says: every row it has or ever will.

    >>> some, others = RowSet.of([1, 2, 2**32]), RowSet.of([2, 3])
    >>> (some & others).to_values().tolist(), len(some | others), (some - others).to_values().tolist()
    ([2], 4, [1, 4294967296])
    """

    __slots__ = ("fragments",)

    def __init__(self, fragments: Mapping[int, BitMap | None]) -> None:
        """From the rows of each fragment; the bitmaps must not change afterwards."""
        kept = {fragment: rows for fragment, rows in sorted(fragments.items()) if rows is None or len(rows)}
        #: The offsets in each fragment that has any, by fragment; None: every one.
        self.fragments: Mapping[int, BitMap | None] = MappingProxyType(
            {fragment: None if rows is not None and len(rows) == _EVERY else rows for fragment, rows in kept.items()}
        )

    @staticmethod
    def of(values: npt.ArrayLike) -> RowSet:
        """The set of some addresses or ids, in any order."""
        ordered = as_uint64s(values).ravel()
        return RowSet({fragment: to_bitmap(offsets) for fragment, offsets, _ in by_fragment(ordered)})

    @staticmethod
    def of_range(begin: int, end: int) -> RowSet:
        """The addresses or ids from ``begin`` up to but not including ``end``.

        >>> len(RowSet.of_range(10, 2**33))
        8589934582
        """
        if not 0 <= begin <= end <= 2**64:
            raise InvalidInput(f"rows from {begin} up to {end} are no range")
        if begin == end:
            return NO_ROWS
        first, last = begin >> 32, (end - 1) >> 32
        if last - first > _MOST_FRAGMENTS:
            raise InvalidInput(f"rows from {begin} up to {end} touch {last - first + 1} fragments, too many to list")
        whole: dict[int, BitMap | None] = dict.fromkeys(range(first, last + 1))
        for fragment in {first, last}:
            low, high = fragment << 32, (fragment + 1) << 32
            whole[fragment] = BitMap(range(max(begin, low) - low, min(end, high) - low))
        return RowSet(whole)

    @staticmethod
    def of_fragments(fragments: Iterable[int]) -> RowSet:
        """Every row of some fragments."""
        return RowSet(dict.fromkeys(fragments))

    @staticmethod
    def of_live(fragments: Iterable[tuple[int, int, DeletionVector | None]]) -> RowSet:
        """The rows that fragments have: of each its id, its physical rows and the deleted ones among them.

        >>> RowSet.of_live([(1, 3, DeletionVector([0]))]).to_values().tolist()
        [4294967297, 4294967298]
        """
        return RowSet({fragment: _live(rows, deleted) for fragment, rows, deleted in fragments})

    def __len__(self) -> int:
        return sum(_EVERY if rows is None else len(rows) for rows in self.fragments.values())

    def __bool__(self) -> bool:
        return bool(self.fragments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowSet) and self.fragments == other.fragments

    def __hash__(self) -> int:
        return hash(write_row_set(self))

    def __repr__(self) -> str:
        return f"RowSet({len(self)} rows in {len(self.fragments)} fragments)"

    def __reduce__(self) -> tuple[object, ...]:
        return parse_row_set, (write_row_set(self),)

    def __and__(self, other: RowSet) -> RowSet:
        shared = self.fragments.keys() & other.fragments.keys()
        return RowSet({fragment: _both(self.fragments[fragment], other.fragments[fragment]) for fragment in shared})

    def __or__(self, other: RowSet) -> RowSet:
        return union_all((self, other))

    def __sub__(self, other: RowSet) -> RowSet:
        kept = dict(self.fragments)
        for fragment in kept.keys() & other.fragments.keys():
            kept[fragment] = _without(kept[fragment], other.fragments[fragment])
        return RowSet(kept)

    def contains(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each address or id is in the set.

        >>> RowSet.of([3, 7]).contains([7, 4]).tolist()
        [True, False]
        """
        asked = as_uint64s(values).ravel()
        answer = np.zeros(len(asked), np.bool_)
        done = 0
        for fragment, offsets, places in by_fragment(asked):
            found = self._contains(fragment, offsets)
            answer[slice(done, done + len(offsets)) if places is None else places] = found
            done += len(offsets)
        return answer

    def _contains(self, fragment: int, offsets: UInt32s) -> npt.NDArray[np.bool_]:
        if fragment not in self.fragments:
            return np.zeros(len(offsets), np.bool_)
        rows = self.fragments[fragment]
        if rows is None:
            return np.ones(len(offsets), np.bool_)
        # Only the members among those asked for are listed, however many there are besides.
        asked = np.unique(offsets)
        members = to_values(rows & to_bitmap(asked))
        return np.isin(offsets, members) if len(members) < len(asked) else np.ones(len(offsets), np.bool_)

    def offsets(self, fragment: int) -> UInt32s:
        """The physical offsets in one fragment, ascending; InvalidInput where that is every row there might be."""
        if fragment not in self.fragments:
            return np.empty(0, np.uint32)
        rows = self.fragments[fragment]
        if rows is None:
            raise InvalidInput(
                f"the set holds every row of fragment {fragment}", hint="intersect it with the rows there are"
            )
        return to_values(rows)

    def to_values(self) -> UInt64s:
        """The addresses or ids, ascending; InvalidInput where a fragment is in it with every row."""
        parts = [self.offsets(fragment) for fragment in self.fragments]
        fragments = np.repeat(as_uint64s(list(self.fragments), "fragment ids"), [len(part) for part in parts])
        return join(fragments, np.concatenate(parts)) if parts else fragments


#: The empty set.
NO_ROWS = RowSet({})


def union_all(sets: Iterable[RowSet]) -> RowSet:
    """The rows that are in any of the sets.

    >>> len(union_all([RowSet.of([1]), RowSet.of([2]), RowSet.of([1])]))
    2
    """
    known = [rows for rows in sets if rows]
    if len(known) < 2:
        return known[0] if known else NO_ROWS
    gathered: dict[int, list[BitMap | None]] = {}
    for rows in known:
        for fragment, bitmap in rows.fragments.items():
            gathered.setdefault(fragment, []).append(bitmap)
    return RowSet({fragment: _any(bitmaps) for fragment, bitmaps in gathered.items()})


def _live(rows: int, deleted: DeletionVector | None) -> BitMap:
    bitmap = BitMap(range(rows))
    return bitmap if deleted is None or not len(deleted) else bitmap - to_bitmap(deleted.check(rows).rows)


def _both(one: BitMap | None, other: BitMap | None) -> BitMap | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _without(one: BitMap | None, other: BitMap | None) -> BitMap | None:
    if other is None:
        return BitMap()
    return other.flip(0, _EVERY) if one is None else one - other


def _any(bitmaps: list[BitMap | None]) -> BitMap | None:
    known = [bitmap for bitmap in bitmaps if bitmap is not None]
    if len(known) < len(bitmaps):
        return None
    return BitMap.union(*known) if len(known) > 1 else known[0]


def write_row_set(rows: RowSet) -> bytes:
    """The bytes of a stored row set."""
    pieces = [len(rows.fragments).to_bytes(4, "little")]
    for fragment, bitmap in rows.fragments.items():
        stored = b"" if bitmap is None else write_bitmap(bitmap)
        pieces += [_ENTRY.pack(fragment, len(stored)), stored]
    return b"".join(pieces)


def parse_row_set(data: bytes | memoryview, *, what: str = "row set") -> RowSet:
    """The row set that bytes hold; Corrupt where they are something else.

    >>> parse_row_set(write_row_set(RowSet.of([5, 2**40]))).to_values().tolist()
    [5, 1099511627776]
    """
    view = memoryview(data)
    if len(view) < 4:
        raise Corrupt(f"{what} has {len(view)} bytes, expected at least 4")
    count, place = int.from_bytes(view[:4], "little"), 4
    fragments: dict[int, BitMap | None] = {}
    for _ in range(count):
        if len(view) - place < _ENTRY.size:
            raise Corrupt(f"{what} of {count} fragments ends after {len(fragments)}")
        fragment, length = _ENTRY.unpack_from(view, place)
        place += _ENTRY.size
        if length > len(view) - place:
            raise Corrupt(f"{what}: fragment {fragment} has {length} bytes, {len(view) - place} are left")
        if fragment in fragments:
            raise Corrupt(f"{what} lists fragment {fragment} twice")
        stored = view[place : place + length]
        fragments[fragment] = parse_bitmap(stored, f"{what}, fragment {fragment}") if length else None
        place += length
    if place != len(view):
        raise Corrupt(f"{what} has {len(view) - place} bytes after its {count} fragments")
    return RowSet(fragments)
