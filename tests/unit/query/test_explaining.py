"""What explanations of scans say is so: indexes and fragments, requests and bytes, what was passed over and why."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.dataset.scan_options import ScanStatistics
from lancelet.format.indexes import IndexDetails, IndexMetadata
from lancelet.query.explaining import explain
from lancelet.query.facts import facts_of
from lancelet.query.scan import run_scan
from lancelet.storage.counting import CountingStore
from lancelet.storage.objects import process_objects
from lancelet.table.paths import Places

ROWS, FILES = 12_000, 4
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Four fragments that two indexes cover, and one that none does."""
    draw = np.random.default_rng(5)
    table = pa.table(
        {
            "x": draw.permutation(ROWS),
            "group": pa.array(draw.integers(0, 20, ROWS), pa.int32()),
            "word": [f"word {number % 301}" for number in range(ROWS)],
            "real": draw.random(ROWS),
        }
    )
    made = lancelet.write_dataset(table, tmp_path / "t", max_rows_per_file=ROWS // FILES)
    made.create_scalar_index("x", "BTREE")
    made.create_scalar_index("group", "BITMAP")
    return lancelet.write_dataset(table.slice(0, 500), tmp_path / "t", mode="append")


SCANS: dict[str, dict[str, Any]] = {
    "everything": {},
    "no-columns": {"columns": [], "with_row_id": True},
    "filter": {"filter": "word = 'word 7'", "columns": ["x"]},
    "index": {"filter": "x < 300"},
    "index-and-rest": {"filter": "x < 300 AND real < 0.5", "columns": ["word"]},
    "two-indexes": {"filter": "x < 5000 AND group = 3"},
    "no-index": {"filter": "x < 300", "use_scalar_index": False},
    "fast": {"filter": "x < 300", "fast_search": True},
    "ordered": {"order_by": ["real"], "limit": 7},
    "cut": {"limit": 10, "offset": 4000, "columns": ["word"]},
}


@pytest.mark.parametrize("options", SCANS.values(), ids=list(SCANS))
def test_requests_bytes_and_rows_of_an_analysis_are_those_that_stores_count(
    dataset: Any, options: dict[str, Any]
) -> None:
    scanner = dataset.scanner(**options)
    process_objects().clear()
    scanner.explain_plan()
    said = measured(scanner.analyze_plan())
    process_objects().clear()
    scanner.explain_plan()
    store = CountingStore(dataset.snapshot.store)
    batches = list(run_scan(scanner.plan, Places(store, dataset.snapshot.manifest)))
    counted = store.snapshot()
    assert said["rows"] == sum(batch.num_rows for batch in batches)
    assert said["batches"] == len(batches)
    assert said["requests"] == counted.total
    assert said["bytes"] == pytest.approx(counted.bytes_read, rel=0.06)


def measured(text: str) -> dict[str, float]:
    """The figures of an analysis."""
    found = re.search(r"measured: ([\d,]+) rows? in ([\d,]+) batch\w*, ([\d,]+) requests?, ([\d.,]+) (\w+) read", text)
    assert found is not None, text
    numbers = [float(found[at].replace(",", "")) for at in range(1, 5)]
    return dict(zip(("rows", "batches", "requests"), numbers, strict=False)) | {"bytes": numbers[3] * _UNITS[found[5]]}


@pytest.mark.parametrize("name", ["everything", "no-index", "filter", "index", "cut"])
def test_estimates_are_not_far_from_what_is_measured(dataset: Any, name: str) -> None:
    scanner = dataset.scanner(**SCANS[name])
    scanner.analyze_plan()
    text = scanner.analyze_plan()
    found = re.search(r"estimate: \D*([\d,]+) rows?, ([\d,]+) requests?, ([\d.,]+) (\w+)", text)
    assert found is not None, text
    said = measured(text)
    assert said["rows"] <= float(found[1].replace(",", ""))
    assert said["requests"] <= 4 * float(found[2].replace(",", "")) + 2
    if name == "everything":
        assert said["bytes"] == pytest.approx(float(found[3]) * _UNITS[found[4]], rel=0.1)


def test_an_explanation_tells_which_fragments_an_index_covers_and_what_is_left_to_check(dataset: Any) -> None:
    text = dataset.scanner(columns=["word"], filter="x < 300 AND real < 0.5").explain_plan()
    assert "index: x_idx (BTREE) x < 300: exact, covers 4 of 5 fragments" in text
    assert "4 fragments, 12,000 rows: by index" in text
    assert "checked for real < 0.5\n" in text
    assert "1 fragment, 500 rows: scanned, checked for x < 300 AND real < 0.5" in text
    assert "reads: real\n" in text
    assert "reads late, for the rows that pass: word" in text


def test_an_explanation_reads_no_rows(dataset: Any) -> None:
    scanner = dataset.scanner(filter="x < 300 AND real < 0.5")
    scanner.to_table()
    store = CountingStore(dataset.snapshot.store)
    places = Places(store, dataset.snapshot.manifest)
    explain(scanner.plan, places)
    before = store.snapshot().bytes_read
    # Metadata of the fragments that stand for all; nothing the second time.
    explain(scanner.plan, places)
    assert store.snapshot().bytes_read == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"details": IndexDetails("/lance.table.FutureIndexDetails")}, "is of type FutureIndexDetails"),
        ({"index_version": 99}, "is of version 99"),
    ],
    ids=["type", "version"],
)
def test_an_index_of_an_unknown_type_or_version_is_passed_over_and_named(
    dataset: Any, change: dict[str, Any], reason: str
) -> None:
    facts = facts_of(dataset.snapshot.manifest)
    known = facts.indexes(dataset.snapshot)
    expected = dataset.to_table(filter="x < 300", use_scalar_index=False)
    changed: list[IndexMetadata] = [replace(item, **change) for item in known]
    facts._indexes = tuple(changed)
    scanner = dataset.scanner(filter="x < 300")
    text = scanner.explain_plan()
    assert f"index skipped: index 'x_idx' {reason}" in text
    assert "5 fragments, 12,500 rows: scanned, checked for x < 300" in text
    assert scanner.to_table().equals(expected)


def test_who_asks_for_statistics_is_told_them_when_the_scan_is_through(dataset: Any) -> None:
    told: list[ScanStatistics] = []
    scanner = dataset.scanner(filter="x < 300", scan_stats_callback=told.append)
    batches = scanner.to_batches()
    next(batches)
    assert not told
    list(batches)
    assert told[0].all_counts["fragments_scanned"] == 5
    assert told[0].requests > 0
    assert told[0].bytes_read > 0
    assert scanner.count_rows() == dataset.count_rows("x < 300")
    assert len(told) == 2


def test_counts_are_analyzed_as_they_are_made(dataset: Any) -> None:
    text = dataset.scanner(filter="x < 300", fast_search=True).analyze_plan(count_rows=True)
    assert "columns: none" in text
    assert "measured: 300 rows, " in text


def test_searches_and_orders_are_explained_step_by_step(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(800, dtype=np.float32)), 4)
    dataset = lancelet.write_dataset(pa.table({"i": np.arange(200), "v": vectors}), tmp_path / "v")
    near = {"column": "v", "q": [1.0, 2, 3, 4], "k": 3}
    text = dataset.scanner(nearest=near, filter="i < 100", prefilter=True).explain_plan()
    assert "nearest: 3 rows by l2 of v, exact" in text
    assert "    filter: i < 100\n" in text
    text = dataset.scanner(nearest=near, filter="i < 100").explain_plan()
    assert "filter, for the rows found: i < 100" in text
    text = dataset.scanner(order_by=["i"], limit=2).explain_plan(verbose=True)
    assert "order: i ascending, nulls last" in text
    assert "reads for the rows handed out: i, v" in text
