"""Writers that die in the middle, and commits that cannot be made: no row lost, none twice, no file left."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lancelet.errors import Conflict
from lancelet.ops.journal import ATTEMPTS
from lancelet.ops.write import overwrite
from lancelet.spark import write
from lancelet.storage import open_store
from lancelet.storage.local import LocalStore
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions

SCRIPTS = Path(__file__).parent / "scripts"


def leftovers(place: Path) -> list[str]:
    """Files of data that no version names, and what the journal still tells."""
    store = open_store(str(place))
    fragments = [item for version in list_versions(store) for item in version.manifest.fragments]
    named = {f"data/{file.path}" for item in fragments for file in item.files}
    told = [entry.path for entry in store.list_from(ATTEMPTS) if entry.path.count("-") == 0]
    return told + [entry.path for entry in store.list_from("data/") if entry.path not in named]


def run_killed(master: str, place: Path, victim: str) -> dict[str, int]:
    """What the script says that happened."""
    command = [sys.executable, str(SCRIPTS / "killed_writers.py"), master, str(place), victim]
    done = subprocess.run(command, cwd=place.parent, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def check_killed(found: dict[str, int], place: Path) -> None:
    assert found["killed"] >= 2
    assert found["count"] == 48
    assert sorted(lance.dataset(str(place)).to_table(columns=["id"])["id"].to_pylist()) == list(range(48))
    assert leftovers(place) == []
    store = open_store(str(place))
    assert isinstance(store, LocalStore)
    # What was being written when its process died is not an object yet; it goes with those of other dead processes.
    store.sweep(older_than=0)
    assert list(store.temporaries()) == []


@pytest.mark.long
def test_python_workers_killed_while_they_write_lose_and_double_nothing(tmp_path: Path) -> None:
    check_killed(run_killed("local[2,8]", tmp_path / "t", "worker"), tmp_path / "t")


@pytest.mark.long
@pytest.mark.parametrize("victim", ["worker", "executor"])
def test_executors_killed_while_they_write_lose_and_double_nothing(tmp_path: Path, victim: str) -> None:
    check_killed(run_killed("local-cluster[2,1,1024]", tmp_path / "t", victim), tmp_path / "t")


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
