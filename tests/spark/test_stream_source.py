"""``readStream.format("lance")`` in real queries: batches, restarts from checkpoints, changes of rows, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from lancelet.errors import InvalidInput
from lancelet.spark.table import LanceTable

Batches = list[list[dict[str, Any]]]
Finish = Callable[[Callable[[], StreamingQuery]], StreamingQuery]


@pytest.fixture
def followed(spark: SparkSession, tmp_path: Path, finish: Finish) -> Callable[..., Batches]:
    """Copies a table until there is nothing more, with the checkpoint of the test; the rows of each batch."""
    target = str(tmp_path / "copy")

    def follow(uri: str, **options: Any) -> Batches:
        reader = spark.readStream.format("lance")
        for name, value in options.items():
            reader = reader.option(name, str(value))
        writer = reader.load(uri).writeStream.format("lance").trigger(availableNow=True)
        before = lance.dataset(target).version if Path(target).exists() else 0
        finish(lambda: writer.option("checkpointLocation", f"{target}.checkpoint").start(target))
        return [rows_of(target, version) for version in range(before + 1, lance.dataset(target).version + 1)]

    return follow


def rows_of(uri: str, version: int) -> list[dict[str, Any]]:
    """The rows that a version appended."""
    known = (
        {item.fragment_id for item in lance.dataset(uri, version=version - 1).get_fragments()} if version > 1 else ()
    )
    new = [item for item in lance.dataset(uri, version=version).get_fragments() if item.fragment_id not in known]
    return [row for item in new for row in item.to_table().to_pylist()]


def append(uri: str, start: int, stop: int, **options: Any) -> None:
    rows = pa.table({"id": list(range(start, stop)), "name": [f"name {at}" for at in range(start, stop)]})
    lance.write_dataset(rows, uri, mode="append", **options)


def test_batches_go_on_from_the_checkpoint_within_their_limits(
    tmp_path: Path, followed: Callable[..., Batches]
) -> None:
    uri = str(tmp_path / "t")
    append(uri, 0, 10, max_rows_per_file=4)
    assert [sorted(row["id"] for row in rows) for rows in followed(uri, max_rows_per_batch=8)] == [
        list(range(8)),
        [8, 9],
    ]
    append(uri, 10, 12)
    lance.dataset(uri).delete("id = 0")
    lance.dataset(uri).optimize.compact_files()
    append(uri, 12, 14)
    # Versions that only remove or move rows bring none.
    found = followed(uri, max_versions_per_batch=1)
    assert [[row["id"] for row in rows] for rows in found] == [[10, 11], [12, 13]]
    assert followed(uri) == []


@pytest.mark.parametrize("stable", [True, False])
def test_changes_of_rows_are_told_with_the_version_that_made_them(
    tmp_path: Path, followed: Callable[..., Batches], stable: bool
) -> None:
    uri = str(tmp_path / "t")
    append(uri, 0, 3, enable_stable_row_ids=stable)
    lance.dataset(uri).delete("id = 1")
    if stable:
        lance.dataset(uri).update({"name": "'new'"}, where="id = 2")
        merge = lance.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.table({"id": [0, 5], "name": ["zero", "five"]}))
    lance.write_dataset(pa.table({"id": [9], "name": ["over"]}), uri, mode="overwrite")
    found = followed(uri, stream="changes", starting_version=2)
    expected = [(2, "delete", 1, "name 1")]
    kept = [(0, "name 0"), (2, "name 2")]
    if stable:
        expected += [(3, "update_preimage", 2, "name 2"), (3, "update_postimage", 2, "new")]
        expected += [(4, "update_preimage", 0, "name 0"), (4, "update_postimage", 0, "zero"), (4, "insert", 5, "five")]
        kept = [(0, "zero"), (2, "new"), (5, "five")]
    last = lance.dataset(uri).version
    expected += [(last, "delete", *row) for row in kept] + [(last, "insert", 9, "over")]
    told = [(row["_commit_version"], row["_change_type"], row["id"], row["name"]) for rows in found for row in rows]
    assert Counter(told) == Counter(expected)


def test_the_table_object_tells_the_changes_between_two_versions(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    append(uri, 0, 3, enable_stable_row_ids=True)
    lance.dataset(uri).update({"name": "'new'"}, where="id = 2")
    lance.dataset(uri).delete("id = 1")
    append(uri, 3, 4)
    table = LanceTable.forPath(spark, uri)
    expected = [
        (2, "update_preimage", 2, "name 2"),
        (2, "update_postimage", 2, "new"),
        (3, "delete", 1, "name 1"),
    ]
    found = table.changes(2, 3).select("_commit_version", "_change_type", "id", "name")
    assert sorted(tuple(row) for row in found.collect()) == sorted(expected)
    assert table.changes(1, 1, ["id"]).columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert table.changes(1).where("_change_type = 'insert'").count() == 4
    with pytest.raises(InvalidInput, match="fromVersion is 9, expected one from 1 to 4"):
        table.changes(9)


def test_a_schema_that_changes_ends_the_query_with_what_to_do(
    tmp_path: Path, spark: SparkSession, finish: Finish
) -> None:
    uri = str(tmp_path / "t")
    append(uri, 0, 3)
    frame = spark.readStream.format("lance").load(uri)
    lance.dataset(uri).add_columns({"twice": "id * 2"})
    append_all = pa.table({"id": [3], "name": ["x"], "twice": [6]})
    lance.write_dataset(append_all, uri, mode="append")
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match="has other columns than the stream: column 'twice' is new"):
        finish(writer.trigger(availableNow=True).start)
