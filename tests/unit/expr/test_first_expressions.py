"""Conditions over rows: comparisons, logic, lists, ranges and arithmetic."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelet.errors import InvalidInput
from lancelet.expr import columns_of, conjuncts, keep, parse_filter

ROWS = pa.table(
    {
        "i": pa.array([1, 2, None, 4], pa.int32()),
        "f": [0.5, None, 2.5, 4.0],
        "s": ["a", "b", None, "it's"],
        "p": pa.array([{"x": 1}, {"x": 2}, None, {"x": None}], pa.struct([("x", pa.int8())])),
    }
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("i > 1", [1, 3]),
        ("1 < i", [1, 3]),
        ("i = 2.0", [1]),
        ("i > 1.5 AND f >= 4", [3]),
        ("i = 1 OR s = 'it''s'", [0, 3]),
        ("NOT (i = 1)", [1, 3]),
        ("i IN (1, 4)", [0, 3]),
        ("i NOT IN (1, 4)", [1]),
        ("i NOT IN (1, NULL)", []),
        ("i IS NULL", [2]),
        ("i IS NOT NULL", [0, 1, 3]),
        ("i BETWEEN 2 AND 4", [1, 3]),
        ("i * 2 - 1 = 3", [1]),
        ("p.x = 2", [1]),
        ("p.x IS NULL", [2, 3]),
        ("true", [0, 1, 2, 3]),
    ],
)
def test_a_condition_keeps_the_rows_for_which_it_is_true(text: str, kept: list[int]) -> None:
    assert keep(parse_filter(text, ROWS.schema), ROWS).nonzero()[0].tolist() == kept


def test_nans_of_both_signs_are_in_a_list_with_one() -> None:
    # Infinity less itself is a NaN whose sign is that of no literal.
    rows = pa.table({"f": [float("inf"), 1.0, float("nan"), None]})
    kept = keep(parse_filter("f - f IN (CAST('NaN' AS DOUBLE), 7)", rows.schema), rows)
    assert kept.nonzero()[0].tolist() == [0, 2]


def test_an_unknown_column_is_named_with_its_nearest_match() -> None:
    with pytest.raises(InvalidInput, match=r"no column 'p\.y'.*x"):
        parse_filter("p.y = 1", ROWS.schema)


def test_the_columns_and_conditions_of_a_filter_are_known_before_it_runs() -> None:
    expr = parse_filter("i > 1 AND (p.x = 2 AND i < 9)", ROWS.schema)
    assert columns_of(expr) == ("i", "p.x")
    assert len(conjuncts(expr)) == 3
