"""What the Spark cases work on: one session on two local cores, and the same rows as a table and as Parquet files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from bench.corpus import DIRECTORY, scale

__all__ = ["ROWS", "all_processes", "lance_table", "parquet_files", "session"]

#: Rows of each table, and how many fragments and Parquet files they are in.
ROWS = {"wide": 200_000, "narrow": 2_000_000}
FILES = 4


def rows(kind: str) -> Iterator[pa.RecordBatch]:
    """``wide``: vectors with an id and a short text; ``narrow``: twelve columns of numbers and a short text."""
    draw, left = np.random.default_rng(5), max(int(ROWS[kind] * scale()), 20_000)
    for first in range(0, left, 20_000):
        number = min(20_000, left - first)
        ids = np.arange(first, first + number)
        text = pa.array([f"text {at % 1000}" for at in ids])
        if kind == "wide":
            vector = pa.FixedSizeListArray.from_arrays(pa.array(draw.standard_normal(number * 128, np.float32)), 128)
            yield pa.RecordBatch.from_pydict({"id": ids, "text": text, "vector": vector})
        else:
            columns: dict[str, object] = {"i0": ids}
            columns |= {f"i{at}": draw.integers(0, 10**at, number) for at in range(1, 6)}
            columns |= {f"f{at}": draw.standard_normal(number) for at in range(6)}
            yield pa.RecordBatch.from_pydict({**columns, "text": text})


def _made(name: str, make: Callable[[str], object]) -> str:
    path = DIRECTORY / f"spark-{name}-{scale()}"
    if not path.exists():
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(f"{path}.new", ignore_errors=True)
        make(f"{path}.new")
        Path(f"{path}.new").rename(path)
    return str(path)


@lru_cache
def lance_table(kind: str) -> str:
    """The table as lancelet writes it."""
    from lancelet import write_dataset

    table = pa.Table.from_batches(list(rows(kind)))
    return _made(f"{kind}.lance", lambda path: write_dataset(table, path, max_rows_per_file=-(-len(table) // FILES)))


@lru_cache
def parquet_files(kind: str) -> str:
    """The same rows as Spark writes them, in as many files."""
    frame = session().read.format("lance").load(lance_table(kind))
    return _made(f"{kind}.parquet", frame.repartition(FILES).write.parquet)


@lru_cache
def session() -> Any:
    """One session for all cases, with workers that are used again, as Spark does by itself."""
    from pyspark.sql import SparkSession

    from lancelet.spark import use_java, use_python

    use_java()
    use_python()
    os.environ["PYTHONWARNINGS"] = "ignore"
    builder = SparkSession.builder.master("local[2]").appName("lancelet bench")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.sql.warehouse.dir": str(DIRECTORY / "warehouse"),
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.python.daemon.module": os.environ.get("BENCH_DAEMON", "pyspark.daemon"),
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


#: CPU seconds of each process by its number and birth, as they were seen last.
_used: dict[tuple[int, float], float] = {}


def all_processes() -> float:
    """CPU seconds of this process and of all that it started; of those that ended, up to when they were seen last."""
    here = psutil.Process()
    for process in [here, *here.children(recursive=True)]:
        try:
            used = process.cpu_times()
            _used[process.pid, process.create_time()] = used.user + used.system
        except psutil.Error:
            continue
    return sum(_used.values())
