"""Stored sequences of row ids and versions: every form, its bounds, and the smallest arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.protos import row_ids_pb2 as wire
from lancelet.format.row_ids import (
    PackedArray,
    PlainArray,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
    VersionRun,
    parse_row_ids,
    parse_versions,
    segment_rows,
    write_row_ids,
    write_versions,
)

U64 = st.integers(0, (1 << 64) - 1)


def packed(*values: int) -> PackedArray:
    """The values as they would be stored."""
    return PackedArray.of(np.array(values, np.uint64))


SEGMENTS: list[tuple[Segment, int]] = [
    (Range(0, 0), 0),
    (Range(5, 1 << 63), (1 << 63) - 5),
    (RangeWithHoles(5, 10, packed(6, 9)), 3),
    (RangeWithHoles(0, (1 << 64) - 1, packed(6, 1 << 40)), (1 << 64) - 3),
    (RangeWithBitmap(5, 14, b"\x81\x01"), 3),
    (SortedArray(packed(3, 70_000)), 2),
    (PlainArray(packed(7, 3, 1 << 50)), 3),
    (PlainArray(packed()), 0),
]


@pytest.mark.parametrize(("segment", "rows"), SEGMENTS)
def test_a_segment_survives_being_written_and_is_counted(segment: Segment, rows: int) -> None:
    assert parse_row_ids(write_row_ids([segment, Range(1, 2)]), rows=rows + 1) == (segment, Range(1, 2))
    assert segment_rows(segment) == rows
    runs = (VersionRun(segment, 7), VersionRun(Range(0, 1), 0))
    assert parse_versions(write_versions(runs), rows=rows + 1) == runs


@given(st.lists(U64, max_size=40))
def test_arrays_hold_any_numbers(values: list[int]) -> None:
    array = packed(*values)
    assert array.values().tolist() == values
    assert parse_row_ids(write_row_ids([PlainArray(array)])) == (PlainArray(array),)


@pytest.mark.parametrize(
    ("values", "width", "base"),
    [
        ((), 2, 0),
        ((1 << 60, (1 << 60) + 65535), 2, 1 << 60),
        ((9, 9 + 65536), 4, 9),
        ((0, (1 << 32) - 1), 4, 0),
        ((1, 1 << 33), 8, 0),
    ],
)
def test_arrays_take_the_fewest_bytes(values: tuple[int, ...], width: int, base: int) -> None:
    array = packed(*values)
    assert (array.width, array.base, len(array)) == (width, base, len(values))


def test_bits_count_from_the_least_significant() -> None:
    assert np.flatnonzero(RangeWithBitmap(5, 14, b"\x81\x01").bits()).tolist() == [0, 7, 8]


def array(**fields: object) -> wire.Segment:
    """A segment that is an array."""
    return wire.Segment(array=wire.Array(**fields))  # type: ignore[arg-type]


RANGE = wire.Segment.RangeWithHoles
U16 = wire.Array.Relative


@pytest.mark.parametrize(
    ("segment", "why"),
    [
        (wire.Segment(range=wire.Segment.Range(start=5, end=4)), "ends at 4, before"),
        (wire.Segment(range_with_holes=RANGE(start=5, end=9)), "array of row ids is empty"),
        (
            wire.Segment(range_with_holes=RANGE(start=5, end=9, holes=wire.Array(u16_array=U16(offsets=b"\x01\x00")))),
            "h",
        ),
        (wire.Segment(range_with_bitmap=wire.Segment.RangeWithBitmap(end=1 << 60, bitmap=b"a")), "bitmap of 1 bytes"),
        (wire.Segment(sorted_array=wire.Array(u16_array=U16(offsets=b"\x02\x00\x01\x00"))), "does not ascend"),
        (array(u16_array=U16(offsets=b"abc")), "has 3 bytes"),
        (array(u32_array=U16(offsets=b"abcde")), "has 5 bytes"),
        (array(u64_array=wire.Array.Absolute(values=b"abcd")), "has 4 bytes"),
        (array(u16_array=U16(base=(1 << 64) - 1, offsets=b"\x01\x00")), "pass 18446744073709551615"),
        (wire.Segment(), "is empty"),
    ],
)
def test_a_segment_that_makes_no_sense_is_corrupt(segment: wire.Segment, why: str) -> None:
    with pytest.raises(Corrupt, match=why):
        parse_row_ids(wire.RowIdSequence(segments=[segment]).SerializeToString())


def test_a_segment_of_an_unknown_form_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="segment of row ids"):
        parse_row_ids(b"\x0a\x02\x30\x01")


@pytest.mark.parametrize("rows", [0, 4, 6])
def test_sequences_of_another_length_than_the_fragment_are_corrupt(rows: int) -> None:
    with pytest.raises(Corrupt, match=f"there are 5, but the fragment has {rows} rows"):
        parse_row_ids(write_row_ids([Range(0, 5)]), rows=rows)
    with pytest.raises(Corrupt, match="there are 5"):
        parse_versions(write_versions([VersionRun(Range(0, 5), 1)]), rows=rows)


@pytest.mark.parametrize("segment", [Range(-1, 4), Range(0, 1 << 64), PlainArray(PackedArray(3, b"abc"))])
def test_what_cannot_be_stored_is_refused(segment: Segment) -> None:
    with pytest.raises(InvalidInput):
        write_row_ids([segment])
