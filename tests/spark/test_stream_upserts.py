"""Batches that are merged by ``foreachBatch``: keys replace keys, changes of rows are followed, once each."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from lancelet.errors import InvalidInput
from lancelet.ops.numbered import BATCH, QUERY
from lancelet.spark import upsert_batches
from lancelet.spark.progress import on_connect
from lancelet.storage import open_store
from lancelet.table.snapshot import open_snapshot

Finish = Callable[[Callable[[], StreamingQuery]], StreamingQuery]


def rows_of(place: Path) -> dict[int, str]:
    found = lance.dataset(str(place)).to_table()
    assert found.schema.names == ["id", "name"]
    rows = dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))
    assert len(rows) == found.num_rows
    return rows


def test_a_table_follows_the_changes_of_another_and_a_replayed_batch_changes_nothing(
    spark: SparkSession, tmp_path: Path, finish: Finish
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    checkpoint = tmp_path / "checkpoint"

    def follow() -> None:
        frame = spark.readStream.format("lance").option("stream", "changes").load(str(source))
        # On classic Spark the query need not be named.
        upsert = upsert_batches(target, on="id", query="a name" if on_connect(spark) else None)
        writer = frame.writeStream.foreachBatch(upsert).trigger(availableNow=True)
        finish(writer.option("checkpointLocation", str(checkpoint)).start)

    rows = pa.table({"id": pa.array(range(5), pa.int64()), "name": [f"name {at}" for at in range(5)]})
    made = lance.write_dataset(rows, str(source), enable_stable_row_ids=True)
    follow()
    assert rows_of(target) == rows_of(source)
    made.delete("id = 1")
    made.update({"name": "'new'"}, where="id = 2")
    merge = made.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"id": pa.array([0, 9], pa.int64()), "name": ["zero", "nine"]}))
    made.delete("id = 9")
    follow()
    assert rows_of(target) == rows_of(source) == {0: "zero", 2: "new", 3: "name 3", 4: "name 4"}
    transaction = open_snapshot(open_store(str(target))).transaction()
    assert transaction is not None
    assert on_connect(spark) or len(transaction.properties[QUERY]) == 36
    assert transaction.properties[BATCH] == "1"
    version = lance.dataset(str(target)).version
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    follow()
    assert lance.dataset(str(target)).version == version


def test_the_last_row_of_a_key_counts_and_marked_ones_remove_theirs(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "t"
    upsert = upsert_batches(place, ["id"], query="mine", latest_by="at", delete_where="name is null")
    upsert = pickle.loads(pickle.dumps(upsert))

    def batch(number: int, *rows: tuple[int, str | None, int]) -> None:
        frame = spark.createDataFrame(list(rows), "id bigint, name string, at int")
        upsert(frame, number)

    batch(0, (1, "a", 1), (1, "b", 2), (2, "c", 1))
    batch(0, (7, "again", 1))
    batch(1, (1, None, 3), (3, "d", 1), (3, None, 0), (4, None, 1))
    found = lance.dataset(str(place)).to_table(columns=["id", "name"]).to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [{"id": 2, "name": "c"}, {"id": 3, "name": "d"}]


def test_a_batch_of_no_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="which query a batch is of"):
        upsert_batches(tmp_path / "t", "id")(spark.range(3), 0)
    with pytest.raises(InvalidInput, match="no column is named"):
        upsert_batches(tmp_path / "t", [])
