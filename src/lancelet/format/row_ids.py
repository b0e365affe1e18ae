"""Sequences of row ids and of row versions as they are stored: segments in order, each in the form that suits it.

    Range            start, end                  every number, the end exclusive
    RangeWithHoles   start, end, holes           every number but those in an ascending array
    RangeWithBitmap  start, end, bitmap          number start + i if bit i % 8 of byte i // 8 is set
    SortedArray      array                       ascending numbers
    PlainArray       array                       numbers in any order

An array is a base with u16 or u32 offsets, or u64 values, little endian. Nothing is spread out here: a range of any
length is two numbers until somebody asks for its values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput
from lancelet.format.preserve import storable
from lancelet.format.protos import row_ids_pb2 as wire
from lancelet.format.wire import parse_message, unset_choice, write_message

__all__ = [
    "PackedArray",
    "PlainArray",
    "Range",
    "RangeWithBitmap",
    "RangeWithHoles",
    "Segment",
    "SortedArray",
    "VersionRun",
    "parse_row_ids",
    "parse_versions",
    "segment_rows",
    "write_row_ids",
    "write_versions",
]

_LARGEST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class PackedArray:
    """Numbers as offsets of 2 or 4 bytes from a base, or as they are in 8 bytes (and base 0)."""

    width: int
    data: bytes
    base: int = 0

    def __len__(self) -> int:
        return len(self.data) // self.width

    def values(self) -> NDArray[np.uint64]:
        """The numbers.

        >>> PackedArray.of(np.array([70000, 70001], np.uint64)).values()
        array([70000, 70001], dtype=uint64)
        """
        offsets = np.frombuffer(self.data, f"<u{self.width}").astype(np.uint64)
        return offsets + np.uint64(self.base)

    @staticmethod
    def of(values: NDArray[np.uint64]) -> PackedArray:
        """The numbers in the fewest bytes each.

        >>> PackedArray.of(np.array([70000, 70001], np.uint64))
        PackedArray(width=2, data=b'\\x00\\x00\\x01\\x00', base=70000)
        """
        if not len(values):
            return PackedArray(2, b"")
        least, span = int(values.min()), int(values.max()) - int(values.min())
        width = 2 if span < 1 << 16 else 4 if span < 1 << 32 else 8
        base = 0 if width == 8 else least
        return PackedArray(width, (values - np.uint64(base)).astype(f"<u{width}").tobytes(), base)


@dataclass(frozen=True, slots=True)
class Range:
    """Every number from ``start`` up to ``end``."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class RangeWithHoles:
    """Every number from ``start`` up to ``end`` but the holes, which ascend."""

    start: int
    end: int
    holes: PackedArray

    def __len__(self) -> int:
        return self.end - self.start - len(self.holes)


@dataclass(frozen=True, slots=True)
class RangeWithBitmap:
    """Those numbers from ``start`` up to ``end`` whose bit is set, least significant bit first."""

    start: int
    end: int
    bitmap: bytes

    def __len__(self) -> int:
        return int(self.bits().sum())

    def bits(self) -> NDArray[np.bool_]:
        """Of each number from ``start`` up to ``end``, whether it belongs to the segment."""
        stored = np.frombuffer(self.bitmap, np.uint8)
        return np.unpackbits(stored, bitorder="little", count=self.end - self.start).view(np.bool_)


@dataclass(frozen=True, slots=True)
class SortedArray:
    """Numbers that ascend."""

    array: PackedArray

    def __len__(self) -> int:
        return len(self.array)


@dataclass(frozen=True, slots=True)
class PlainArray:
    """Numbers in any order."""

    array: PackedArray

    def __len__(self) -> int:
        return len(self.array)


Segment = Range | RangeWithHoles | RangeWithBitmap | SortedArray | PlainArray


@dataclass(frozen=True, slots=True)
class VersionRun:
    """Rows that follow each other and have one version. The span counts rows of the fragment from 0."""

    span: Segment
    version: int


def segment_rows(segment: Segment) -> int:
    """How many numbers a segment has, also where that is more than ``len`` can tell."""
    match segment:
        case Range(start, end):
            return end - start
        case RangeWithHoles(start, end, holes):
            return end - start - len(holes)
        case _:
            return len(segment)


def parse_row_ids(data: bytes | memoryview, *, rows: int | None = None) -> tuple[Segment, ...]:
    """The segments of a stored sequence; Corrupt if they do not have as many ids as the fragment has ``rows``.

    >>> parse_row_ids(write_row_ids([Range(5, 9)]), rows=4)
    (Range(start=5, end=9),)
    """
    message = parse_message(wire.RowIdSequence, data, "row ids")
    segments = tuple(_read_segment(item) for item in message.segments)
    _check_rows("row ids", segments, rows)
    return segments


def write_row_ids(segments: Iterable[Segment]) -> bytes:
    """The bytes of the message that holds a sequence of row ids."""
    with storable("row ids"):
        return write_message(wire.RowIdSequence(segments=[_segment_message(item) for item in segments]))


def parse_versions(data: bytes | memoryview, *, rows: int | None = None) -> tuple[VersionRun, ...]:
    """The runs of a stored sequence of versions, which cover ``rows`` rows if that is given."""
    message = parse_message(wire.VersionSequence, data, "row versions")
    runs = tuple(VersionRun(_read_segment(item.span), item.version) for item in message.runs)
    _check_rows("row versions", (item.span for item in runs), rows)
    return runs


def write_versions(runs: Iterable[VersionRun]) -> bytes:
    """The bytes of the message that holds a sequence of versions.

    >>> parse_versions(write_versions([VersionRun(Range(0, 4), 7)]), rows=4)
    (VersionRun(span=Range(start=0, end=4), version=7),)
    """
    with storable("row versions"):
        stored = [wire.VersionRun(span=_segment_message(item.span), version=item.version) for item in runs]
        return write_message(wire.VersionSequence(runs=stored))


def _check_rows(what: str, segments: Iterable[Segment], rows: int | None) -> None:
    if rows is not None and (found := sum(map(segment_rows, segments))) != rows:
        raise Corrupt(f"{what}: there are {found}, but the fragment has {rows} rows")


def _read_segment(message: wire.Segment) -> Segment:
    match message.WhichOneof("segment"):
        case "range":
            return Range(*_bounds(message.range.start, message.range.end))
        case "range_with_holes":
            holed = message.range_with_holes
            start, end = _bounds(holed.start, holed.end)
            return RangeWithHoles(start, end, _holes(_read_array(holed.holes), start, end))
        case "range_with_bitmap":
            marked = message.range_with_bitmap
            start, end = _bounds(marked.start, marked.end)
            if len(marked.bitmap) != (end - start + 7) // 8:
                raise Corrupt(f"row ids: {end - start} numbers have a bitmap of {len(marked.bitmap)} bytes")
            return RangeWithBitmap(start, end, marked.bitmap)
        case "sorted_array":
            array = _read_array(message.sorted_array)
            if not _ascending(array.values()):
                raise Corrupt("row ids: an array said to be sorted does not ascend")
            return SortedArray(array)
        case "array":
            return PlainArray(_read_array(message.array))
        case _:
            raise unset_choice(message, "segment of row ids")


def _bounds(start: int, end: int) -> tuple[int, int]:
    if end < start:
        raise Corrupt(f"row ids: a range ends at {end}, before its start {start}")
    return start, end


def _ascending(values: NDArray[np.uint64]) -> bool:
    return bool((values[1:] > values[:-1]).all())


def _holes(array: PackedArray, start: int, end: int) -> PackedArray:
    values = array.values()
    if len(values) and (not _ascending(values) or int(values[0]) < start or int(values[-1]) >= end):
        raise Corrupt(f"row ids: holes of the range {start}..{end} lie outside it or do not ascend")
    return array


def _read_array(message: wire.Array) -> PackedArray:
    match message.WhichOneof("array"):
        case "u16_array":
            array = PackedArray(2, message.u16_array.offsets, message.u16_array.base)
        case "u32_array":
            array = PackedArray(4, message.u32_array.offsets, message.u32_array.base)
        case "u64_array":
            array = PackedArray(8, message.u64_array.values)
        case _:
            raise unset_choice(message, "array of row ids")
    if len(array.data) % array.width:
        raise Corrupt(f"row ids: an array of {array.width}-byte numbers has {len(array.data)} bytes")
    if array.base > _LARGEST - ((1 << 8 * array.width) - 1) and array.width < 8:
        largest = int(np.frombuffer(array.data, f"<u{array.width}").max(initial=0))
        if array.base > _LARGEST - largest:
            raise Corrupt(f"row ids: offsets up to {largest} from base {array.base} pass {_LARGEST}")
    return array


def _segment_message(segment: Segment) -> wire.Segment:
    match segment:
        case Range(start, end):
            return wire.Segment(range=wire.Segment.Range(start=start, end=end))
        case RangeWithHoles(start, end, holes):
            holed = wire.Segment.RangeWithHoles(start=start, end=end, holes=_array_message(holes))
            return wire.Segment(range_with_holes=holed)
        case RangeWithBitmap(start, end, bitmap):
            return wire.Segment(range_with_bitmap=wire.Segment.RangeWithBitmap(start=start, end=end, bitmap=bitmap))
        case SortedArray(array):
            return wire.Segment(sorted_array=_array_message(array))
        case PlainArray(array):
            return wire.Segment(array=_array_message(array))


def _array_message(array: PackedArray) -> wire.Array:
    if array.width == 8:
        return wire.Array(u64_array=wire.Array.Absolute(values=array.data))
    if array.width not in (2, 4):
        raise InvalidInput(f"numbers of {array.width} bytes, expected 2, 4 or 8")
    stored = wire.Array.Relative(base=array.base, offsets=array.data)
    return wire.Array(u16_array=stored) if array.width == 2 else wire.Array(u32_array=stored)
