"""Compaction through the table object: the tasks of the local API carried out by Spark, indexes and all."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lancelet
from lancelet.errors import InvalidInput, Unsupported
from lancelet.events import Event, subscribe
from lancelet.ops.journal import ATTEMPTS
from lancelet.spark.table import LanceTable
from lancelet.storage import open_store


def make(place: Path, *, stable: bool = False) -> pa.Table:
    table = pa.table({"x": range(600), "c": [n % 7 for n in range(600)], "s": [f"text {n}" for n in range(600)]})
    dataset = lance.write_dataset(table, str(place), max_rows_per_file=60, enable_stable_row_ids=stable)
    dataset.create_scalar_index("x", "BTREE")
    dataset.create_scalar_index("c", "BITMAP")
    dataset.delete("x % 4 = 1")
    return dataset.to_table(with_row_id=stable)


def files(place: Path) -> set[str]:
    named = {file.path for item in lance.dataset(str(place)).get_fragments() for file in item.data_files()}
    return {entry.path.removeprefix("data/") for entry in open_store(str(place)).list_from("data/")} - named


@pytest.mark.parametrize("way", ["now", "stable", "deferred"])
def test_fragments_are_written_anew_by_tasks(spark: SparkSession, tmp_path: Path, way: str) -> None:
    place = tmp_path / "t"
    before = make(place, stable=way == "stable")
    old = files(place) | {file.path for item in lance.dataset(str(place)).get_fragments() for file in item.data_files()}
    table = LanceTable.forPath(spark, place)
    planned = table.compactionTasks(150).collect()
    assert [list(row.fragments) for row in planned] == [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]
    assert all(row.bytes_read > 0 and row.memory > 0 for row in planned)
    seen: list[Event] = []
    with subscribe(seen.append):
        made = table.compact(150, deferIndexRemap=way == "deferred", message="tidied")
    assert (made.fragments_removed, made.fragments_added, made.files_removed, made.files_added) == (10, 2, 20, 2)
    assert made.version == table.version
    assert any(event.name.endswith("progress") for event in seen)
    dataset = lance.dataset(str(place))
    dataset.validate()
    assert dataset.to_table(with_row_id=way == "stable") == before
    for condition in ("x >= 100 AND x < 130", "c = 3"):
        expected = dataset.to_table(filter=condition, use_scalar_index=False)
        assert dataset.to_table(filter=condition) == expected
        assert lancelet.dataset(place).to_table(filter=condition) == expected
    assert table.history(1).collect()[0].message == "tidied"
    assert files(place) <= old, "what is in no version is from before"
    assert not [entry.path for entry in open_store(str(place)).list_from(ATTEMPTS)]
    assert table.compact(150).version == made.version, "there is nothing more to do"


def test_what_the_config_says_counts_and_what_makes_no_sense_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "t"
    make(place, stable=True)
    lance.dataset(str(place)).update_config({"lance.compaction.target_rows_per_fragment": "100"})
    table = LanceTable.forPath(spark, place)
    with pytest.raises(Unsupported, match="stable ids"):
        table.compact(deferIndexRemap=True)
    with pytest.raises(InvalidInput, match="Invalid compaction option"):
        table.compact(options={"rows": 3})
    with pytest.raises(InvalidInput, match="only the newest"):
        LanceTable.forPath(spark, place, version=1).compact()
    assert table.compact(options={"max_source_fragments": 5}).fragments_removed == 3
