"""``writeStream.format("lance")`` in real queries: started again, killed, replayed, and every row is there once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming import StreamingQuery

from lancelet.ops.journal import ATTEMPTS
from lancelet.ops.numbered import BATCH, QUERY
from lancelet.storage import open_store
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions

Copy = Callable[..., None]
SCRIPTS = Path(__file__).parent / "scripts"


def append(place: Path, start: int, stop: int) -> None:
    lance.write_dataset(pa.table({"id": pa.array(range(start, stop), pa.int64())}), str(place), mode="append")


@pytest.fixture
def copy(finish: Callable[[Callable[[], StreamingQuery]], StreamingQuery]) -> Copy:
    """Writes a stream until there is nothing more."""

    def run(frame: DataFrame, place: Path, mode: str = "append") -> None:
        writer = frame.writeStream.format("lance").outputMode(mode).trigger(availableNow=True)
        finish(lambda: writer.option("checkpointLocation", str(place) + ".checkpoint").start(str(place)))

    return run


def ids(place: Path) -> list[int]:
    found: list[int] = lance.dataset(str(place)).to_table(columns=["id"])["id"].to_pylist()
    return sorted(found)


def leftovers(place: Path) -> list[str]:
    """Data files that no version names, and jobs that the journal tells of."""
    store = open_store(str(place))
    fragments = [item for version in list_versions(store) for item in version.manifest.fragments]
    named = {f"data/{file.path}" for item in fragments for file in item.files}
    told = [entry.path for entry in store.list_from(ATTEMPTS) if re.search(r"/\w+\.json$", entry.path)]
    return told + [entry.path for entry in store.list_from("data/") if entry.path not in named]


def test_a_query_goes_on_where_it_stopped_and_a_batch_that_is_replayed_is_in_once(
    spark: SparkSession, tmp_path: Path, copy: Copy
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    append(source, 0, 10)
    frame = spark.readStream.format("lance").load(str(source))
    copy(frame, target)
    append(source, 10, 15)
    copy(frame, target)
    assert ids(target) == list(range(15))
    transaction = open_snapshot(open_store(str(target))).transaction()
    assert transaction is not None
    assert len(transaction.properties[QUERY]) == 36
    assert transaction.properties[BATCH] == "1"
    # Spark knows nothing of the last batch's commit: it was killed before it wrote that down.
    for name in ("1", ".1.crc"):
        (tmp_path / "target.checkpoint" / "commits" / name).unlink()
    append(source, 15, 17)
    copy(frame, target)
    assert ids(target) == list(range(17))
    assert lance.dataset(str(target)).version == 3
    assert leftovers(target) == []


def test_all_results_replace_those_before_where_the_query_tells_all(
    spark: SparkSession, tmp_path: Path, copy: Copy
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for start, expected in ((0, [4, 6]), (10, [8, 12])):
        append(source, start, start + 10)
        counts = spark.readStream.format("lance").load(str(source)).groupBy(expr("id % 5 < 2")).count()
        copy(counts.withColumnRenamed("count", "id").select("id"), target, "complete")
        assert ids(target) == expected
    assert lance.dataset(str(target)).version == 2


def fails_late(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows, and then an error."""
    for batch in batches:
        yield batch
        if 7 in batch.column(0).to_pylist():
            raise ValueError("no more")


def test_a_batch_that_fails_leaves_neither_rows_nor_files(spark: SparkSession, tmp_path: Path, copy: Copy) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    append(source, 0, 3)
    frame = spark.readStream.format("lance").load(str(source))
    copy(frame, target)
    append(source, 3, 9)
    with pytest.raises(StreamingQueryException, match="no more"):
        copy(frame.mapInArrow(fails_late, "id long"), target)
    assert ids(target) == [0, 1, 2]
    copy(frame, target)
    assert ids(target) == list(range(9))
    assert leftovers(target) == []


@pytest.mark.long
@pytest.mark.parametrize("moment", ["writing", "committed"])
def test_a_driver_killed_in_the_midst_of_a_batch_loses_and_doubles_nothing(tmp_path: Path, moment: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for start in range(0, 60, 10):
        append(source, start, start + 10)
    command = [sys.executable, str(SCRIPTS / "killed_stream.py"), str(source), str(target)]
    for sleep in ("30", "0"):
        seconds = sleep if moment == "writing" else "0"
        process = subprocess.Popen([*command, seconds], cwd=tmp_path, start_new_session=True)
        try:
            if sleep == "30":
                _wait_for(target, moment)
                # The JVM, too, which would stop the query in good order otherwise.
                os.killpg(process.pid, signal.SIGKILL)
            assert process.wait(600) == (-9 if sleep == "30" else 0)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert ids(target) == list(range(60))
    assert [path for path in leftovers(target) if path.startswith("data/")] == []


def _wait_for(target: Path, moment: str) -> None:
    """Until there are two versions, and in the midst of writing also files of the third."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        files = list(target.glob("data/*.lance"))
        versions = list(target.glob("_versions/*.manifest"))
        # Each batch of ten rows makes two files.
        if len(versions) >= 2 and (moment == "committed" or len(files) > 2 * len(versions)):
            return
        time.sleep(0.01)
    raise AssertionError("the query did not come so far")
