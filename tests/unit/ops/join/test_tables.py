"""Tables of keys: whatever the types, the pairs found are those that comparing all values finds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.ops.join.codes import alike, codes_of
from lancelet.ops.join.tables import KeyTable

NAN = float("nan")
#: Few values of each type, so that they meet; among them such as are easily taken for one another.
VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "int64": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63)]),
    "int8": (pa.int8(), [0, 1, -1, 127]),
    "uint64": (pa.uint64(), [0, 1, 2**64 - 1, 2**63]),
    "bool": (pa.bool_(), [True, False]),
    "float64": (pa.float64(), [0.0, -0.0, 1.5, NAN, math.inf, -math.inf]),
    "float32": (pa.float32(), [0.0, -0.0, 1.5, NAN]),
    "date": (pa.date32(), [date(1970, 1, 1), date(1969, 12, 31)]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(2020, 1, 1), datetime(2020, 1, 2)]),
    "duration": (pa.duration("ms"), [timedelta(0), timedelta(milliseconds=1)]),
    "decimal": (pa.decimal128(30, 2), [Decimal("0.10"), Decimal("-0.10"), Decimal("12345678901234567890.10")]),
    "decimal256": (pa.decimal256(50, 2), [Decimal("0.10"), Decimal("1234567890123456789012345678901.10")]),
    "string": (pa.string(), ["", "a", "A", "aa", "é", "a" * 40]),
    "large string": (pa.large_string(), ["", "a", "b" * 70]),
    "string view": (pa.string_view(), ["", "a", "a" * 40]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0"]),
    "fixed binary": (pa.binary(3), [b"abc", b"abd"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["", "a", "b"]),
    "null": (pa.null(), []),
    "struct": (
        pa.struct([("x", pa.int8()), ("y", pa.string())]),
        [{"x": 1, "y": "a"}, {"x": 1, "y": None}, {"x": None, "y": "a"}, {"x": None, "y": None}],
    ),
    "list": (pa.list_(pa.int16()), [[], [1], [1, 2], [2, 1], [None], [1, None], [None, 1]]),
    "list of strings": (pa.large_list(pa.string()), [[], ["a", ""], ["", "a"], ["a"], ["", ""]]),
    "list of lists": (pa.list_(pa.list_(pa.int8())), [[], [[]], [[], []], [[1], [2]], [[1, 2]], [None]]),
    "fixed-size list": (pa.list_(pa.float32(), 2), [[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [NAN, 1.0]]),
    "map": (pa.map_(pa.string(), pa.int8()), [[], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)]]),
}


def like(one: object, other: object, inside: bool = False) -> bool:
    """What the house means by values that are alike."""
    if one is None or other is None:
        return inside and one is None and other is None
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(like(one[key], other[key], inside=True) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(like(a, b, inside=True) for a, b in zip(one, other, strict=True))
    return one == other


def pairs(left: Sequence[Sequence[object]], right: Sequence[Sequence[object]]) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i, one in enumerate(zip(*left, strict=True))
        for j, other in enumerate(zip(*right, strict=True))
        if all(map(like, one, other))
    ]


def drawn(names: Sequence[str], data: st.DataObject) -> tuple[list[pa.Array], list[pa.Array]]:
    """Two sides of a few rows; each array is a slice of a larger one."""
    sides = []
    for _ in range(2):
        rows = data.draw(st.integers(0, 8))
        skipped = data.draw(st.integers(0, 2))
        arrays = []
        for name in names:
            kind, values = VALUES[name]
            column = st.lists(st.sampled_from([*values, None]), min_size=rows + skipped, max_size=rows + skipped)
            arrays.append(pa.array(data.draw(column), kind).slice(skipped))
        sides.append(arrays)
    return sides[0], sides[1]


@given(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3), st.data())
def test_the_pairs_of_one_key_are_those_that_comparing_values_finds(names: list[str], data: st.DataObject) -> None:
    table, asked = drawn(names, data)
    left, right = KeyTable(table).match(asked)
    expected = pairs([array.to_pylist() for array in asked], [array.to_pylist() for array in table])
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected


@pytest.mark.parametrize("name", VALUES)
def test_each_value_finds_itself_and_what_is_like_it(name: str) -> None:
    kind, values = VALUES[name]
    array = pa.array([*values, None], kind)
    left, right = KeyTable([array]).match([array])
    expected = pairs([array.to_pylist()], [array.to_pylist()])
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected


def test_keys_that_share_a_code_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    from lancelet.ops.join import tables

    monkeypatch.setattr(tables, "codes_of", lambda columns: codes_of(columns) * 0)
    left, right = KeyTable([pa.array(["a", "b", "a"])]).match([pa.array(["b", "c", "a"])])
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 1), (2, 0), (2, 2)]


def test_nulls_are_alike_where_rows_are_compared() -> None:
    one = pa.array([None, {"x": None}], pa.struct([("x", pa.int8())]))
    assert alike([one], [one]).tolist() == [True, True]
