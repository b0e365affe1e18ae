"""The order of values: keys and searches agree with what Python makes of single values."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from lancelet.index.order import Ascending, are_ascending, is_number, number_keys, orderable
from lancelet.index.queries import Between, Equals, IsIn, IsNull
from lancelet.index.sorting import sort_places
from lancelet.testing.index_cases import VALUE_TYPES, order_key, query_about, true_and_null, values_of


@pytest.mark.parametrize("name", VALUE_TYPES)
def test_searching_sorted_values_finds_what_comparing_each_finds(name: str) -> None:
    draw = random.Random(name)
    for count in (0, 1, 7, 200):
        values = values_of(VALUE_TYPES[name], count, draw)
        values = values.take(pa.array(sort_places(values)))
        assert are_ascending(values)
        ordered = Ascending(values)
        for _ in range(40):
            query = query_about(values, draw)
            expected = true_and_null(values, query)[0]
            match query:
                case IsNull():
                    assert ordered.nulls == len(expected)
                case Equals(value):
                    assert listed(ordered.ranges(value, value)) == expected
                case Between(low, high, low_inclusive, high_inclusive):
                    found = ordered.ranges(low, high, low_inclusive=low_inclusive, high_inclusive=high_inclusive)
                    assert listed(found) == expected
                case IsIn(several):
                    assert ordered.places(several).tolist() == expected


def listed(ranges: list[tuple[int, int]]) -> list[int]:
    """The places in some ranges."""
    return sorted(at for one in ranges for at in range(*one))


@pytest.mark.parametrize("name", VALUE_TYPES)
def test_places_come_in_order_and_keep_the_order_of_equals(name: str) -> None:
    draw = random.Random(name)
    values = values_of(VALUE_TYPES[name], 300, draw, distinct=15)
    listed = [None if one is None else one for one in _comparable(values)]
    expected = sorted(
        range(len(listed)),
        key=lambda at: (listed[at] is not None, listed[at], at) if listed[at] is not None else (False, 0, at),
    )
    assert sort_places(values).tolist() == expected
    assert not are_ascending(pa.concat_arrays([values.drop_null()[:1], pa.nulls(1, values.type)]))


def _comparable(values: pa.Array) -> list[object]:
    if is_number(values.type):
        missing = values.is_null().to_pylist()
        return [
            None if gone else key for gone, key in zip(missing, number_keys(values, exact=True).tolist(), strict=True)
        ]
    return [None if one is None else order_key(one) for one in values.to_pylist()]


def test_lists_and_structs_have_no_order() -> None:
    assert not orderable(pa.list_(pa.int8()))
    assert not orderable(pa.struct([("x", pa.int8())]))
    assert not orderable(pa.dictionary(pa.int8(), pa.string()))
    assert not orderable(pa.null())


def test_keys_of_a_slice_are_those_of_its_own_values() -> None:
    values = pa.array([5, None, -3, 7], pa.int16())
    assert number_keys(values[2:]).tolist() == [-3, 7]
    assert number_keys(pa.array([True, False, None])[1:]).tolist() == [0, 0]
