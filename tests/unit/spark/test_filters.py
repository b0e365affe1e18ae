"""Which of the filters that Spark offers are taken: those alone that mean the same to both."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import datasource as offered

from lancelet.expr import keep
from lancelet.expr.tree import Call, Column
from lancelet.spark.filters import take_filters, translated

POINT = pa.struct([("x", pa.int32()), ("n", pa.string())])
TYPES = {
    "i": pa.int32(),
    "u": pa.uint8(),
    "w": pa.uint64(),
    "f": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "l": pa.timestamp("s"),
    "n": pa.timestamp("ns"),
    "c": pa.decimal128(10, 2),
    "y": pa.binary(),
    "p": POINT,
    "k": pa.time64("us"),
}
OUTPUTS = {name: Column((name,), kind) for name, kind in TYPES.items()} | {
    "computed": Call("+", (Column(("i",), pa.int32()), Column(("i",), pa.int32())), pa.int32()),
    "renamed": Column(("p", "x"), pa.int32()),
}
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "item",
    [
        offered.EqualTo(("i",), 5),
        offered.GreaterThan(("u",), 5),
        offered.LessThanOrEqual(("w",), Decimal(2**63)),
        offered.EqualTo(("s",), "it's"),
        offered.EqualTo(("b",), True),
        offered.GreaterThanOrEqual(("d",), date(2026, 1, 1)),
        offered.LessThan(("t",), MOMENT),
        offered.LessThan(("l",), MOMENT.replace(tzinfo=None)),
        offered.EqualTo(("c",), Decimal("1.50")),
        offered.EqualTo(("y",), b"\0\xff"),
        offered.EqualTo(("p", "x"), 5),
        offered.EqualTo(("renamed",), 5),
        offered.In(("i",), [1, 2, 3]),
        offered.IsNull(("p",)),
        offered.IsNotNull(("f",)),
        offered.Not(offered.EqualTo(("i",), 5)),
        offered.Not(offered.In(("s",), ["a"])),
        offered.Not(offered.IsNull(("k",))),
        offered.EqualNullSafe(("i",), None),
        offered.EqualNullSafe(("i",), 5),
        offered.Not(offered.EqualNullSafe(("i",), 5)),
    ],
    ids=str,
)
def test_filters_of_one_meaning_are_taken(item: offered.Filter) -> None:
    found = translated(item, OUTPUTS)
    assert found is not None
    assert found.exact
    assert take_filters([item], OUTPUTS)[1] == []


@pytest.mark.parametrize(
    "item",
    [
        offered.EqualTo(("f",), 1.5),
        offered.LessThan(("f",), -2.0),
        offered.In(("f",), [1.5]),
        offered.In(("i",), [1, None]),
    ],
    ids=str,
)
def test_filters_that_may_let_too_much_pass_serve_to_skip_and_are_given_back(item: offered.Filter) -> None:
    found = translated(item, OUTPUTS)
    assert found is not None
    assert not found.exact
    condition, left = take_filters([item, offered.EqualTo(("i",), 1)], OUTPUTS)
    assert condition is not None
    assert left == [item]
    assert translated(offered.Not(item), OUTPUTS) is None


@pytest.mark.parametrize(
    "item",
    [
        offered.EqualTo(("f",), float("nan")),
        offered.EqualTo(("f",), 0.0),
        offered.GreaterThan(("f",), 1.0),
        offered.EqualTo(("computed",), 5),
        offered.EqualTo(("unknown",), 5),
        offered.EqualTo(("p", "z"), 5),
        offered.EqualTo(("i", "x"), 5),
        offered.EqualTo(("u",), 300),
        offered.EqualTo(("w",), Decimal("1.5")),
        offered.EqualTo(("l",), datetime(2026, 1, 1, 0, 0, 0, 5)),
        offered.EqualTo(("n",), datetime(2026, 1, 1)),
        offered.EqualTo(("t",), datetime(2026, 1, 1)),
        offered.EqualTo(("k",), 5),
        offered.EqualTo(("s",), 5),
        offered.EqualTo(("i",), True),
        offered.EqualTo(("c",), Decimal("1.555")),
        offered.In(("i",), [1, 2**40]),
        offered.In(("i",), []),
        offered.StringStartsWith(("s",), "50%"),
        offered.StringStartsWith(("i",), "5"),
        offered.EqualTo(("i",), None),
    ],
    ids=str,
)
def test_filters_that_mean_something_else_here_are_left_alone(item: offered.Filter) -> None:
    assert translated(item, OUTPUTS) is None
    assert take_filters([item], OUTPUTS) == (None, [item])


def test_conditions_hold_together_and_nulls_are_as_in_spark() -> None:
    rows = pa.table({"i": pa.array([1, 5, None, 9], pa.int32()), "s": ["a", "b", "c", None]})
    some = [offered.Not(offered.EqualNullSafe(("i",), 5)), offered.IsNotNull(("s",))]
    condition, left = take_filters(some, OUTPUTS)
    assert left == []
    assert condition is not None
    assert keep(condition, rows).tolist() == [True, False, True, False]
