"""Row-id and version sequences against plain lists: cutting, taking, joining, and their stored forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput, LanceletError
from lancelet.format.row_ids import (
    PackedArray,
    PlainArray,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    SortedArray,
    write_row_ids,
)
from lancelet.rows.deletions import DeletionVector
from lancelet.rows.segments import from_segments, read_sequence, segment_of, to_segments, write_sequence
from lancelet.rows.sequences import RowIdSequence, concatenate
from lancelet.rows.versions import (
    VersionSequence,
    concatenate_versions,
    read_version_sequence,
    write_version_sequence,
)

#: A few stretches of ids that ascend, leave gaps, fall back or touch, near 0 or around 2**63.
STRETCHES = st.lists(
    st.tuples(st.integers(0, 300) | st.integers(2**63 - 200, 2**63), st.integers(1, 90), st.integers(1, 3)),
    max_size=6,
)


def listed(stretches: list[tuple[int, int, int]]) -> list[int]:
    """The ids of some stretches, each once."""
    ids = [first + step * place for first, count, step in stretches for place in range(count)]
    return list(dict.fromkeys(ids))


IDS = STRETCHES.map(listed)


@given(IDS, st.integers(0, 400), st.integers(0, 400))
def test_a_sequence_behaves_like_the_list_of_its_ids(ids: list[int], begin: int, end: int) -> None:
    sequence = RowIdSequence.from_ids(ids)
    assert len(sequence) == len(ids)
    assert sequence.to_ids().tolist() == ids
    assert sequence.slice(begin, end).to_ids().tolist() == ids[begin:end]
    assert sequence.take(range(0, len(ids), 3)).tolist() == ids[::3]
    assert concatenate([sequence.slice(0, begin), sequence.slice(begin, len(ids))]) == sequence


@given(IDS, st.sets(st.integers(0, 400)))
def test_deleted_rows_take_their_ids_with_them(ids: list[int], deleted: set[int]) -> None:
    vector = DeletionVector(sorted(row for row in deleted if row < len(ids)))
    sequence = RowIdSequence.from_ids(ids)
    left = {row: value for row, value in enumerate(ids) if row not in deleted}
    assert sequence.without(vector).to_ids().tolist() == list(left.values())
    firsts, lengths, positions = (part.tolist() for part in sequence.live_runs(vector))
    runs = list(zip(firsts, lengths, positions, strict=True))
    assert {row + place: first + place for first, rows, row in runs for place in range(rows)} == left


@given(IDS)
def test_stored_sequences_give_back_the_ids(ids: list[int]) -> None:
    sequence = RowIdSequence.from_ids(ids)
    assert read_sequence(write_sequence(sequence), rows=len(ids)) == sequence
    assert from_segments([segment_of(sequence)]) == sequence


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([], Range(0, 0)),
        ([42], Range(42, 43)),
        (range(100, 200), Range(100, 200)),
        ([value for value in range(1000) if value != 100], RangeWithHoles),
        (range(0, 1000, 2), RangeWithBitmap),
        (range(0, 100_000, 50), SortedArray),
        (range(50, 0, -1), PlainArray),
    ],
)
def test_one_stretch_is_stored_in_the_form_for_its_density(ids: object, expected: object) -> None:
    sequence = RowIdSequence.from_ids(list(ids))  # type: ignore[call-overload]
    (segment,) = to_segments(sequence)
    assert segment == expected if isinstance(expected, Range) else type(segment) is expected


@pytest.mark.parametrize(
    ("ids", "at_most"),
    [
        pytest.param([*range(10_000), *np.random.default_rng(1).permutation(100) + 20_000], 300, id="tail in no order"),
        pytest.param([*range(50_000, 60_000), *range(10_000)], 32, id="two ranges, the later first"),
        pytest.param([*range(20_000, 40_000, 2), *range(0, 20_000, 2)], 5200, id="two bitmaps, the later first"),
        pytest.param([*range(10_000), *range(2**40, 2**40 + 10_000)], 48, id="two ranges far apart"),
        pytest.param(np.random.default_rng(1).permutation(10_000), 20_100, id="no order at all"),
    ],
)
def test_several_segments_keep_mixed_sequences_small(ids: object, at_most: int) -> None:
    sequence = RowIdSequence.from_ids(ids)  # type: ignore[arg-type]
    stored = write_sequence(sequence)
    assert read_sequence(stored) == sequence
    assert len(stored) <= at_most


def test_a_range_of_any_length_costs_two_numbers() -> None:
    sequence = read_sequence(write_row_ids([Range(7, 7 + 2**32)]))
    assert len(sequence) == 2**32
    assert sequence.nbytes == 16
    assert sequence.take([2**32 - 1]).tolist() == [2**32 + 6]
    assert len(sequence.slice(2**31, 2**31 + 2)) == 2


def test_more_ids_than_a_fragment_can_have_rows_are_corrupt() -> None:
    with pytest.raises(Corrupt, match="expected at most 4294967296"):
        read_sequence(write_row_ids([Range(0, 2**31)] * 3))
    with pytest.raises(Corrupt, match="3 row ids for 4 rows"):
        RowIdSequence.from_range(0, 3).check(4)
    with pytest.raises(Corrupt, match="the fragment has 3 rows"):
        RowIdSequence.from_range(0, 3).without(DeletionVector([3]))


@pytest.mark.parametrize("position", [-1, 3, 2**40])
def test_positions_outside_are_refused(position: int) -> None:
    with pytest.raises(InvalidInput, match="outside the sequence of 3 rows"):
        RowIdSequence.from_range(0, 3).take([position])
    with pytest.raises(InvalidInput, match="outside the sequence of 3 rows"):
        VersionSequence.uniform(1, 3).take([position])


@given(st.data())
def test_damaged_sequences_are_read_or_refused_by_a_typed_error(data: st.DataObject) -> None:
    holes = PackedArray.of(np.array([3, 9], np.uint64))
    array = PackedArray.of(np.array([2**40, 2**40 + 3], np.uint64))
    stored = write_row_ids(
        [RangeWithHoles(0, 12, holes), RangeWithBitmap(20, 36, b"\x55\x0f"), SortedArray(array), PlainArray(holes)]
    )
    damaged = bytearray(stored)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        sequence = read_sequence(bytes(damaged))
    except LanceletError:
        return
    assert int(sequence.lengths.sum()) == len(sequence) <= 2**32


VERSIONS = st.lists(st.integers(1, 3), max_size=40)


@given(VERSIONS, st.integers(0, 40), st.integers(0, 40), st.sets(st.integers(0, 40)))
def test_versions_behave_like_the_list_of_them(versions: list[int], begin: int, end: int, deleted: set[int]) -> None:
    sequence = VersionSequence.from_versions(versions)
    assert sequence.to_versions().tolist() == versions
    assert sequence.slice(begin, end).to_versions().tolist() == versions[begin:end]
    assert sequence.take(range(len(versions))).tolist() == versions
    assert concatenate_versions([sequence.slice(0, begin), sequence.slice(begin, len(versions))]) == sequence
    vector = DeletionVector(sorted(row for row in deleted if row < len(versions)))
    left = [version for row, version in enumerate(versions) if row not in deleted]
    assert sequence.without(vector).to_versions().tolist() == left
    assert read_version_sequence(write_version_sequence(sequence), rows=len(versions)) == sequence
