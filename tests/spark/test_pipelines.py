"""Spark Declarative Pipelines: tables are read by batch and by stream, and written through a sink, without set-up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from lancelet.spark.java import use_java
from lancelet.spark.python import use_python

pytest.importorskip("pyspark.pipelines", reason="Spark has pipelines from 4.1 on")

SPECIFICATION = """
name: lance_pipeline
storage: file://{place}/storage
configuration:
  # Spark waits ten seconds for the process that plans a stream, which a loaded machine may not keep.
  spark.sql.pipelines.maxFlowRetryAttempts: "10"
libraries:
  - glob:
      include: transformations/**
"""
DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
SOURCE = {source!r}


@dp.materialized_view
def totals():
    return spark.read.format("lance").load(SOURCE).groupBy("even").count()


dp.create_sink("copied", "lance", {{"path": {target!r}}})


@dp.append_flow(target="copied")
def copied_flow():
    return spark.readStream.format("lance").load(SOURCE).where("even")
"""


def append(uri: str, start: int, stop: int) -> None:
    numbers = pa.array(range(start, stop), pa.int64())
    rows = pa.table({"id": numbers, "even": [at % 2 == 0 for at in range(start, stop)]})
    lance.write_dataset(rows, uri, mode="append")


def run(place: Path) -> None:
    # With SPARK_TESTING the Connect server that runs the pipeline takes any free port, rather than one for all.
    environment = dict(os.environ, JAVA_HOME=str(use_java().home), SPARK_TESTING="1")
    use_python(environment)
    command = [str(Path(sys.executable).parent / "spark-pipelines"), "--remote", "local[2]"]
    command += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"]
    command += ["--conf", "spark.driver.bindAddress=127.0.0.1", "--conf", "spark.sql.shuffle.partitions=2"]
    done = subprocess.run(
        [*command, "run", "--spec", str(place / "spark-pipeline.yml")],
        env=environment,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


@pytest.mark.parametrize("stops", [[10], pytest.param([10, 16], marks=pytest.mark.long)], ids=["once", "twice"])
def test_a_pipeline_reads_tables_and_writes_one_through_a_sink_and_goes_on(tmp_path: Path, stops: list[int]) -> None:
    source, target = str(tmp_path / "source.lance"), str(tmp_path / "target.lance")
    (tmp_path / "transformations").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(SPECIFICATION.format(place=tmp_path))
    definitions = DEFINITIONS.format(source=source, target=target)
    (tmp_path / "transformations" / "tables.py").write_text(definitions)
    for version, stop in enumerate(stops, 1):
        append(source, [0, *stops][version - 1], stop)
        run(tmp_path)
        copied = lance.dataset(target)
        assert sorted(copied.to_table()["id"].to_pylist()) == list(range(0, stop, 2))
        assert copied.version == version
        totals = pads.dataset(str(tmp_path / "spark-warehouse" / "totals"), format="parquet").to_table().to_pylist()
        assert sorted((row["even"], row["count"]) for row in totals) == [(False, stop // 2), (True, stop // 2)]
