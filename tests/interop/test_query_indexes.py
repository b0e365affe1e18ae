"""Filters answered by indexes: the rows are those of a scan, whatever happened to the table since they were built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.query.count import count_request
from lancelet.query.request import ScanRequest, request_for
from lancelet.query.scan import plan_scan, read_table
from lancelet.rows.row_sets import RowSet
from lancelet.storage import open_store
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot

ROWS = 3_000
WORDS = ("alpha", "beta", "gamma", "delta", "alphabet", "", "épée")


def rows(first: int, count: int, draw: np.random.Generator) -> pa.Table:
    missing = draw.random(count) < 0.08
    return pa.table(
        {
            "key": np.arange(first, first + count),
            "number": pa.array(draw.integers(0, 500, count), mask=missing),
            "group": pa.array(draw.integers(0, 12, count).astype(np.int16), mask=np.roll(missing, 1)),
            "word": pa.array(
                np.array(WORDS)[draw.integers(0, len(WORDS), count)], pa.string(), mask=np.roll(missing, 2)
            ),
            "real": pa.array(draw.standard_normal(count), mask=np.roll(missing, 3)),
            "flag": pa.array(draw.random(count) < 0.5, mask=np.roll(missing, 4)),
        }
    )


INDEXES = {"number": "BTREE", "group": "BITMAP", "word": "BITMAP", "real": "ZONEMAP", "key": "BTREE", "flag": "BITMAP"}


def made(root: Path, seed: int, *, stable: bool) -> Snapshot:
    """A table with indexes, and with rows added, changed and deleted after they were built."""
    draw = np.random.default_rng(seed)
    dataset = lance.write_dataset(rows(0, ROWS, draw), root, max_rows_per_file=700, enable_stable_row_ids=stable)
    for column, kind in INDEXES.items():
        dataset.create_scalar_index(column, kind)  # type: ignore[arg-type]
    dataset.delete("key % 17 = 3")
    dataset.update({"number": "number + 1000", "word": "'changed'"}, where="key % 23 = 5")
    lance.write_dataset(rows(ROWS, 400, draw), root, mode="append")
    if seed % 2:
        lance.dataset(root).optimize.optimize_indices()
        lance.write_dataset(rows(ROWS + 400, 100, draw), root, mode="append")
    lance.dataset(root).delete("key % 31 = 7")
    return open_snapshot(open_store(root))


def condition(draw: Random) -> str:
    simple = (
        lambda: f"number = {draw.randrange(520)}",
        lambda: f"number > {draw.randrange(1200)}",
        lambda: f"number BETWEEN {draw.randrange(500)} AND {draw.randrange(1600)}",
        lambda: f"number IN ({draw.randrange(500)}, {draw.randrange(1500)}, 3)",
        lambda: f"number IN ({draw.randrange(500)}, NULL)",
        lambda: f"group = {draw.randrange(13)}",
        lambda: f"group != {draw.randrange(13)}",
        lambda: f"group IS {'NOT ' * draw.randrange(2)}NULL",
        lambda: f"word = '{draw.choice(WORDS)}'",
        lambda: "word LIKE 'alph%'",
        lambda: "word >= 'b'",
        lambda: f"real > {draw.uniform(-2, 2):.3f}",
        lambda: "flag",
        lambda: f"key < {draw.randrange(ROWS)}",
        lambda: f"key % {draw.randrange(2, 7)} = 1",
    )
    text = draw.choice(simple)()
    for _ in range(draw.randrange(4)):
        other = draw.choice(simple)()
        text = f"({text}) {draw.choice(['AND', 'OR'])} ({f'NOT ({other})' if draw.random() < 0.3 else other})"
    return f"NOT ({text})" if draw.random() < 0.2 else text


def keys(snapshot: Snapshot, request: ScanRequest) -> list[int]:
    plan = plan_scan(snapshot, request)
    found = read_table(plan, Places.of(snapshot))
    assert count_request(snapshot, request) == found.num_rows
    return found["key"].to_pylist()


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
@pytest.mark.parametrize("seed", range(4), ids=lambda seed: f"seed-{seed}")
def test_answers_of_indexes_are_those_of_scans(tmp_path: Path, seed: int, stable: bool) -> None:
    snapshot = made(tmp_path / "table", seed, stable=stable)
    dataset: Any = lance.dataset(tmp_path / "table")
    draw = Random(seed)
    used = 0
    for _ in range(40):
        text = condition(draw)
        request = request_for(snapshot, ["key", "word"], filter=text)
        plan = plan_scan(snapshot, request)
        used += plan.filter is not None and plan.filter.uses_indexes
        scanned = keys(snapshot, replace(request, use_scalar_index=False))
        assert keys(snapshot, request) == scanned, text
        assert dataset.to_table(columns=["key"], filter=text, use_scalar_index=False)["key"].to_pylist() == scanned, (
            text
        )
    assert used > 20


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
def test_fast_searches_leave_out_what_no_index_covers(tmp_path: Path, stable: bool) -> None:
    snapshot = made(tmp_path / "table", 2, stable=stable)
    dataset: Any = lance.dataset(tmp_path / "table")
    for text in ("number < 100", "group = 3", "group = 3 AND word != 'beta'"):
        fast = replace(request_for(snapshot, ["key"], filter=text), fast_search=True)
        expected = dataset.scanner(columns=["key"], filter=text, fast_search=True).to_table()["key"].to_pylist()
        assert sorted(keys(snapshot, fast)) == sorted(expected), text


FAST = (
    None,
    "k < 50",
    "x < 50",
    "x < 50 AND y = 3",
    "x < 50 OR y = 3",
    "x < 50 AND k % 2 = 0",
    "x < 50 OR k = 3",
    "NOT (x < 50)",
    "z = 2 AND x < 80",
    "NOT (y = 3) AND x < 90",
    "s = 'w3' AND x < 90",
    "x < 50 AND y = 3 AND z = 1",
)


def test_fast_searches_look_only_where_all_indexes_that_are_asked_do(tmp_path: Path) -> None:
    numbers = np.arange(100)
    words = [f"w{number % 13}" for number in range(100)]
    table = pa.table({"k": numbers, "x": numbers, "y": numbers % 10, "z": numbers % 7, "s": words})
    root = tmp_path / "t"
    dataset: Any = lance.write_dataset(table, root, max_rows_per_file=40)
    dataset.create_scalar_index("x", "BTREE")
    for first, columns in ((0, ("y", "s")), (30, ("z",)), (60, ())):
        dataset = lance.write_dataset(table.slice(first, 30), root, mode="append")
        for column in columns:
            dataset.create_scalar_index(column, "ZONEMAP" if column == "s" else "BITMAP")
    ours = lancelet.dataset(root)
    for text in FAST:
        for options in ({}, {"limit": 5}, {"use_scalar_index": False}):
            asked: dict[str, Any] = {"columns": ["k"], "filter": text, "fast_search": True, **options}
            found, expected = (one.scanner(**asked).to_table()["k"].to_pylist() for one in (ours, lance.dataset(root)))
            assert found == expected, asked
            assert ours.scanner(**asked).count_rows() == len(expected)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable-ids"])
def test_row_ids_can_be_allowed_and_blocked(tmp_path: Path, stable: bool) -> None:
    snapshot = made(tmp_path / "table", 0, stable=stable)
    everything = read_table(plan_scan(snapshot, request_for(snapshot, ["key", "_rowid"])), Places.of(snapshot))
    ids = np.asarray(everything["_rowid"])
    some, others = RowSet.of(ids[::3]), RowSet.of(ids[::6])
    for text in (None, "number < 300", "key % 2 = 0"):
        request = request_for(snapshot, ["key", "_rowid"], filter=text)
        whole = read_table(plan_scan(snapshot, request), Places.of(snapshot))
        allowed = read_table(plan_scan(snapshot, replace(request, allowed_rows=some)), Places.of(snapshot))
        assert allowed.equals(
            whole.filter(pa.array(np.isin(np.asarray(whole["_rowid"]), ids[::3]))).combine_chunks()
        ) or (allowed.to_pydict() == whole.filter(pa.array(np.isin(np.asarray(whole["_rowid"]), ids[::3]))).to_pydict())
        both = replace(request, allowed_rows=some, blocked_rows=others)
        left = sorted(set(ids[::3].tolist()) - set(ids[::6].tolist()))
        found = read_table(plan_scan(snapshot, both), Places.of(snapshot))
        assert found.to_pydict() == whole.filter(pa.array(np.isin(np.asarray(whole["_rowid"]), left))).to_pydict()


def test_both_ends_of_a_range_are_one_question_wherever_they_stand(tmp_path: Path) -> None:
    snapshot = made(tmp_path / "t", 3, stable=False)
    apart = "number >= 100 AND group IN (1, 2) AND number < 200"
    plan = plan_scan(snapshot, request_for(snapshot, ["key"], filter=apart))
    assert plan.filter is not None
    assert len(plan.filter.parts) == 2
    assert all(plan.filter.lookups)
    between = "number BETWEEN 100 AND 199 AND group IN (1, 2)"
    found = read_table(plan, Places.of(snapshot))
    assert found.equals(
        read_table(plan_scan(snapshot, request_for(snapshot, ["key"], filter=between)), Places.of(snapshot))
    )
    assert found.num_rows
