"""The daemon that has lancelet imported: workers forked from it read, write and plan as others do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa

from lancelet.spark.java import use_java
from lancelet.spark.python import use_python

JOB = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.warehouse.dir", sys.argv[1])
spark = builder.config("spark.python.daemon.module", "lancelet.spark.daemon").getOrCreate()

def loaded(batches):
    import pyarrow as pa
    there = "lancelet.spark.source" in sys.modules
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"id": pa.array([int(there)], pa.int64())})

# The first worker of all, before anything of lancelet was asked for.
found = spark.range(1).mapInArrow(loaded, "id long").collect()[0].id
rows = spark.read.format("lance").load(sys.argv[2])
rows.write.format("lance").mode("append").save(sys.argv[2])
print("read", spark.read.format("lance").load(sys.argv[2]).selectExpr("sum(id)").collect()[0][0], found)
"""


def test_workers_of_a_daemon_that_has_lancelet_read_and_write(tmp_path: Path) -> None:
    use_java()
    use_python()
    lance.write_dataset(pa.table({"id": pa.array(range(100), pa.int64())}), str(tmp_path / "t"))
    command = [sys.executable, "-c", JOB, str(tmp_path / "warehouse"), str(tmp_path / "t")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip().splitlines()[-1] == f"read {2 * sum(range(100))} 1"
