"""Writers that die in the middle, and commits that cannot be made: no row lost, none twice, no file left."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, udf, when

import lancelet
from lancelet.errors import Conflict
from lancelet.ops.journal import ATTEMPTS
from lancelet.ops.write import overwrite
from lancelet.spark import use_java, use_python, write
from lancelet.spark.row_changes import ChangeFigures
from lancelet.spark.table import LanceTable
from lancelet.storage import open_store
from lancelet.storage.local import LocalStore
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions
from lancelet.testing.spark_kinds import standalone

SCRIPTS = Path(__file__).parent / "scripts"


def leftovers(place: Path) -> list[str]:
    """Files of data that no version names, and what the journal still tells."""
    store = open_store(str(place))
    fragments = [item for version in list_versions(store) for item in version.manifest.fragments]
    named = {f"data/{file.path}" for item in fragments for file in item.files}
    told = [entry.path for entry in store.list_from(ATTEMPTS) if entry.path.count("-") == 0]
    return told + [entry.path for entry in store.list_from("data/") if entry.path not in named]


def run_killed(master: str, place: Path, victim: str) -> dict[str, Any]:
    """What the script says that happened."""
    command = [sys.executable, str(SCRIPTS / "killed_writers.py"), master, str(place), victim]
    done = subprocess.run(command, cwd=place.parent, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def check_written(found: dict[str, Any], place: Path) -> None:
    """Each step of the script is in, once; nothing else is there."""
    table = lance.dataset(str(place))
    rows = table.to_table().sort_by("id")
    expected = sorted({*(number for number in range(40) if number % 3), *range(40, 60)})
    assert rows["id"].to_pylist() == expected
    assert found["count"] == len(expected)
    for number, pad in zip(expected, rows["pad"].to_pylist(), strict=True):
        assert pad[:6] == ("merged" if number >= 40 else "xxxxxx" if number % 2 else "even x")
    # One version for each step: sink, helper, update, delete, merge and index.
    assert table.version == 6
    assert [table.count_rows(f"id = {number}") for number in (0, 5, 59)] == [0, 1, 1]
    assert table.describe_indices()[0].num_rows_indexed == len(expected)
    assert leftovers(place) == []
    store = open_store(str(place))
    assert isinstance(store, LocalStore)
    # What was being written when its process died is not an object yet; it goes with those of other dead processes.
    store.sweep(older_than=0)
    assert list(store.temporaries()) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("master", "victim"),
    [
        ("local[2,8]", "worker"),
        ("local-cluster[2,1,1024]", "worker"),
        ("local-cluster[2,1,1024]", "executor"),
    ],
)
def test_writers_killed_while_they_write_lose_and_double_nothing(tmp_path: Path, master: str, victim: str) -> None:
    found = run_killed(master, tmp_path / "t", victim)
    check_written(found, tmp_path / "t")
    assert set(found["killed"]) == {"sink", "helper", "update", "delete", "merge", "index"}
    # Some steps may be over before a second file is begun.
    assert all(found["killed"].values())


@pytest.mark.long
def test_attempts_beside_which_others_were_faster_leave_nothing(tmp_path: Path) -> None:
    use_java()
    use_python()
    # Spark starts second attempts on other hosts only.
    with standalone(tmp_path) as master:
        # Attempts that hang need longer than the script may.
        found = run_killed(master, tmp_path / "t", "slow")
    check_written(found, tmp_path / "t")


def append(frame: DataFrame, place: Path, way: str, **options: int) -> None:
    if way == "sink":
        frame.write.format("lance").mode("append").options(**options).save(str(place))
    else:
        write(frame, place, mode="append", **options)  # type: ignore[arg-type]


def fails_late(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows, and then an error in one task."""
    for batch in batches:
        yield batch
        if 7 in batch.column(0).to_pylist():
            raise ValueError("no more")


@pytest.mark.parametrize("way", ["sink", "helper"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_job_that_fails_leaves_neither_rows_nor_files(
    spark: SparkSession, tmp_path: Path, way: str, exists: bool
) -> None:
    place = tmp_path / "t"
    if exists:
        lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), str(place))
    frame = spark.range(0, 4000, 1, 4).mapInArrow(fails_late, "id long")
    with pytest.raises(PySparkException, match="no more"):
        append(frame, place, way, max_rows_per_file=100)
    if exists:
        assert lance.dataset(str(place)).count_rows() == 1
    assert leftovers(place) == []


class _Meddler:
    """Replaces the table by one of other columns while rows for the old one are written."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        overwrite(open_snapshot(open_store(self.place)), pa.table({"other": ["b"]}))
        yield from batches


@pytest.mark.parametrize("way", ["sink", "helper"])
def test_a_commit_that_conflicts_leaves_neither_rows_nor_files(spark: SparkSession, tmp_path: Path, way: str) -> None:
    place = tmp_path / "t"
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), str(place))
    frame = spark.range(0, 10, 1, 1).mapInArrow(_Meddler(str(place)), "id long")
    with pytest.raises((PySparkException, Conflict), match="Overwrite was committed first"):
        append(frame, place, way)
    assert lance.dataset(str(place)).to_table().to_pydict() == {"other": ["b"]}
    assert leftovers(place) == []


def delete_meddled(table: LanceTable, meddled: Column) -> ChangeFigures:
    return table.delete(meddled & (col("id") < 10))


def update_meddled(table: LanceTable, meddled: Column) -> ChangeFigures:
    return table.update(col("id") < 10, {"id": when(meddled, col("id") + 1000)})


def merge_meddled(table: LanceTable, meddled: Column) -> ChangeFigures:
    source = table.sparkSession.range(10).withColumnRenamed("id", "key")
    return table.merge(source, "target.id = key").whenMatchedDelete(meddled).execute()


@pytest.mark.parametrize("change", [delete_meddled, update_meddled, merge_meddled])
def test_changes_are_worked_out_anew_where_others_changed_the_same_rows_first(
    spark: SparkSession, tmp_path: Path, change: Callable[[LanceTable, Column], ChangeFigures]
) -> None:
    place, mark = str(tmp_path / "t"), tmp_path / "meddled"
    lance.write_dataset(pa.table({"id": pa.array(range(100), pa.int64())}), place)

    def meddle(number: int) -> bool:
        if not mark.exists():
            mark.touch()
            lancelet.dataset(place).delete("id = 5")
        return True

    figures = change(LanceTable.forPath(spark, place), udf(meddle, "boolean")(col("id")))
    assert figures.num_attempts == 2
    assert figures.num_deleted_rows + figures.num_updated_rows == 9
    kept = {number for number in range(100) if number >= 10}
    moved = {number + 1000 for number in range(10) if number != 5} if figures.num_updated_rows else set()
    assert set(lance.dataset(place).to_table()["id"].to_pylist()) == kept | moved
    assert leftovers(Path(place)) == []
