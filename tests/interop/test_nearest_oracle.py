"""Exact nearest search through the dataset finds what pylance finds: metrics, filters before and after, projections."""

from __future__ import annotations

from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancelet

SIZE, ROWS = 8, 400


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """One table, deleted rows and an index among it, opened by both."""
    draw = np.random.default_rng(3)
    numbers = pa.array(draw.standard_normal(ROWS * SIZE).astype(np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(numbers, SIZE, mask=pa.array(draw.random(ROWS) < 0.05))
    path = tmp_path_factory.mktemp("nearest") / "t"
    table = pa.table({"i": np.arange(ROWS), "v": vectors})
    dataset = lance.write_dataset(table, path, max_rows_per_file=90)
    dataset.create_scalar_index("i", "BTREE")
    dataset.delete("i % 11 = 4")
    lance.write_dataset(table.slice(0, 30), path, mode="append")
    return lancelet.dataset(path), lance.dataset(path)


QUERY = [0.25] * SIZE
SEARCHES: dict[str, dict[str, Any]] = {
    "usual": {},
    "cosine": {"metric": "cosine"},
    "dot": {"metric": "dot"},
    "range": {"distance_range": (5.0, 8.0), "k": 300},
    "many": {"q": [QUERY, [1.0] * SIZE], "k": 4},
}
SCANS: dict[str, dict[str, Any]] = {
    "plain": {},
    "before": {"filter": "i < 60", "prefilter": True},
    "unindexed": {"filter": "i < 60", "prefilter": True, "use_scalar_index": False},
    "after": {"filter": "i < 200"},
    "distant": {"filter": "_distance > 6", "columns": ["i"]},
    "computed": {"columns": {"far": "_distance * 2", "j": "i + 1"}},
    "none": {"columns": ["i"], "disable_scoring_autoprojection": True},
    "limited": {"limit": 3, "offset": 2, "with_row_id": True},
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("scan", SCANS)
def test_a_search_through_the_dataset_finds_what_pylance_finds(tables: tuple[Any, Any], scan: str, search: str) -> None:
    asked = {"column": "v", "q": QUERY, **SEARCHES[search]}
    found, expected = (one.scanner(nearest=asked, **SCANS[scan]).to_table() for one in tables)
    assert found.schema.names == expected.schema.names
    for name in expected.schema.names:
        if name in ("_distance", "far"):
            assert np.allclose(found[name].to_numpy(), expected[name].to_numpy(), rtol=1e-5)
        else:
            assert found[name].to_pylist() == expected[name].to_pylist(), name
    assert tables[0].scanner(nearest=asked, **SCANS[scan]).count_rows() == expected.num_rows
