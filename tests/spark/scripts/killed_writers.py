"""A Spark application whose writers are killed while they write: python killed_writers.py MASTER PLACE VICTIM.

VICTIM is ``worker`` (Python workers), ``executor`` (their JVMs) or ``none``. Prints what happened as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lancelet.spark import use_java, use_python, write

TASKS, ROWS = 4, 24


def slowly(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that come so slowly that a writer can be met at work."""
    for batch in batches:
        for number in range(batch.num_rows):
            time.sleep(0.05)
            # Wide enough that a file is begun before the rows end.
            yield pa.RecordBatch.from_pydict({"id": batch.column(0).slice(number, 1), "pad": pa.array(["x" * 300_000])})


def victims(kind: str) -> list[psutil.Process]:
    """The processes of this application that write, by what they are."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            command, parent = " ".join(process.cmdline()), process.parent()
            above = " ".join(parent.cmdline()) if parent is not None else ""
        except psutil.Error:
            continue
        worker = "pyspark.daemon" in command and "pyspark.daemon" in above
        executor = "CoarseGrainedExecutorBackend" in command
        if (kind == "worker" and worker) or (kind == "executor" and executor):
            found.append(process)
    return found


def kill_while_writing(place: Path, kind: str, times: int, killed: list[int], over: threading.Event) -> None:
    """Kill writers so many times, each time when another file has been begun."""
    seen: set[str] = set()
    while len(killed) < times and not over.wait(0.02):
        begun = {path.name for path in place.glob("data/*")} - seen
        if not begun:
            continue
        seen |= begun
        time.sleep(0.3)
        for process in victims(kind)[: 1 if kind == "executor" else None]:
            process.kill()
        killed.append(len(begun))
        time.sleep(0.5)


def session(master: str, scratch: Path) -> SparkSession:
    use_java()
    use_python()
    made = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.task.maxFailures", "8")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def slow_rows(spark: SparkSession, first: int) -> DataFrame:
    return spark.range(first, first + ROWS, 1, TASKS).mapInArrow(slowly, "id long, pad string")


def main(master: str, place: str, kind: str) -> None:
    spark = session(master, Path(place).parent)
    killed: list[int] = []
    for round_, way in enumerate(("sink", "helper")):
        over = threading.Event()
        arguments = (Path(place), kind, (round_ + 1) * 2, killed, over)
        killer = threading.Thread(target=kill_while_writing, args=arguments)
        if kind != "none":
            killer.start()
        frame = slow_rows(spark, round_ * ROWS)
        if way == "sink":
            frame.write.format("lance").mode("append").save(place)
        else:
            write(frame, place, mode="append")
        over.set()
        if kind != "none":
            killer.join()
    found = {"killed": len(killed), "count": spark.read.format("lance").load(place).count()}
    sys.stdout.write(json.dumps(found) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
