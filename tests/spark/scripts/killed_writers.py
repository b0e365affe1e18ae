"""A Spark application whose writers are killed while they write: python killed_writers.py MASTER PLACE VICTIM.

VICTIM is ``worker`` (Python workers), ``executor`` (their JVMs), or ``slow``: then nobody is killed by us, but the
first attempt at one task of each write hangs, so that Spark starts a second one elsewhere and kills the slower of the
two. Prints what happened as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from lancelet.spark import use_java, use_python, write
from lancelet.spark.table import LanceTable
from lancelet.testing.spark_kinds import stopped

TASKS, ROWS = 4, 24
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "100ms",
}


def slowly(hang: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that come so slowly that a writer can be met at work; the first attempt at the first task may hang."""
    context = TaskContext.get()
    stuck = hang and context is not None and context.partitionId() == 0 and context.attemptNumber() == 0
    for batch in batches:
        for number in range(batch.num_rows):
            time.sleep(3600 if stuck and number == 3 else 0.05)
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


def begun(place: Path) -> set[str]:
    """Files that writers have begun, or told that they will."""
    found = [*place.glob("data/*"), *place.glob("_lancelet/attempts/*-*"), *place.glob("_indices/*/*")]
    return {str(path) for path in found}


def kill_while_writing(place: Path, kind: str, wait: float, killed: list[int], over: threading.Event) -> None:
    """Kill writers twice, each time when another file has been begun."""
    seen, left = begun(place), 2
    while left and not over.wait(0.01):
        new = begun(place) - seen
        if not new:
            continue
        seen |= new
        time.sleep(wait)
        for process in victims(kind)[: 1 if kind == "executor" else None]:
            process.kill()
        killed.append(len(new))
        left -= 1
        time.sleep(0.5)


def session(master: str, scratch: Path, kind: str) -> SparkSession:
    use_java()
    use_python()
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.task.maxFailures": "8",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": str(TASKS),
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        # Executors that are killed must not end the application.
        "spark.deploy.maxExecutorRetries": "-1",
        **(SPECULATION if kind == "slow" else {}),
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def slow_rows(spark: SparkSession, first: int, kind: str) -> DataFrame:
    rows = spark.range(first, first + ROWS, 1, TASKS)
    return rows.mapInArrow(partial(slowly, kind == "slow"), "id long, pad string")


def steps(spark: SparkSession, place: str, kind: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is written, in this order, and the ways to do it."""
    appended = slow_rows(spark, 0, kind).write.format("lance").mode("append").save
    yield "sink", partial(appended, place)
    yield "helper", lambda: write(slow_rows(spark, ROWS, kind), place, mode="append")
    table = LanceTable.forPath(spark, place)
    yield "update", lambda: table.update("id % 2 = 0", {"pad": "concat('even ', substr(pad, 1, 100000))"})
    yield "delete", lambda: table.delete("id % 3 = 0")
    source = spark.range(40, 60).selectExpr("id", "concat('merged ', repeat('y', 100000)) pad")
    merge = table.merge(source, "target.id = source.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    yield "merge", merge.execute
    yield "index", lambda: table.createIndex("id", segments=TASKS)


def main(master: str, place: str, kind: str) -> None:
    spark = session(master, Path(place).parent, kind)
    kills: dict[str, int] = {}
    for way, run in steps(spark, place, kind):
        if kind == "slow" and way not in ("sink", "helper"):
            # Only rows that are made here can be made slowly.
            run()
            continue
        killed: list[int] = []
        over = threading.Event()
        arguments = (Path(place), kind, 0.3 if way in ("sink", "helper") else 0.0, killed, over)
        killer = threading.Thread(target=kill_while_writing, args=arguments)
        if kind != "slow":
            killer.start()
        run()
        over.set()
        if kind != "slow":
            killer.join()
        kills[way] = len(killed)
    found = {"killed": kills, "count": spark.read.format("lance").load(place).count()}
    sys.stdout.write(json.dumps(found) + "\n")
    stopped(spark)


if __name__ == "__main__":
    main(*sys.argv[1:])
