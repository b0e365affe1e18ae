"""Row sets against Python's sets and masks against SQL's truth tables, row by row."""

from __future__ import annotations

import operator
import pickle
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancelet.errors import Corrupt, InvalidInput, LanceletError
from lancelet.rows.deletions import DeletionVector
from lancelet.rows.masks import ALL_FALSE, ALL_TRUE, SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet, parse_row_set, union_all, write_row_set

#: Rows of three fragments; the last is far from the others.
UNIVERSE = [(fragment << 32) + offset for fragment in (0, 1, 2**32 - 1) for offset in range(6)]
#: A set as a list of its rows and of fragments that belong to it with every row.
SETS = st.tuples(st.sets(st.sampled_from(UNIVERSE)), st.sets(st.sampled_from([0, 1, 2**32 - 1]), max_size=1))
Model = tuple[set[int], set[int]]


def made(model: Model) -> tuple[RowSet, set[int]]:
    """A row set, and which rows of the universe are in it."""
    rows, fragments = model
    inside = {row for row in UNIVERSE if row in rows or row >> 32 in fragments}
    return RowSet.of(list(rows)) | RowSet.of_fragments(fragments), inside


def shown(rows: RowSet) -> set[int]:
    """The rows of the universe that a set holds."""
    return {row for row, inside in zip(UNIVERSE, rows.contains(UNIVERSE), strict=True) if inside}


@given(SETS, SETS)
def test_sets_combine_like_sets(one: Model, other: Model) -> None:
    (left, left_rows), (right, right_rows) = made(one), made(other)
    for combine in (operator.and_, operator.or_, operator.sub):
        assert shown(combine(left, right)) == combine(left_rows, right_rows)
    assert shown(union_all([left, right, left])) == left_rows | right_rows
    assert (left == right) == (not (left - right) and not (right - left))


@given(SETS)
def test_a_stored_set_is_read_back(model: Model) -> None:
    rows, _ = made(model)
    assert parse_row_set(write_row_set(rows)) == rows
    assert hash(pickle.loads(pickle.dumps(rows))) == hash(rows)


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 300), max_size=20), st.integers(0, 250))
def test_a_set_lists_its_rows_in_order(rows: list[int], begin: int) -> None:
    assert RowSet.of(rows).to_values().tolist() == sorted(set(rows))
    cut = RowSet.of(rows) & RowSet.of_range(begin, 250)
    assert cut.to_values().tolist() == sorted({row for row in rows if begin <= row < 250})


def test_every_row_of_a_fragment_less_some_is_every_other_row() -> None:
    rest = RowSet.of_fragments([3]) - RowSet.of([(3 << 32) + 5])
    assert len(rest) == 2**32 - 1
    assert rest.contains([(3 << 32) + 5, (3 << 32) + 6, 2**64 - 1]).tolist() == [False, True, False]
    assert (rest | RowSet.of([(3 << 32) + 5])) == RowSet.of_fragments([3])
    assert (rest & RowSet.of_live([(3, 7, None)])).offsets(3).tolist() == [0, 1, 2, 3, 4, 6]
    with pytest.raises(InvalidInput, match="every row of fragment 3"):
        RowSet.of_fragments([3]).to_values()


def test_a_range_goes_on_through_fragments() -> None:
    rows = RowSet.of_range(2**32 - 1, 2 * 2**32 + 3)
    assert len(rows) == 2**32 + 4
    assert rows.contains([2**32 - 2, 2**32 - 1, 2**32 + 9, 2**33 + 2, 2**33 + 3]).tolist() == [
        False,
        *[True] * 3,
        False,
    ]


def test_a_range_over_more_fragments_than_can_be_listed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too many to list"):
        RowSet.of_range(0, 2**64)


GOOD = write_row_set(RowSet.of([1, 2, 3, 2**40]))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "0 bytes"),
        (b"\xff\xff\xff\xff", "ends after 0"),
        (GOOD[:-1], "are left"),
        (GOOD + b"\0", "1 bytes after"),
        (b"\2\0\0\0" + b"\5\0\0\0\0\0\0\0" * 2, "fragment 5 twice"),
        (b"\1\0\0\0" + b"\5\0\0\0\4\0\0\0abcd", "fragment 5 of 4 bytes is no Roaring bitmap"),
    ],
)
def test_bytes_that_are_no_set_are_corrupt(data: bytes, what: str) -> None:
    with pytest.raises(Corrupt, match=what):
        parse_row_set(data)


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_sets_are_read_or_refused_by_a_typed_error(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(GOOD)
    for place, value in changes:
        damaged[place] = value
    try:
        assert len(parse_row_set(damaged)) >= 0
    except LanceletError:
        return


@given(st.lists(st.integers(0, 2**20), min_size=1), st.data())
def test_a_bitmap_damaged_within_is_never_trusted(offsets: list[int], data: st.DataObject) -> None:
    stored = bytearray(BitMap(offsets).serialize())
    stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    entry = b"\1\0\0\0\0\0\0\0" + len(stored).to_bytes(4, "little") + bytes(stored)
    try:
        rows = parse_row_set(entry)
    except LanceletError:
        return
    if len(rows) < 2**21:
        assert bool(np.all(np.diff(rows.to_values()) > 0))


#: A mask as (true, null, false) of the rows of the universe: each row's value by place.
VALUES = st.lists(st.sampled_from([True, False, None]), min_size=len(UNIVERSE), max_size=len(UNIVERSE))


def mask_of(values: list[bool | None], inverted: bool) -> SelectionMask:
    """A mask with these values, listing what is true or what is false."""
    listed = [row for row, value in zip(UNIVERSE, values, strict=True) if value is (not inverted)]
    nulls = [row for row, value in zip(UNIVERSE, values, strict=True) if value is None]
    return SelectionMask(RowSet.of(listed), RowSet.of(nulls), inverted)


def sql_and(one: bool | None, other: bool | None) -> bool | None:
    """SQL's and."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def sql_not(value: bool | None) -> bool | None:
    """SQL's not."""
    return None if value is None else not value


def sql_or(one: bool | None, other: bool | None) -> bool | None:
    """SQL's or."""
    return sql_not(sql_and(sql_not(one), sql_not(other)))


@given(st.lists(st.tuples(VALUES, st.booleans(), st.booleans(), st.sampled_from("&|")), min_size=1, max_size=5))
def test_masks_combine_as_sql_combines_conditions(
    terms: list[tuple[list[bool | None], bool, bool, str]],
) -> None:
    def step(
        so_far: tuple[SelectionMask, list[bool | None]], term: tuple[list[bool | None], bool, bool, str]
    ) -> tuple[SelectionMask, list[bool | None]]:
        (mask, model), (values, inverted, negated, sign) = so_far, term
        other = mask_of(values, inverted)
        if negated:
            other, values = ~other, [sql_not(value) for value in values]
        combined = [(sql_and if sign == "&" else sql_or)(a, b) for a, b in zip(model, values, strict=True)]
        return (mask & other if sign == "&" else mask | other), combined

    first_values, first_inverted, _, _ = terms[0]
    mask, model = reduce(step, terms[1:], (mask_of(first_values, first_inverted), first_values))
    assert mask.value_of(UNIVERSE).tolist() == model
    assert mask.selects(UNIVERSE).tolist() == [value is True for value in model]
    live = RowSet.of(UNIVERSE[::2])
    kept = list(zip(UNIVERSE, model, strict=True))[::2]
    for among, wanted in ((mask.true_among, True), (mask.false_among, False), (mask.null_among, None)):
        assert among(live).to_values().tolist() == [row for row, value in kept if value is wanted]
    assert mask.is_equivalent(mask_of(model, inverted=True), RowSet.of(UNIVERSE))


def test_masks_speak_of_rows_they_have_never_heard_of() -> None:
    assert (~SelectionMask(RowSet.of([1]))).selects([1, 2**50]).tolist() == [False, True]
    live = RowSet.of_live([(7, 4, DeletionVector([1, 2])), (9, 0, None)])
    assert ALL_TRUE.true_among(live) == live
    assert not ALL_FALSE.true_among(live)
    assert (~ALL_TRUE) == ALL_FALSE
    assert live.offsets(7).tolist() == [0, 3]
    assert RowSet.of([]) == NO_ROWS
