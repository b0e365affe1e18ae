"""A Spark application that copies a table by a stream: python killed_stream.py SOURCE TARGET SECONDS.

Each task waits so many seconds in the third batch, with a file begun, so that the application can be killed there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from lancelet.spark import use_java, use_python


def slowly(seconds: float, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows, and where the third batch comes by, nothing for a while."""
    for batch in batches:
        yield batch
        if seconds and 20 in batch.column(0).to_pylist():
            time.sleep(seconds)


def main(source: str, target: str, seconds: float) -> None:
    """Copy until there is nothing more."""
    use_java()
    use_python()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    frame = spark.readStream.format("lance").option("starting_version", 1).option("max_versions_per_batch", 1)
    rows = frame.load(source).mapInArrow(lambda batches: slowly(seconds, batches), "id long")
    writer = rows.writeStream.format("lance").option("max_rows_per_file", 5).trigger(availableNow=True)
    writer.option("checkpointLocation", target + ".checkpoint").start(target).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
