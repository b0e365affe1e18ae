"""A Spark application that makes a large table, compacts and merges it: python large_table.py PLACE GIGABYTES.

Executors have 1 GiB each. Prints as JSON what was done, how long it took, and the most memory that an executor and a
Python worker held.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

from lancelet.spark import use_java, use_python, write
from lancelet.spark.table import LanceTable
from lancelet.testing.spark_kinds import stopped

#: Values of a vector; a row takes about 1 KiB, which no encoding makes smaller.
SIZE = 250
ROW_BYTES = 8 + 4 * SIZE + 16
ROWS_PER_FILE = 20_000


def vectors(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows for ids."""
    for batch in batches:
        ids = batch.column(0).to_numpy()
        for first in range(0, len(ids), 2_000):
            some = ids[first : first + 2_000]
            values = np.random.default_rng(int(some[0])).standard_normal(len(some) * SIZE, np.float32)
            vector = pa.FixedSizeListArray.from_arrays(pa.array(values), SIZE).cast(pa.list_(pa.float32()))
            yield pa.RecordBatch.from_pydict({"id": some, "round": np.zeros(len(some), np.int32), "vector": vector})


class Peaks:
    """The most memory that processes of the application held, by what they are."""

    def __init__(self) -> None:
        self.executor = self.worker = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            for process in psutil.Process().children(recursive=True):
                try:
                    command, memory = " ".join(process.cmdline()), process.memory_info()
                    held = memory.rss - memory.shared
                except psutil.Error:
                    continue
                if "CoarseGrainedExecutorBackend" in command:
                    self.executor = max(self.executor, held)
                elif "pyspark.daemon" in command:
                    self.worker = max(self.worker, held)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def session(scratch: Path) -> SparkSession:
    use_java()
    use_python()
    made = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.executor.memory", "1g")
        .config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def main(place: str, gigabytes: str) -> None:
    rows = int(float(gigabytes) * 1e9 / ROW_BYTES)
    spark = session(Path(place).parent)
    peaks, seconds, figures = Peaks(), {}, {}

    began = time.perf_counter()
    frame = spark.range(0, rows, 1, max(2, rows // 200_000)).mapInArrow(
        vectors, "id long, round int, vector array<float>"
    )
    sized = frame.withMetadata("vector", {"arrow.fixed-size-list.size": SIZE})
    made = write(sized, place, max_rows_per_file=ROWS_PER_FILE)
    figures["bytes"], figures["files"] = (made.num_bytes, made.num_files) if made else (0, 0)
    seconds["write"] = time.perf_counter() - began

    table = LanceTable.forPath(spark, place)
    began = time.perf_counter()
    table.compact(10 * ROWS_PER_FILE)
    figures["fragments"] = len(table.dataset().get_fragments())
    seconds["compact"] = time.perf_counter() - began

    # Every hundredth row changes, and a hundredth of new ones come.
    began = time.perf_counter()
    ids = spark.range(0, rows, 100).unionAll(spark.range(rows, rows + rows // 100))
    source = ids.selectExpr("id", "1 round")
    merge = table.merge(source, "target.id = source.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    figures |= {"updated": merge.num_updated_rows, "inserted": merge.num_inserted_rows}
    seconds["merge"] = time.perf_counter() - began

    peaks.stop()
    figures |= {"rows": rows, "executor": peaks.executor, "worker": peaks.worker}
    sys.stdout.write(json.dumps({"figures": figures, "seconds": seconds}) + "\n")
    stopped(spark)


if __name__ == "__main__":
    main(*sys.argv[1:])
