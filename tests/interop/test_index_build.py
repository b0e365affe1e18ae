"""Indexes that we build are used by pylance, and answer there as its own scan does; and we read them as our own."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from lancelet.config import default_options
from lancelet.index.kinds import kind_named
from lancelet.index.queries import Equals, IsNull, Query
from lancelet.ops.index.create import create_scalar_index
from lancelet.storage import open_store
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.index_cases import (
    VALUE_TYPES,
    lists_of,
    query_about,
    query_about_lists,
    sql_of,
    true_and_null,
    values_of,
)

warnings.filterwarnings("ignore", category=UserWarning)

ROWS, ROWS_PER_FRAGMENT = 900, 400


#: Types of indexes, with parameters that make even small tables interesting.
KINDS: dict[str, dict[str, object]] = {
    "BTREE": {"zone_size": 100},
    "BITMAP": {},
    "ZONEMAP": {"rows_per_zone": 30},
    "LABEL_LIST": {},
    "BLOOMFILTER": {"number_of_items": 30, "probability": 0.01},
}
OF_VALUES = [kind for kind in KINDS if kind != "LABEL_LIST"]
CASES = [(name, kind) for name in VALUE_TYPES for kind in KINDS if kind_named(kind).takes(VALUE_TYPES[name])]
FLOATS = [(name, kind) for name, kind in CASES if name.startswith("float")]


def make(path: Path, values: pa.Array, kind: str, **options: object) -> None:
    """A table of pylance's with an index of ours."""
    table = pa.table({"x": values, "row": pa.array(range(len(values)), pa.int32())})
    lance.write_dataset(table, path, max_rows_per_file=ROWS_PER_FRAGMENT, **options)
    create_scalar_index(open_snapshot(open_store(str(path))), "x", kind, parameters=KINDS[kind])


def found_by_pylance(path: Path, query: Query, kind: str, column: str = "x") -> list[int] | None:
    """The rows that pylance finds by the index; None for a query that says nothing."""
    dataset, text = lance.dataset(path), sql_of(query, column)
    if text is None:
        return None
    plan = dataset.scanner(columns=["row"], filter=text).explain_plan()
    # Of a boolean pylance makes "NOT x", which not all types of its indexes take, and Bloom filters know no ranges.
    used = "ScalarIndexQuery" in plan or "MaterializeIndex" in plan
    assert used or f"full_filter=NOT {column}," in plan or kind == "BLOOMFILTER"
    return sorted(dataset.to_table(columns=["row"], filter=text)["row"].to_pylist())


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_pylance_finds_by_our_index_what_a_look_at_each_row_finds(tmp_path: Path, name: str, kind: str) -> None:
    draw = random.Random(f"{name} {kind}")
    values = values_of(VALUE_TYPES[name], ROWS, draw, negative_nan=False)
    make(tmp_path / "t", values, kind)
    for _ in range(20):
        query = query_about(values, draw)
        found = found_by_pylance(tmp_path / "t", query, kind)
        assert found is None or found == true_and_null(values, query)[0], query


@pytest.mark.parametrize("name", [name for name in VALUE_TYPES if not name.startswith("float")])
def test_pylance_finds_lists_by_our_index(tmp_path: Path, name: str) -> None:
    draw = random.Random(name)
    values = lists_of(VALUE_TYPES[name], ROWS, draw)
    make(tmp_path / "t", values, "LABEL_LIST")
    for _ in range(20):
        query = query_about_lists(values, draw)
        if not isinstance(query, IsNull):
            assert found_by_pylance(tmp_path / "t", query, "LABEL_LIST") == true_and_null(values, query)[0], query


@pytest.mark.parametrize(("name", "kind"), FLOATS)
def test_pylance_finds_nan_of_both_signs_by_our_index_as_by_its_scan(tmp_path: Path, name: str, kind: str) -> None:
    draw = random.Random(f"{name} {kind}")
    values = values_of(VALUE_TYPES[name], ROWS, draw)
    make(tmp_path / "t", values, kind)
    scanned = lance.dataset(tmp_path / "t")
    for _ in range(20):
        query = query_about(values, draw)
        found, text = found_by_pylance(tmp_path / "t", query, kind), sql_of(query, "x")
        if text is not None:
            rows = scanned.scanner(columns=["row"], filter=text, use_scalar_index=False).to_table()["row"]
            assert found == sorted(rows.to_pylist()), query


@pytest.mark.parametrize("kind", OF_VALUES)
@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_tables_of_every_version_get_indexes_that_pylance_uses(tmp_path: Path, version: str, kind: str) -> None:
    draw = random.Random(version)
    values = values_of(pa.int64(), ROWS, draw, nulls=0)
    make(tmp_path / "t", values, kind, data_storage_version=version)
    for _ in range(10):
        query = query_about(values, draw)
        found = found_by_pylance(tmp_path / "t", query, kind)
        assert found is None or found == true_and_null(values, query)[0], query


@pytest.mark.parametrize("kind", OF_VALUES)
def test_rows_with_stable_ids_are_found_after_they_moved(tmp_path: Path, kind: str) -> None:
    draw = random.Random(kind)
    table = pa.table({"x": range(1000), "row": pa.array(range(1000), pa.int32())})
    dataset = lance.write_dataset(table, tmp_path / "t", max_rows_per_file=300, enable_stable_row_ids=True)
    dataset.update({"x": "x + 1000"}, where="x % 3 = 0")
    create_scalar_index(open_snapshot(open_store(str(tmp_path / "t"))), "x", kind)
    now = lance.dataset(tmp_path / "t").to_table()
    values, rows = now["x"].combine_chunks(), now["row"].to_pylist()
    for _ in range(15):
        query = query_about(values, draw)
        found = found_by_pylance(tmp_path / "t", query, kind)
        assert found is None or found == sorted(rows[at] for at in true_and_null(values, query)[0]), query


@pytest.mark.parametrize("kind", OF_VALUES)
@pytest.mark.parametrize("values", [[None, None], [1]])
def test_indexes_over_nulls_alone_and_over_one_row_are_used(
    tmp_path: Path, values: list[int | None], kind: str
) -> None:
    array = pa.array(values, pa.int64())
    make(tmp_path / "t", array, kind)
    assert found_by_pylance(tmp_path / "t", IsNull(), kind) == [at for at, value in enumerate(values) if value is None]
    assert found_by_pylance(tmp_path / "t", Equals(pa.scalar(1)), kind) == [
        at for at, value in enumerate(values) if value == 1
    ]


@pytest.mark.parametrize("kind", OF_VALUES)
def test_many_pages_and_values_built_within_little_memory_are_used(tmp_path: Path, kind: str) -> None:
    draw, numbers = random.Random(7), np.random.default_rng(7).integers(0, 30_000, 400_000)
    values = pa.array(numbers, mask=numbers % 13 == 0)
    path = tmp_path / "t"
    lance.write_dataset(pa.table({"x": values, "row": pa.array(range(len(values)), pa.int32())}), path)
    little = default_options().with_(memory_budget=100 * 2**20)
    create_scalar_index(open_snapshot(open_store(str(path)), options=little), "x", kind)
    for _ in range(12):
        query = query_about(values, draw)
        found = found_by_pylance(path, query, kind)
        assert found is None or found == true_and_null(values, query)[0], query


def test_texts_of_more_tokens_than_are_handed_out_at_once_are_found(tmp_path: Path) -> None:
    # Tokens with some hundred thousand rows each: together more than fit, and none too many by itself.
    draw = np.random.default_rng(3)
    numbers = draw.integers(0, 1000, (300_000, 2))
    values = pa.array([f"item {one} of shelf {other}" for one, other in numbers.tolist()])
    path = tmp_path / "t"
    lance.write_dataset(pa.table({"x": values, "row": pa.array(range(len(values)), pa.int32())}), path)
    create_scalar_index(open_snapshot(open_store(str(path))), "x", "NGRAM")
    dataset = lance.dataset(path)
    for text in ("item 123 of", "shelf 77", "lf 999", "item 5 of shelf 5"):
        condition = f"contains(x, '{text}')"
        assert "ScalarIndexQuery" in dataset.scanner(filter=condition).explain_plan()
        found = dataset.to_table(filter=condition, columns=["row"])["row"].to_pylist()
        assert found == [row for row, value in enumerate(values.to_pylist()) if text in value]
