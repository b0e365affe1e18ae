"""Coalescing makes few requests, and every wanted byte comes back from them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput
from lancelet.storage.ranges import coalesce, end_of, slice_back

CONTENT = bytes(at * 7 % 251 for at in range(3000))
RANGES = st.lists(st.tuples(st.integers(0, 2500), st.one_of(st.just(0), st.integers(0, 500))), max_size=30)


@settings(max_examples=400, deadline=None)
@given(RANGES, st.integers(0, 600), st.integers(1, 900))
def test_what_is_wanted_comes_back_and_no_byte_is_asked_twice(
    ranges: list[tuple[int, int]], gap: int, largest: int
) -> None:
    plan = coalesce(ranges, gap=gap, largest=largest)
    answers = [memoryview(CONTENT)[start : start + length] for start, length in plan.requests]
    found = [bytes(view) for view in slice_back(plan, answers)]
    assert found == [CONTENT[start : start + length] for start, length in ranges]
    assert all(0 < length <= largest for _, length in plan.requests)
    assert all(end_of(before) <= after[0] for before, after in zip(plan.requests, plan.requests[1:], strict=False))
    wanted = {at for start, length in ranges for at in range(start, start + length)}
    asked = {at for start, length in plan.requests for at in range(start, start + length)}
    assert wanted <= asked
    assert plan.total_bytes == len(asked)
    unwanted = sorted(asked - wanted)
    assert longest_run(unwanted) <= gap


@settings(max_examples=100, deadline=None)
@given(RANGES, st.integers(0, 600))
def test_neighbours_no_further_apart_than_the_gap_share_a_request(ranges: list[tuple[int, int]], gap: int) -> None:
    plan = coalesce(ranges, gap=gap, largest=10**9)
    for before, after in zip(plan.requests, plan.requests[1:], strict=False):
        assert after[0] - end_of(before) > gap
    assert all(len(pieces) == (1 if length else 0) for pieces, (_, length) in zip(plan.pieces, ranges, strict=True))


@pytest.mark.parametrize(
    ("ranges", "requests"),
    [
        ([], ()),
        ([(5, 0)], ()),
        ([(0, 10), (10, 10)], ((0, 20),)),
        ([(0, 10), (18, 2)], ((0, 20),)),
        ([(0, 10), (19, 2)], ((0, 10), (19, 2))),
        ([(50, 5), (0, 10), (50, 5), (52, 8)], ((0, 10), (50, 10))),
        ([(0, 250)], ((0, 84), (84, 84), (168, 82))),
        ([(0, 60), (60, 60)], ((0, 60), (60, 60))),
    ],
    ids=["none", "empty", "touching", "near", "far", "unsorted and repeated", "longer than a request", "full"],
)
def test_requests_are_as_expected(ranges: list[tuple[int, int]], requests: tuple[tuple[int, int], ...]) -> None:
    assert coalesce(ranges, gap=8, largest=100).requests == requests


def test_whole_ranges_are_views_and_only_split_ones_are_copies() -> None:
    plan = coalesce([(0, 10), (100, 250)], gap=0, largest=100)
    answers = [memoryview(CONTENT)[start : start + length] for start, length in plan.requests]
    whole, split = slice_back(plan, answers)
    assert whole.obj is CONTENT
    assert split.obj is not CONTENT
    assert split.readonly


@pytest.mark.parametrize("ranges", [[(-1, 4)], [(0, -1)]])
def test_negative_ranges_are_refused(ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(InvalidInput, match="negative"):
        coalesce(ranges, gap=0, largest=1)


@pytest.mark.parametrize("ranges", [[(2**64 - 1, 1)], [(2**63 - 5, 10)], [(0, 2**63)]])
def test_ranges_that_no_object_can_hold_are_corrupt(ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(Corrupt, match="damaged"):
        coalesce([(0, 1), *ranges], gap=0, largest=1)


@pytest.mark.parametrize(("gap", "largest"), [(-1, 10), (0, 0)])
def test_limits_that_make_no_sense_are_refused(gap: int, largest: int) -> None:
    with pytest.raises(InvalidInput, match="expected at least"):
        coalesce([(0, 1)], gap=gap, largest=largest)


def longest_run(numbers: list[int]) -> int:
    best = run = 0
    before = None
    for number in numbers:
        run = run + 1 if before is not None and number == before + 1 else 1
        best, before = max(best, run), number
    return best
