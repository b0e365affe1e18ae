"""Importing lancelet costs little over importing pyarrow, and brings no heavy package along."""

from __future__ import annotations

import subprocess
import sys

import pytest

MOST_MILLISECONDS = 60
MOST_MEGABYTES = 25
ROUNDS = 9
#: Imported where they are used, never by ``import lancelet``.
HEAVY = ("datasets", "duckdb", "lance", "obstore", "pandas", "polars", "pyspark", "requests", "sqlglot", "torch")

MEASURE = """
import time
began = time.perf_counter()
import {module}
seconds = time.perf_counter() - began
import psutil
print(seconds, psutil.Process().memory_info().rss)
"""


def cost(module: str) -> tuple[float, int]:
    """Seconds and resident bytes of a fresh process after one import."""
    command = [sys.executable, "-c", MEASURE.format(module=module)]
    seconds, resident = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), int(resident)


@pytest.mark.timing
def test_the_import_costs_little_over_that_of_pyarrow() -> None:
    # In turns, so that a busy moment meets both; the least of each, because noise only adds.
    rounds = [(cost("pyarrow"), cost("lancelet")) for _ in range(ROUNDS)]
    pyarrow, ours = zip(*rounds, strict=True)
    milliseconds = (min(seconds for seconds, _ in ours) - min(seconds for seconds, _ in pyarrow)) * 1e3
    megabytes = (min(resident for _, resident in ours) - min(resident for _, resident in pyarrow)) / 1e6
    assert milliseconds <= MOST_MILLISECONDS, f"{milliseconds:.1f} ms over import pyarrow"
    assert megabytes <= MOST_MEGABYTES, f"{megabytes:.1f} MB over import pyarrow"


@pytest.mark.parametrize("module", ["lancelet", "lancelet.spark", "lancelet.storage", "lancelet.kernels"])
def test_the_import_loads_no_heavy_package(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(set(HEAVY) & set(loaded)) == []
