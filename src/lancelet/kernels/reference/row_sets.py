"""Stored row sets of many groups of rows at once, in NumPy and loops over containers.

A row set is a list of fragments (the upper halves of addresses), each with a Roaring bitmap of the lower halves. In
indexes there are two forms of the list, little-endian, fragments rising:

    row set   u32 fragments, then of each:  u32 fragment | u32 bytes of the bitmap | bitmap
    treemap   u64 fragments, then of each:  u32 fragment | bitmap

A bitmap has a container for each 65,536 values, of three kinds, the smallest of which is taken: an array of up to 4096
numbers of 16 bits, 8192 bytes of bits, or runs (u16 runs, then of each u16 first | u16 further ones):

    u32 12346 | u32 containers          | u16 key, u16 values - 1 of each | u32 place of each | containers
    u16 12347 | u16 containers - 1 | which are runs: a bit each | keys, values | u32 places, of four or more | ...
"""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_bounds

__all__ = ["measure_row_sets", "write_row_sets"]

Rows = NDArray[np.uint64]
Places = NDArray[np.int64]

_PLAIN, _WITH_RUNS = 12346, 12347
_LARGEST_ARRAY, _BITS = 4096, 8192
_PLACES_FROM = 4


def measure_row_sets(rows: Rows, bounds: Places, treemap: bool, ends: Places) -> None:
    """Where each row set ends when they are written one behind the other; group i is ``rows[bounds[i]:bounds[i + 1]]``.

    Rows must rise within each group.

    >>> ends = np.zeros(1, np.int64)
    >>> measure_row_sets(np.array([1, 2**32], np.uint64), np.array([0, 2]), False, ends)
    >>> ends.tolist()
    [56]
    """
    _check(rows, bounds, ends)
    sizes = [len(_row_set(rows[start:end], treemap)) for start, end in pairwise(bounds.tolist())]
    ends[:] = np.cumsum(sizes, dtype=np.int64)


def write_row_sets(rows: Rows, bounds: Places, treemap: bool, ends: Places, out: NDArray[np.uint8]) -> None:
    """Write row sets into ``out``, which has as many bytes as :func:`measure_row_sets` says.

    >>> out = np.zeros(30, np.uint8)
    >>> write_row_sets(np.array([7], np.uint64), np.array([0, 1]), False, np.array([30]), out)
    >>> out.tobytes().hex(" ", -4)
    '01000000 00000000 12000000 3a300000 01000000 00000000 10000000 0700'
    """
    _check(rows, bounds, ends)
    refuse.other_length("out", len(out), int(ends[-1]) if len(ends) else 0)
    stored = b"".join(_row_set(rows[start:end], treemap) for start, end in pairwise(bounds.tolist()))
    if len(stored) != len(out):
        raise refuse.wrong_total("the row sets' bytes", found=len(stored), expected=len(out))
    out[:] = np.frombuffer(stored, np.uint8)


def _check(rows: Rows, bounds: Places, ends: Places) -> None:
    check_bounds(bounds, len(rows))
    refuse.other_length("ends", len(ends), len(bounds) - 1)
    starts = np.zeros(len(rows) + 1, np.bool_)
    starts[bounds] = True
    if len(rows) < 2:
        return
    bad = np.flatnonzero((rows[1:] <= rows[:-1]) & ~starts[1:-1])
    if len(bad):
        raise refuse.not_rising("row", int(bad[0]) + 1, int(rows[bad[0] + 1]), int(rows[bad[0]]))


def _row_set(rows: Rows, treemap: bool) -> bytes:
    pieces = []
    for fragment, members in _split(rows, 32):
        bitmap = _bitmap(members)
        pieces.append(struct.pack("<I", fragment) + (b"" if treemap else struct.pack("<I", len(bitmap))) + bitmap)
    return len(pieces).to_bytes(8 if treemap else 4, "little") + b"".join(pieces)


def _split(values: Rows, bits: int) -> list[tuple[int, Rows]]:
    """The values of each upper part, by their lower ``bits``."""
    upper, lower = values >> np.uint64(bits), values & np.uint64((1 << bits) - 1)
    cuts = np.flatnonzero(upper[1:] != upper[:-1]) + 1
    bounds = [0, *cuts.tolist(), len(values)] if len(values) else [0]
    return [(int(upper[start]), lower[start:end]) for start, end in pairwise(bounds)]


def _bitmap(values: Rows) -> bytes:
    containers = [(key, members, *_container(members)) for key, members in _split(values, 16)]
    count = len(containers)
    kinds = [runs for *_, runs, _ in containers]
    heads = b"".join(struct.pack("<HH", key, len(members) - 1) for key, members, *_ in containers)
    if any(kinds):
        marks = sum(1 << place for place, runs in enumerate(kinds) if runs)
        heads = struct.pack("<HH", _WITH_RUNS, count - 1) + marks.to_bytes(-(-count // 8), "little") + heads
    else:
        heads = struct.pack("<II", _PLAIN, count) + heads
    at = len(heads)
    if not any(kinds) or count >= _PLACES_FROM:
        at += 4 * count
        for *_, data in containers:
            heads += struct.pack("<I", at)
            at += len(data)
    return heads + b"".join(data for *_, data in containers)


def _container(members: Rows) -> tuple[bool, bytes]:
    """Whether members are stored as runs, and the bytes."""
    starts = np.flatnonzero(np.concatenate(([True], members[1:] - members[:-1] != 1)))
    lengths = np.diff(np.append(starts, len(members)))
    plain = 2 * len(members) if len(members) <= _LARGEST_ARRAY else _BITS
    if 2 + 4 * len(starts) < plain:
        pairs = np.column_stack([members[starts], lengths.astype(np.uint64) - np.uint64(1)])
        return True, struct.pack("<H", len(starts)) + pairs.astype("<u2").tobytes()
    if len(members) <= _LARGEST_ARRAY:
        return False, members.astype("<u2").tobytes()
    bits = np.zeros(_BITS * 8, np.bool_)
    bits[members] = True
    return False, np.packbits(bits, bitorder="little").tobytes()
