"""Row-id sequences to and from their stored segments: each stretch of ids in the form that takes the fewest bytes.

The estimates are the reference's, so that a single stretch is stored in the form that it would choose:

    contiguous                 Range             16
    ascending, few missing     RangeWithHoles    24 + 4 for each id missing
    ascending, many missing    RangeWithBitmap   24 + 1 for eight ids of the range
    ascending, most missing    SortedArray       24 + 2 for each id
    in any order               PlainArray        24 + 2, 4 or 8 for each id
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from lancelet.errors import Corrupt
from lancelet.format.row_ids import (
    PackedArray,
    PlainArray,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
    parse_row_ids,
    segment_rows,
    write_row_ids,
)
from lancelet.rows.addresses import LARGEST, UInt64s
from lancelet.rows.runs import Int64s
from lancelet.rows.sequences import RowIdSequence, concatenate

__all__ = ["from_segments", "read_sequence", "segment_of", "to_segments", "write_sequence"]

#: A run of so many ids may be worth a segment of its own.
_LONG = 64


def read_sequence(data: bytes | memoryview, *, rows: int | None = None) -> RowIdSequence:
    """The sequence that a fragment's stored row ids hold; Corrupt if they are not as many as its ``rows``.

    >>> read_sequence(write_sequence(RowIdSequence.from_ids([4, 5, 9])), rows=3).to_ids().tolist()
    [4, 5, 9]
    """
    return from_segments(parse_row_ids(data, rows=rows))


def write_sequence(sequence: RowIdSequence) -> bytes:
    """The bytes in which a fragment's row ids are stored."""
    return write_row_ids(to_segments(sequence))


def from_segments(segments: Iterable[Segment]) -> RowIdSequence:
    """The ids of stored segments, one after the other.

    >>> from_segments([Range(5, 7), PlainArray(PackedArray.of(np.array([3, 1], np.uint64)))]).to_ids().tolist()
    [5, 6, 3, 1]
    """
    parts: list[RowIdSequence] = []
    total = 0
    for segment in segments:
        total += segment_rows(segment)
        if total > LARGEST + 1:
            raise Corrupt(f"a fragment's row ids are {total} or more, expected at most {LARGEST + 1}")
        parts.append(_from_segment(segment))
    return parts[0] if len(parts) == 1 else concatenate(parts)


def _from_segment(segment: Segment) -> RowIdSequence:
    match segment:
        case Range(start, end):
            return RowIdSequence.from_range(start, end)
        case RangeWithHoles(start, end, holes):
            missing = holes.values()
            begins = np.concatenate((np.array([start], np.uint64), missing + np.uint64(1)))
            return _from_ranges(begins, np.concatenate((missing, np.array([end], np.uint64))))
        case RangeWithBitmap(start, end, _):
            edges = np.zeros(end - start + 2, np.int8)
            edges[1:-1] = segment.bits()
            turns = np.flatnonzero(edges[1:] != edges[:-1]).astype(np.uint64) + np.uint64(start)
            return _from_ranges(turns[::2], turns[1::2])
        case SortedArray(array) | PlainArray(array):
            return RowIdSequence.from_ids(array.values())


def _from_ranges(begins: UInt64s, ends: UInt64s) -> RowIdSequence:
    filled = begins < ends
    begins, ends = begins[filled], ends[filled]
    return RowIdSequence(begins, np.cumsum((ends - begins).astype(np.int64)))


def segment_of(sequence: RowIdSequence) -> Segment:
    """The one segment that holds a whole sequence, in the form that the reference chooses for it.

    >>> segment_of(RowIdSequence.from_ids([1, 2, 3]))
    Range(start=1, end=4)
    >>> type(segment_of(RowIdSequence.from_ids([3, 1]))).__name__
    'PlainArray'
    """
    if not len(sequence):
        return Range(0, 0)
    if len(sequence.ends) == 1:
        return Range(int(sequence.firsts[0]), int(sequence.lasts[0]) + 1)
    if bool(np.any(sequence.firsts[1:] <= sequence.lasts[:-1])):
        return PlainArray(PackedArray.of(sequence.to_ids()))
    start, end, rows = int(sequence.firsts[0]), int(sequence.lasts[-1]) + 1, len(sequence)
    holes, bitmap, array = 4 * (end - start - rows), -(-(end - start) // 8), 2 * rows
    if holes <= min(bitmap, array):
        ends = sequence.lasts[:-1] + np.uint64(1)
        missing = RowIdSequence(ends, np.cumsum((sequence.firsts[1:] - ends).astype(np.int64)))
        return RangeWithHoles(start, end, PackedArray.of(missing.to_ids()))
    if bitmap <= array:
        bits = np.zeros(end - start, np.uint8)
        bits[(sequence.to_ids() - np.uint64(start)).astype(np.int64)] = 1
        return RangeWithBitmap(start, end, np.packbits(bits, bitorder="little").tobytes())
    return SortedArray(PackedArray.of(sequence.to_ids()))


def to_segments(sequence: RowIdSequence) -> Sequence[Segment]:
    """The segments that hold a sequence: one, unless several take less than half of its bytes.

    >>> ids = RowIdSequence.from_ids([*range(1000), 9, 7, 8, *range(5000, 7000)])
    >>> [type(segment).__name__ for segment in to_segments(ids)]
    ['Range', 'PlainArray', 'Range']
    """
    bounds = _best_bounds(sequence)
    starts = np.concatenate(([0], sequence.ends))
    if len(bounds) == 2:
        return [segment_of(sequence)]
    places = starts[bounds].tolist()
    return [segment_of(sequence.slice(begin, end)) for begin, end in pairwise(places)]


def _best_bounds(sequence: RowIdSequence) -> Int64s:
    """Where to divide the runs: at the first and behind the last one, around long runs, or also wherever ids fall."""
    runs = len(sequence.ends)
    whole = np.array([0, runs])
    if runs < 2:
        return whole
    long = np.flatnonzero(sequence.lengths >= _LONG)
    falls = np.flatnonzero(sequence.firsts[1:] <= sequence.lasts[:-1]) + 1
    around = np.unique(np.concatenate((whole, long, long + 1)))
    best, fewest = whole, _bytes_of(sequence, whole) / 2
    for bounds in (around, np.union1d(around, falls)):
        if (estimate := _bytes_of(sequence, bounds)) < fewest:
            best, fewest = bounds, estimate
    return best


def _bytes_of(sequence: RowIdSequence, bounds: Int64s) -> float:
    """About how many bytes the segments between ``bounds`` take."""
    begins, lasts = bounds[:-1], bounds[1:] - 1
    falls = np.zeros(len(sequence.ends) + 1, np.int64)
    np.cumsum(sequence.firsts[1:] <= sequence.lasts[:-1], out=falls[1:-1])
    starts = np.concatenate(([0], sequence.ends))
    rows = (starts[bounds[1:]] - starts[begins]).astype(np.float64)
    least = np.minimum.reduceat(sequence.firsts, begins)
    slots = (np.maximum.reduceat(sequence.lasts, begins) - least).astype(np.float64) + 1
    array = 24 + rows * np.select([slots <= 2**16, slots <= 2**32], [2, 4], 8)
    ascending = np.minimum(array, 24 + np.minimum(4 * (slots - rows), slots / 8))
    ascending = np.where(slots == rows, 16, ascending)
    return float(np.where(falls[lasts] == falls[begins], ascending, array).sum())
