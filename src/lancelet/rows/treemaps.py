"""Treemaps: row sets in the portable format of 64-bit Roaring bitmaps, little endian.

    u64 fragments, then for each:  u32 fragment | Roaring bitmap of the offsets

A bitmap does not say how long it is; its containers do:

    u32 12346 | u32 containers                            | u16 key, u16 values - 1 of each | u32 place of each
    u16 12347 | u16 containers - 1 | a bit each: has runs | u16 key, u16 values - 1 of each | u32 places, of 4 or more
    containers: u16 runs, 4 bytes for each run | up to 4096 values, 2 bytes each | 8192 bytes of bits
"""

from __future__ import annotations

import numpy as np

from lancelet.errors import Corrupt, InvalidInput
from lancelet.rows.bitmaps import BitMap, parse_bitmap, write_bitmap
from lancelet.rows.row_sets import RowSet

__all__ = ["parse_treemap", "write_treemap"]

_PLAIN, _WITH_RUNS = 12346, 12347
_LARGEST_ARRAY, _BITS = 4096, 8192
_PLACES_FROM = 4
#: Containers that there are of 32-bit numbers.
_MOST = 1 << 16


def write_treemap(rows: RowSet) -> bytes:
    """The bytes of a stored treemap; InvalidInput for a set of every row of a fragment, which has no such form."""
    pieces = [len(rows.fragments).to_bytes(8, "little")]
    for fragment, bitmap in rows.fragments.items():
        if bitmap is None:
            found = f"the set holds every row of fragment {fragment}"
            raise InvalidInput(found, hint="intersect it with those there are")
        pieces += [fragment.to_bytes(4, "little"), write_bitmap(bitmap)]
    return b"".join(pieces)


def parse_treemap(data: bytes | memoryview, *, what: str = "treemap") -> RowSet:
    """The row set that a treemap holds; Corrupt where bytes are something else.

    >>> parse_treemap(write_treemap(RowSet.of([5, 2**40]))).to_values().tolist()
    [5, 1099511627776]
    """
    view = memoryview(data)
    if len(view) < 8:
        raise Corrupt(f"{what} has {len(view)} bytes, expected at least 8")
    count, place = int.from_bytes(view[:8], "little"), 8
    fragments: dict[int, BitMap | None] = {}
    while len(fragments) < count:
        if len(view) - place < 4:
            raise Corrupt(f"{what} of {count} fragments ends after {len(fragments)}")
        fragment = int.from_bytes(view[place : place + 4], "little")
        if fragment in fragments:
            raise Corrupt(f"{what} lists fragment {fragment} twice")
        place += 4
        name = f"{what}, fragment {fragment}"
        stop = place + _length(view[place:], name)
        fragments[fragment] = parse_bitmap(view[place:stop], name)
        place = stop
    if place != len(view):
        raise Corrupt(f"{what} has {len(view) - place} bytes after its {count} fragments")
    return RowSet(fragments)


def _length(view: memoryview, what: str) -> int:
    """The bytes of the bitmap that a view begins with."""
    cookie = int.from_bytes(view[:4], "little")
    with_runs = cookie & 0xFFFF == _WITH_RUNS
    if not with_runs and cookie != _PLAIN:
        raise Corrupt(f"{what}: no Roaring bitmap begins with {cookie}")
    count = (cookie >> 16) + 1 if with_runs else int.from_bytes(view[4:8], "little")
    flags = (count + 7) // 8 if with_runs else 0
    head = (4 if with_runs else 8) + flags
    body = head + 4 * count + (4 * count if not with_runs or count >= _PLACES_FROM else 0)
    if count > _MOST or body > len(view):
        raise Corrupt(f"{what}: a bitmap of {count} containers in {len(view)} bytes")
    sizes = np.frombuffer(view[head : head + 4 * count], "<u2")[1::2].astype(np.int64) + 1
    sizes = np.where(sizes > _LARGEST_ARRAY, _BITS, 2 * sizes)
    if not with_runs:
        return body + int(sizes.sum())
    runs = np.unpackbits(np.frombuffer(view[4 : 4 + flags], np.uint8), bitorder="little")[:count]
    place = body
    for has_runs, size in zip(runs.tolist(), sizes.tolist(), strict=True):
        place += 2 + 4 * int.from_bytes(view[place : place + 2], "little") if has_runs else size
    return place
