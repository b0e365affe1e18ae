"""The doctor finds what a table needs, says what it would cost, and is content once that is done."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

import lancelet
from lancelet.ops.doctor import examined
from lancelet.optimize import Need
from lancelet.storage import open_store
from lancelet.table.snapshot import open_snapshot


def needs(dataset: lancelet.LanceDataset, **options: bool) -> dict[Need, object]:
    return {item.need: item for item in dataset.optimize.doctor(**options).findings}


def test_a_table_as_it_was_written_needs_nothing() -> None:
    dataset = lancelet.write_dataset(pa.table({"x": range(10)}), "memory://healthy")
    found = dataset.optimize.doctor()
    assert found.healthy
    assert not found.findings
    assert str(found) == "memory://healthy, version 1: nothing to do"


def test_what_the_doctor_says_is_done_by_what_it_says_to_call() -> None:
    dataset = lancelet.write_dataset(pa.table({"x": range(30)}), "memory://ailing-table", max_rows_per_file=10)
    dataset.create_scalar_index("x", "BTREE")
    dataset.insert(pa.table({"x": range(30, 70)}))
    dataset.delete("x % 2 = 0")
    found = needs(dataset)
    assert set(found) == {Need.COMPACT, Need.REINDEX}
    reindex, compact = found[Need.REINDEX], found[Need.COMPACT]
    assert (reindex.rows, compact.rows) == (20, 35)  # type: ignore[attr-defined]
    assert all(item.cost.bytes_read and item.cost.requests and item.cost.memory for item in found.values())  # type: ignore[attr-defined]
    eval(reindex.remedy)  # type: ignore[attr-defined]
    assert Need.REINDEX not in needs(dataset)
    eval(compact.remedy)  # type: ignore[attr-defined]
    assert dataset.optimize.doctor().healthy
    assert dataset.count_rows("x > 10") == 30


def test_many_segments_of_an_index_are_merged() -> None:
    dataset = lancelet.write_dataset(pa.table({"x": range(20)}), "memory://segmented", max_rows_per_file=2)
    segments = [dataset.create_index_uncommitted("x", "BTREE", fragment_ids=[at]) for at in range(10)]
    dataset.commit_existing_index_segments("x_idx", "x", segments)
    reindex = needs(dataset)[Need.REINDEX]
    assert "10 segments" in reindex.found  # type: ignore[attr-defined]
    eval(reindex.remedy)  # type: ignore[attr-defined]
    assert Need.REINDEX not in needs(dataset)
    assert len(dataset.describe_indices()[0].segments) == 1


def test_files_of_old_versions_are_counted_and_not_looked_for_where_nobody_asks() -> None:
    dataset = lancelet.write_dataset(pa.table({"x": range(5)}), "memory://aged")
    lancelet.write_dataset(pa.table({"x": range(6)}), dataset, mode="overwrite")
    dataset = lancelet.dataset("memory://aged")
    assert Need.CLEAN_UP not in needs(dataset)
    store = open_store("memory://aged")
    later = replace(open_snapshot(store))
    found = examined(later, versions=True, older_than=timedelta(0)).findings
    assert [item.need for item in found] == [Need.CLEAN_UP]
    assert found[0].bytes_freed > 0
    assert not examined(later, versions=False, older_than=timedelta(0)).findings
