"""The first rows of an order, and counts, by indexes alone: the same rows as a look at all, for less."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.dataset.scan_options import ColumnOrdering
from lancelet.testing.index_cases import VALUE_TYPES, values_of

ROWS = 2_000
TYPES = ("int64", "uint8", "float64", "float16", "bool", "string", "binary", "decimal128", "date32", "timestamp_us")


def made(root: Path, name: str, *, stable: bool = False) -> Any:
    """A table with a BTREE, from which rows were deleted since, and to which others were added."""
    draw = random.Random(name)
    values = values_of(VALUE_TYPES[name], ROWS, draw, distinct=400, negative_nan=False)
    table = pa.table({"x": values, "key": np.arange(ROWS)})
    dataset = lancelet.write_dataset(table, root / "t", max_rows_per_file=700, enable_stable_row_ids=stable)
    dataset.create_scalar_index("x", lancelet.indices.IndexConfig("btree", {"zone_size": 64}))
    dataset.delete("key % 7 = 3")
    first = dataset.to_table(columns=["key"], order_by=["x"], limit=20)["key"].to_pylist()
    dataset.delete(f"key IN ({', '.join(map(str, first))})")
    return lancelet.write_dataset(table.slice(0, 50), root / "t", mode="append")


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
@pytest.mark.parametrize("name", TYPES)
def test_the_first_rows_by_index_are_those_of_all(tmp_path: Path, name: str, stable: bool) -> None:
    dataset = made(tmp_path, name, stable=stable)
    for ascending in (True, False):
        for limit, offset in ((1, 0), (5, 2), (25, 0)):
            order = [ColumnOrdering("x", ascending), ColumnOrdering("key")]
            asked: dict[str, Any] = {"order_by": order, "limit": limit, "offset": offset}
            found = dataset.to_table(**asked)
            expected = dataset.to_table(**asked, use_scalar_index=False)
            assert found["key"].to_pylist() == expected["key"].to_pylist()


def test_the_smallest_and_the_largest_value_are_read_from_few_rows(tmp_path: Path) -> None:
    values = np.random.default_rng(2).permutation(100_000)
    dataset = lancelet.write_dataset(pa.table({"x": values, "y": values * 2.0}), tmp_path / "t")
    dataset.create_scalar_index("x", "BTREE")
    for ascending, expected in ((True, 0), (False, 99_999)):
        scanner = dataset.scanner(columns=["y"], order_by=[ColumnOrdering("x", ascending)], limit=1)
        assert scanner.to_table()["y"].to_pylist() == [expected * 2.0]
        looked_at = re.search(r"looked at: ([\d,]+) rows", scanner.analyze_plan())
        assert looked_at is not None
        assert int(looked_at[1].replace(",", "")) <= 4096


def test_nulls_that_come_first_and_orders_of_few_values_are_found_without_the_index(tmp_path: Path) -> None:
    values = pa.array([None if number % 3 else math.nan for number in range(1000)], pa.float64())
    dataset = lancelet.write_dataset(pa.table({"x": values, "key": np.arange(1000)}), tmp_path / "t")
    dataset.create_scalar_index("x", "BTREE")
    for nulls_first in (False, True):
        order = [ColumnOrdering("x", nulls_first=nulls_first), ColumnOrdering("key", False)]
        found, expected = (
            dataset.to_table(order_by=order, limit=3, use_scalar_index=use)["key"].to_pylist() for use in (True, False)
        )
        assert found == expected == ([998, 997, 995] if nulls_first else [999, 996, 993])


def test_a_count_that_indexes_answer_reads_nothing_else(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    table = pa.table({"x": draw.permutation(20_000), "group": draw.integers(0, 9, 20_000)})
    dataset = lancelet.write_dataset(table, tmp_path / "t", max_rows_per_file=5_000)
    dataset.create_scalar_index("x", "BTREE")
    dataset.create_scalar_index("group", "BITMAP")
    for text in ("x < 50", "group = 3", "x < 2000 AND group != 3", "NOT (x < 900 OR group IN (1, 2))"):
        assert dataset.count_rows(text) == dataset.to_table(filter=text, use_scalar_index=False).num_rows
        analyzed = dataset.scanner(filter=text).analyze_plan(count_rows=True)
        found = re.search(r", (\d+) requests?, .* read(?: \((\d+) requests?)?", analyzed)
        assert found is not None
        assert found[1] == (found[2] or "0"), analyzed
