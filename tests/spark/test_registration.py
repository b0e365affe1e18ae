"""How Spark finds data sources by module name, and that lancelet's module is no obstacle to others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lancelet.spark.java import use_java
from lancelet.spark.python import use_python

NEIGHBOUR = """
from pyspark.sql.datasource import DataSource, DataSourceReader

class Reader(DataSourceReader):
    def read(self, partition):
        yield (7,)

class DefaultSource(DataSource):
    @classmethod
    def name(cls):
        return "neighbour"
    def schema(self):
        return "a int"
    def reader(self, schema):
        return Reader()
"""
JOB = """
import os, sys, pkgutil

assert "pyspark_lance" in {module.name for module in pkgutil.iter_modules()}
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.warehouse.dir", sys.argv[1]).getOrCreate()
print("read", spark.read.format("neighbour").load().collect()[0].a)
"""


def test_another_source_is_found_beside_ours(tmp_path: Path) -> None:
    (tmp_path / "pyspark_neighbour.py").write_text(NEIGHBOUR)
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "JAVA_HOME": str(use_java(tmp_path / "java").home),
        "PYTHONPATH": str(tmp_path),
    }
    use_python(environment)
    command = [sys.executable, "-c", JOB, str(tmp_path / "warehouse")]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip().splitlines()[-1] == "read 7"


def test_the_module_that_spark_imports_brings_nothing_along() -> None:
    code = """
import sys, pyspark.sql.datasource
before = set(sys.modules)
import pyspark_lance
assert pyspark_lance.DefaultSource.name() == "lance"
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['pyspark_lance']"
