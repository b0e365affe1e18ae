"""Versions, indexes, searches, clones and cleanup through the table object: those of the local API and of pylance."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from pyspark.sql import SparkSession

import lancelet
from lancelet.errors import AlreadyExists, InvalidInput, NotFound
from lancelet.ops.journal import ATTEMPTS
from lancelet.spark import table_indexes
from lancelet.spark.table import LanceTable
from lancelet.storage import open_store

SIZE = 8


def rows(first: int, count: int) -> pa.Table:
    draw = np.random.default_rng(first)
    vectors = draw.standard_normal((count, SIZE)).astype(np.float32)
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "label": pa.array([None if at % 11 == 0 else f"l{at % 5}" for at in range(first, first + count)]),
            "x": draw.integers(0, 1000, count),
            "vector": pa.FixedSizeListArray.from_arrays(vectors.reshape(-1), SIZE),
        }
    )


def make(place: Path, count: int = 400, **options: Any) -> LanceTable:
    lance.write_dataset(rows(0, count), str(place), max_rows_per_file=60, **options)
    return LanceTable.forPath(SparkSession.active(), place)


def told(place: Path) -> list[str]:
    """What the journal still tells of jobs."""
    return [entry.path for entry in open_store(str(place)).list_from(ATTEMPTS)]


def test_the_history_says_how_each_version_was_made(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.delete("id < 10", message="the first ten")
    table.update("id = 20", {"x": "-1"})
    lance.dataset(str(tmp_path / "t")).tags.create("good", 2)
    history = table.history().collect()
    assert [(row.version, row.operation, row.message, row.read_version) for row in history] == [
        (3, "Update", None, 2),
        (2, "Delete", "the first ten", 1),
        (1, "Overwrite", None, 0),
    ]
    assert [row.tags for row in history] == [[], ["good"], []]
    assert [row.metrics["num_rows"] for row in history] == [390, 390, 400]
    assert [row.metrics["num_rows_change"] for row in history] == [0, -10, 400]
    assert "lancelet.job" in " ".join(history[1].properties) or history[1].properties
    known = {item["version"]: item["timestamp"] for item in lance.dataset(str(tmp_path / "t")).versions()}
    for row in history:
        assert abs(row.timestamp - known[row.version]) < timedelta(milliseconds=1)
    assert [row.version for row in table.history(1).collect()] == [3]
    assert [row.version for row in LanceTable.forPath(spark, tmp_path / "t", version=2).history().collect()] == [2, 1]
    with pytest.raises(InvalidInput, match="limit is 0"):
        table.history(0)


def test_the_detail_is_one_row_of_what_there_is(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", enable_stable_row_ids=True)
    table.delete("id < 10")
    table.createIndex("label", "BITMAP")
    row = table.detail().first()
    assert row is not None
    expected = ("lance", str(tmp_path / "t"), None, 3, 390, 10, 7, 7, ["label_idx"], "2.1", True)
    names = ("format", "uri", "branch", "version", "num_rows", "num_deleted_rows", "num_fragments", "num_data_files")
    found = (*(row[name] for name in names), row.indexes, row.data_storage_version, row.stable_row_ids)
    assert found[:-2] == expected[:-2]
    assert found[-1] is True
    assert found[-2] == lance.dataset(str(tmp_path / "t")).data_storage_version
    assert row.created_at <= row.last_modified


def test_earlier_versions_are_restored_by_number_and_moment(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    moment = datetime.now(UTC)
    table.delete("id < 10")
    figures = table.restoreToVersion(1, message="back")
    assert (figures.version, figures.restored_version, figures.num_rows) == (3, 1, 400)
    assert lance.dataset(str(tmp_path / "t")).count_rows() == 400
    assert table.history(1).collect()[0].message == "back"
    table.delete("id < 20")
    assert table.restoreToTimestamp(moment.isoformat()).restored_version == 1
    assert lance.dataset(str(tmp_path / "t")).count_rows() == 400
    with pytest.raises(NotFound):
        table.restoreToVersion(77)
    with pytest.raises(NotFound, match="earlier than the first version"):
        table.restoreToTimestamp("2001-01-01")
    with pytest.raises(InvalidInput, match="no moment"):
        table.restoreToTimestamp("yesterday")


def test_tags_and_branches_are_those_that_pylance_sees(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.delete("id < 10")
    assert table.tag("before", 1) == 1
    assert table.tag("now") == 2
    assert table.tag("now") == 2
    with pytest.raises(AlreadyExists):
        table.tag("now", 1)
    assert table.tag("now", 1, replace=True) == 1
    assert lance.dataset(str(tmp_path / "t"), version="now").count_rows() == 400
    assert [(row.name, row.version) for row in table.tags().collect()] == [("before", 1), ("now", 1)]
    table.deleteTag("now")
    branch = table.branch("dev", 1)
    assert branch.delete("id >= 100").num_deleted_rows == 300
    assert (branch.toDF().count(), table.toDF().count()) == (100, 390)
    assert branch.tag("short") == branch.version
    assert lance.dataset(str(tmp_path / "t"), version="short").count_rows() == 100
    assert [tuple(row) for row in table.branches().collect()] == [("dev", None, 1)]
    table.deleteTag("short")
    table.deleteBranch("dev")
    assert table.branches().count() == 0


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
@pytest.mark.parametrize("stable", [False, True])
def test_indexes_that_spark_builds_answer_as_local_ones(
    spark: SparkSession, tmp_path: Path, kind: str, stable: bool
) -> None:
    table = make(tmp_path / "mine", enable_stable_row_ids=stable)
    make(tmp_path / "local", enable_stable_row_ids=stable)
    figures = table.createIndex("x", kind, segments=3, message="by tasks")
    assert (figures.version, figures.names, figures.num_segments, figures.num_rows) == (2, ("x_idx",), 3, 400)
    assert figures.num_bytes > 0
    local = lancelet.dataset(str(tmp_path / "local"))
    local.create_scalar_index("x", kind)
    mine, theirs = lancelet.dataset(str(tmp_path / "mine")), lance.dataset(str(tmp_path / "mine"))
    draw = random.Random(kind)
    for _ in range(8):
        least = draw.randrange(1000)
        for text in (f"x = {least}", f"x >= {least} AND x < {least + 90}", f"x IN ({least}, {least + 1}, 3)"):
            expected = local.to_table(filter=text).sort_by("id")
            assert mine.to_table(filter=text).sort_by("id") == expected, text
            assert theirs.to_table(filter=text).sort_by("id")["id"].to_pylist() == expected["id"].to_pylist(), text
    assert [item.num_rows_indexed for item in mine.describe_indices()] == [400]
    assert theirs.describe_indices()[0].num_rows_indexed == 400
    assert told(tmp_path / "mine") == []


def test_one_segment_is_the_file_that_the_local_api_writes(spark: SparkSession, tmp_path: Path) -> None:
    make(tmp_path / "mine").createIndex("x", segments=1)
    make(tmp_path / "local")
    lancelet.dataset(str(tmp_path / "local")).create_scalar_index("x", "BTREE")
    found = [sorted((tmp_path / name).glob("_indices/*/*.lance")) for name in ("mine", "local")]
    assert [path.name for path in found[0]] == [path.name for path in found[1]]
    assert [path.read_bytes() for path in found[0]] == [path.read_bytes() for path in found[1]]


def test_indexes_are_brought_up_to_date_and_dropped(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.createIndex("x")
    table.createIndex("label", "BITMAP")
    lance.write_dataset(rows(400, 100), str(tmp_path / "t"), mode="append")
    assert {row.num_rows_unindexed for row in table.indexes().collect()} == {100}
    figures = table.optimizeIndices(["x_idx"])
    assert (figures.names, figures.num_rows, figures.num_segments) == (("x_idx",), 500, 1)
    assert {row.name: row.num_rows_unindexed for row in table.indexes().collect()} == {"x_idx": 0, "label_idx": 100}
    assert table.optimizeIndices(numIndicesToMerge=0).names == ("label_idx",)
    before = table.version
    assert table.optimizeIndices().version == before == table.version
    expected = lance.dataset(str(tmp_path / "t")).to_table(filter="x < 100", use_scalar_index=False).sort_by("id")
    assert lance.dataset(str(tmp_path / "t")).to_table(filter="x < 100").sort_by("id") == expected
    assert table.dropIndex("x_idx") == before + 1
    assert [row.name for row in table.indexes().collect()] == ["label_idx"]
    with pytest.raises(InvalidInput, match="nowhere"):
        table.createIndex("nowhere")
    with pytest.raises(InvalidInput, match="only the newest version"):
        LanceTable.forPath(spark, tmp_path / "t", version=1).createIndex("x")
    assert told(tmp_path / "t") == []


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("stable", [False, True])
def test_the_nearest_rows_are_those_of_pylance(spark: SparkSession, tmp_path: Path, metric: str, stable: bool) -> None:
    table = make(tmp_path / "t", enable_stable_row_ids=stable)
    table.delete("id % 9 = 4")
    oracle = lance.dataset(str(tmp_path / "t"))
    draw = np.random.default_rng(3)
    for filter, prefilter in ((None, False), ("x < 300", False), ("x < 300 AND label = 'l1'", True)):
        nearest = {"column": "vector", "q": draw.standard_normal(SIZE).astype(np.float32), "k": 7, "metric": metric}
        found = table.search(nearest, filter, ["id", "label"], prefilter=prefilter, withRowId=True, tasks=3)
        expected = oracle.to_table(
            nearest=nearest, filter=filter, columns=["id", "label"], prefilter=prefilter, with_row_id=True
        )
        assert found.columns == ["id", "label", "_distance", "_rowid"]
        got = found.collect()
        assert [row.id for row in got] == expected["id"].to_pylist(), (filter, prefilter)
        assert [row._rowid for row in got] == expected["_rowid"].to_pylist()
        assert np.allclose([row._distance for row in got], expected["_distance"].to_numpy(), rtol=1e-5, atol=1e-5)


def test_several_queries_are_answered_each(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    queries = np.random.default_rng(4).standard_normal((3, SIZE)).astype(np.float32)
    nearest = {"column": "vector", "q": queries, "k": 4}
    found = table.search(nearest, columns=["id"])
    expected = lance.dataset(str(tmp_path / "t")).to_table(nearest=nearest, columns=["id"]).to_pylist()
    assert found.columns[0] == "query_index"
    expected.sort(key=lambda row: (row["query_index"], row["_distance"]))
    assert [(row.query_index, row.id) for row in found.collect()] == [
        (row["query_index"], row["id"]) for row in expected
    ]


def test_searches_that_make_no_sense_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(InvalidInput, match="nearest has no 'q'"):
        table.search({"column": "vector"})
    with pytest.raises(InvalidInput, match="nearest knows nothing of 'nprobe'"):
        table.search({"column": "vector", "q": [0.0] * SIZE, "nprobe": 3})
    with pytest.raises(InvalidInput, match="there is no column 'vectr'"):
        table.search({"column": "vectr", "q": [0.0] * SIZE})
    with pytest.raises(InvalidInput, match="has 3 values"):
        table.search({"column": "vector", "q": [0.0] * 3})
    with pytest.raises(TypeError, match="expected vectors"):
        table.search({"column": "label", "q": [0.0] * SIZE})


def test_old_versions_are_told_of_and_removed(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.delete("id < 60")
    table.update("id = 100", {"x": "0"})
    table.tag("kept", 2)
    explained = lance.dataset(str(tmp_path / "t")).explain_cleanup_old_versions(
        older_than=timedelta(0), error_if_tagged_old_versions=False, delete_unverified=True
    )
    with pytest.raises(InvalidInput, match="tagged versions are old"):
        table.vacuum(0)
    would = table.vacuum(0, dryRun=True, errorIfTagged=False, deleteUnverified=True)
    files = table.vacuumFiles(0, errorIfTagged=False, deleteUnverified=True).collect()
    assert would.dry_run
    assert would.kept == ("version 2: tag 'kept'",)
    assert (would.num_versions, would.num_data_files) == (1, explained.stats.data_files_removed)
    assert sum(row.size_bytes for row in files) == would.num_bytes
    assert {row.kind for row in files} >= {"manifest"}
    done = table.vacuum(0, errorIfTagged=False, deleteUnverified=True)
    assert (done.num_versions, done.num_bytes, done.dry_run) == (1, would.num_bytes, False)
    assert [row.version for row in table.history().collect()] == [3, 2]
    assert lance.dataset(str(tmp_path / "t")).count_rows() == 340
    assert lance.dataset(str(tmp_path / "t"), version="kept").count_rows() == 340


def test_many_files_are_removed_by_tasks(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lancelet.spark.table_upkeep._FILES", 2)
    table = make(tmp_path / "t")
    table.update(None, {"x": "0"})
    figures = table.vacuum(0)
    assert figures.num_data_files == 7
    assert len(list((tmp_path / "t" / "data").iterdir())) == len(
        {file.path for item in lance.dataset(str(tmp_path / "t")).get_fragments() for file in item.data_files()}
    )
    assert lance.dataset(str(tmp_path / "t")).to_table(filter="x = 0").num_rows == 400


@pytest.mark.parametrize("shallow", [False, True])
def test_clones_are_tables_of_their_own(spark: SparkSession, tmp_path: Path, shallow: bool) -> None:
    table = make(tmp_path / "t")
    table.createIndex("x")
    table.delete("id < 10")
    clone = table.clone(tmp_path / "clone", shallow)
    assert clone.toDF().count() == 390
    assert clone.delete("id < 20").num_deleted_rows == 10
    assert (clone.toDF().count(), table.toDF().count()) == (380, 390)
    assert (len(list((tmp_path / "clone").glob("data/*.lance"))) == 0) == shallow
    theirs = lance.dataset(str(tmp_path / "clone"))
    assert theirs.count_rows("x < 500") == clone.toDF(filter="x < 500").count()
    with pytest.raises(AlreadyExists):
        table.clone(tmp_path / "clone")
    old = LanceTable.forPath(spark, tmp_path / "t", version=1).clone(tmp_path / "old", shallow)
    assert old.toDF().count() == 400
    if not shallow:
        lance.dataset(str(tmp_path / "t")).delete("true")
        assert lance.dataset(str(tmp_path / "old")).to_table().sort_by("id") == rows(0, 400)
    assert told(tmp_path / "clone") == []


def test_the_local_dataset_is_at_the_same_version(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    branch = table.branch("dev")
    branch.delete("id < 10")
    assert branch.dataset().count_rows() == 390
    assert LanceTable.forPath(spark, tmp_path / "t", version=1).dataset().version == 1


def test_an_index_is_built_anew_where_its_rows_were_moved_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t")
    plan, meddled = table_indexes.plan_create_index, []

    def meddle(*args: Any, **options: Any) -> Any:
        made = plan(*args, **options)
        if not meddled:
            meddled.append(lance.dataset(str(tmp_path / "t")).optimize.compact_files().fragments_removed)
        return made

    monkeypatch.setattr(table_indexes, "plan_create_index", meddle)
    figures = table.createIndex("x")
    assert (meddled, figures.num_attempts, figures.num_rows) == ([7], 2, 400)
    expected = rows(0, 400).filter(pa.compute.less(rows(0, 400)["x"], 100))
    assert lance.dataset(str(tmp_path / "t")).to_table(filter="x < 100").sort_by("id") == expected
    assert len(list((tmp_path / "t" / "_indices").glob("*/*.lance"))) == 2
