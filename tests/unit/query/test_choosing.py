"""Whether an index is asked: where its answer would be most of the table a look at the rows costs less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.query.choosing import Choice, choose
from lancelet.query.opened import open_table

ROWS = 400_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table with an index over numbers in no order, over their groups, over texts, and over what is in order."""
    draw = np.random.default_rng(1)
    numbers = draw.permutation(ROWS)
    table = pa.table(
        {
            "x": numbers,
            "group": pa.array(numbers % 50, pa.int16()),
            "text": [f"a text of some length, number {number:09d}" for number in numbers.tolist()],
            "sorted": np.arange(ROWS),
        }
    )
    made = lancelet.write_dataset(table, tmp_path_factory.mktemp("choosing") / "t")
    made.create_scalar_index("x", "BTREE")
    made.create_scalar_index("group", "BITMAP")
    made.create_scalar_index("text", "BTREE")
    made.create_scalar_index("sorted", "ZONEMAP")
    return made


def choice_of(dataset: Any, text: str, *, always: bool = False) -> Choice:
    """What is chosen for a condition."""
    plan = dataset.scanner(filter=text).plan.filter
    return choose(plan, open_table(dataset.places), always=always)


def asked(choice: Choice) -> list[bool]:
    """For each part of the condition whether an index is asked."""
    return [found is not None for found in choice.plan.lookups]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 7", [True]),
        ("x < 4000", [True]),
        ("x < 300000", [False]),
        ("x >= 0", [False]),
        ("NOT x < 300000", [False]),
        ("group != 3", [True]),
        ("sorted < 399000", [True]),
        ("text < 'a text of some length, number 000100000'", [True]),
        ("x < 300000 AND group = 3", [False, True]),
        ("x = 5 AND text > 'a'", [True, False]),
        ("x < 4000 OR x > 399000", [True]),
        ("x < 200000 OR x > 300000", [False]),
    ],
)
def test_an_index_is_asked_where_that_is_expected_to_cost_less(dataset: Any, text: str, expected: list[bool]) -> None:
    choice = choice_of(dataset, text)
    assert asked(choice) == expected
    assert [reason is not None for reason in choice.declined] == [not one for one in expected]
    assert all(asked(choice_of(dataset, text, always=True)))
    keys = dataset.to_table(columns=["x"], filter=text)["x"]
    assert keys.equals(dataset.to_table(columns=["x"], filter=text, use_scalar_index=False)["x"])


def test_small_tables_are_always_answered_by_index(tmp_path: Path) -> None:
    small = lancelet.write_dataset(pa.table({"x": np.arange(1000)}), tmp_path / "t")
    small.create_scalar_index("x", "BTREE")
    assert asked(choice_of(small, "x >= 0")) == [True]


def test_an_index_that_is_passed_over_is_named_with_the_rows_it_would_find(dataset: Any) -> None:
    text = dataset.scanner(filter="x < 300000 AND group = 3").explain_plan()
    assert "index not asked: x_idx (BTREE) x < 300000: about " in text
    assert "index: group_idx (BITMAP) group = 3: exact, covers 1 of 1 fragment, about 8,000 rows" in text
    assert "checked for x < 300000\n" in text
