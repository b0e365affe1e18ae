"""What holds on every kind of Spark and every version of it: each case is one job or a few, from start to end.

Run here on two local cores; :mod:`test_kinds` and :mod:`test_versions` run the same elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from lancelet.errors import AlreadyExists
from lancelet.ops.journal import ATTEMPTS
from lancelet.spark import fetch_blobs, read, write
from lancelet.spark.table import LanceTable
from lancelet.storage import open_store
from lancelet.table.versions import list_versions

ROWS, SIZE = 300, 4


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    """Numbers, texts with nulls, structs and vectors."""
    numbers = range(first, first + count)
    vectors = np.random.default_rng(first).standard_normal(count * SIZE).astype(np.float32)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([f"n{at % 7}" if at % 11 else None for at in numbers]),
            "small": pa.array([at % 200 for at in numbers], pa.uint8()),
            "point": pa.array([{"x": at, "y": f"p{at}"} for at in numbers]),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), SIZE),
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A table of three fragments and two versions; some rows are deleted."""
    made = lance.write_dataset(rows(), str(tmp_path / "t"), max_rows_per_file=100, enable_stable_row_ids=True)
    made.delete("id % 10 = 3")
    return str(tmp_path / "t")


def ids(place: str, filter: str | None = None) -> list[int]:
    """Of the newest version, as pylance reads it."""
    found: list[int] = lance.dataset(place).to_table(columns=["id"], filter=filter)["id"].to_pylist()
    return sorted(found)


def leftovers(place: str) -> list[str]:
    """What the journal still tells of jobs, and data files that no version names.

    The journal keeps what attempts of a job that failed told, because they may be writing yet.
    """
    store = open_store(place)
    fragments = [item for version in list_versions(store) for item in version.manifest.fragments]
    named = {f"data/{file.path}" for item in fragments for file in item.files}
    told = [entry.path for entry in store.list_from(ATTEMPTS) if "-" not in entry.path]
    return told + [entry.path for entry in store.list_from("data/") if entry.path not in named]


def test_rows_are_read_with_options_conditions_and_columns(spark: SparkSession, place: str) -> None:
    options = {"columns": "id, point.x, _rowid", "filter": "id < 50 and name is not null", "batch_size": "7"}
    expected = lance.dataset(place).to_table(["id", "point.x", "_rowid"], filter="id < 50 and name is not null")
    source = spark.read.format("lance").options(**options).load(place)
    helper = read(spark, place, columns=["id", "point.x", "_rowid"], filter="id < 50 and name is not null")
    for frame in (source, helper):
        found = sorted(frame.collect())
        assert [tuple(row) for row in found] == [tuple(row.values()) for row in expected.to_pylist()]
    first = spark.read.format("lance").option("version", 1).option("limit", 120).load(place)
    assert sorted(row.id for row in first.select("id").collect()) == list(range(120))
    row = spark.read.format("lance").load(place).where("id = 7 and small = 7").collect()[0]
    assert (row.name, row.point.y, len(row.vector)) == ("n0", "p7", SIZE)


@pytest.mark.parametrize("way", ["source", "helper"])
def test_rows_are_put_behind_and_in_place_of_others(spark: SparkSession, tmp_path: Path, way: str) -> None:
    place = str(tmp_path / "t")
    frame = spark.range(0, 100, 1, 3).selectExpr("id", "concat('n', id) name")
    for mode, count, version in (("append", 100, 1), ("append", 200, 2), ("overwrite", 100, 3)):
        if way == "source":
            frame.write.format("lance").mode(mode).option("max_rows_per_file", 20).save(place)
        else:
            write(frame, place, mode=mode, max_rows_per_file=20)  # type: ignore[arg-type]
        found = lance.dataset(place)
        assert (found.count_rows(), found.version) == (count, version)
    assert max(fragment.count_rows() for fragment in found.get_fragments()) <= 20
    assert ids(place) == list(range(100))
    with pytest.raises(AlreadyExists):
        write(frame, place)
    assert leftovers(place) == []


def test_rows_are_deleted_updated_and_merged(spark: SparkSession, place: str) -> None:
    table = LanceTable.forPath(spark, place)
    assert table.delete("id < 20 and name = 'n1'").num_deleted_rows == 3
    assert table.update("id between 100 and 110", {"name": "upper(name)"}).num_updated_rows == 10
    source = spark.range(290, 310).selectExpr("id", "concat('m', id) name")
    merge = table.merge(source, "target.id = source.id")
    figures = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert (figures.num_updated_rows, figures.num_inserted_rows) == (9, 11)
    assert ids(place, "name like 'm%'") == list(range(290, 310))
    assert ids(place, "name like 'N%'") == [at for at in range(100, 111) if at not in (103, 110)]
    assert leftovers(place) == []


def test_indexes_are_built_and_the_nearest_rows_found(spark: SparkSession, place: str) -> None:
    table = LanceTable.forPath(spark, place)
    assert table.createIndex("id", segments=2).num_rows == 270
    assert table.createIndex("name", "BITMAP").names == ("name_idx",)
    assert ids(place, "id >= 44 and id < 48 and name is not null") == [45, 46, 47]
    lance.write_dataset(rows(ROWS, 50), place, mode="append")
    assert table.optimizeIndices().num_rows > 0
    query = np.ones(SIZE, np.float32)
    found = table.search({"column": "vector", "q": query, "k": 5}, "id < 200", ["id"], prefilter=True).collect()
    wanted = lance.dataset(place).to_table(
        nearest={"column": "vector", "q": query, "k": 5}, filter="id < 200", prefilter=True, columns=["id"]
    )
    assert [row.id for row in found] == wanted["id"].to_pylist()


def test_versions_are_told_of_named_restored_cloned_and_removed(
    spark: SparkSession, place: str, tmp_path: Path
) -> None:
    table = LanceTable.forPath(spark, place)
    table.delete("id < 50", message="the first")
    assert [row.version for row in table.history().collect()] == [3, 2, 1]
    assert table.history(1).collect()[0].message == "the first"
    assert table.tag("before", 2) == 2
    assert table.clone(tmp_path / "clone").toDF().count() == 225
    assert table.restoreToVersion(1).num_rows == ROWS
    assert table.branch("side", 2).toDF().count() == 270
    table.deleteBranch("side")
    assert table.vacuum(0, errorIfTagged=False).num_versions == 2
    assert spark.read.format("lance").option("tag", "before").load(place).count() == 270
    assert ids(place) == list(range(ROWS))


def test_views_are_read_and_inserted_into(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": pa.array(range(5), pa.int64())}), place)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW common_view USING lance OPTIONS (path '{place}')")
    spark.sql("INSERT INTO common_view VALUES (7), (8)")
    assert ids(place) == [0, 1, 2, 3, 4, 7, 8]
    # A view is of the version that was the newest when it was made.
    assert spark.sql("SELECT sum(id) total FROM common_view WHERE id > 3").collect()[0].total == 4
    assert spark.read.format("lance").load(place).where("id > 3").selectExpr("sum(id)").collect()[0][0] == 19
    spark.sql("DROP VIEW common_view")


def test_blobs_are_references_until_they_are_fetched(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [bytes([at]) * 2000 if at % 3 else None for at in range(12)]
    schema = pa.schema([pa.field("id", pa.int64()), field])
    data = pa.table([pa.array(range(12)), pa.array(values, pa.large_binary())], schema=schema)
    lance.write_dataset(data, place, data_storage_version="2.1", max_rows_per_file=5)
    found = fetch_blobs(spark.read.format("lance").load(place)).collect()
    assert {row.id: None if row.blob is None else bytes(row.blob) for row in found} == dict(enumerate(values))


@pytest.mark.parametrize("way", ["source", "helper"])
def test_a_job_that_fails_leaves_neither_rows_nor_files(spark: SparkSession, tmp_path: Path, way: str) -> None:
    place = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), place)

    # A function of its own travels to executors by value.
    def fails_late(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if 77 in batch.column(0).to_pylist():
                raise ValueError("no more")

    frame = spark.range(0, 200, 1, 2).mapInArrow(fails_late, "id long")
    save = (
        frame.write.format("lance").mode("append").option("max_rows_per_file", 10).save
        if way == "source"
        else partial(write, frame, mode="append", max_rows_per_file=10)
    )
    with pytest.raises(PySparkException, match="no more"):
        save(place)
    assert ids(place) == [1]
    assert leftovers(place) == []


def test_streams_bring_what_versions_inserted_and_go_on_where_they_stopped(
    spark: SparkSession, tmp_path: Path, finish: Callable[[Callable[[], StreamingQuery]], None]
) -> None:
    place, out, checkpoint = (str(tmp_path / name) for name in ("t", "out", "checkpoint"))
    for first in (0, 100, 200):
        lance.write_dataset(rows(first, 50), place, mode="append")
        stream = spark.readStream.format("lance").load(place).select("id", "name")
        writer = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        finish(partial(writer.trigger(availableNow=True).start, out))
        assert spark.read.parquet(out).count() == 50 * (first // 100 + 1)
    assert spark.read.parquet(out).select("id").distinct().count() == 150
