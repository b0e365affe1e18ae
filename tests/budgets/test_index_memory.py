"""Building an index of more rows than fit takes the memory that it may take, and no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Over the budget: what a process holds that has imported everything.
BESIDES = 160
WRITE = """
import sys
import numpy as np, pyarrow as pa
import lancelet
path, rows, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
draw = np.random.default_rng(1)
step = 2**20

def batch(start):
    numbers = draw.integers(-(2**62), 2**62, min(step, rows - start))
    numbers[0] = start
    values = pa.array(numbers) if kind == "int64" else pa.array(numbers).cast(pa.string())
    return pa.record_batch([values], ["x"])

schema = batch(0).schema
reader = pa.RecordBatchReader.from_batches(schema, (batch(start) for start in range(0, rows, step)))
lancelet.write_dataset(reader, path, max_rows_per_file=2**23)
"""
BUILD = """
import sys, time
import lancelet
from lancelet.testing.memory_peak import MemoryPeak

dataset = lancelet.dataset(sys.argv[1])
with MemoryPeak() as peak:
    began = time.perf_counter(), time.process_time()
    dataset.create_scalar_index("x", "BTREE")
    took = time.perf_counter() - began[0], time.process_time() - began[1]
wanted = "0" if sys.argv[2] == "int64" else "'0'"
assert "x_idx" in dataset.scanner(filter=f"x = {wanted}").explain_plan()
assert dataset.count_rows(f"x = {wanted}") == 1
print(round(peak.most / 2**10), round(took[0]), round(took[1]))
"""


def megabytes(path: Path, rows: int, kind: str, budget: int) -> int:
    """The most that a process had in use that built an index with a budget of so many MiB."""
    arguments = [str(path / "t"), str(rows), kind]
    subprocess.run([sys.executable, "-c", WRITE, *arguments], check=True)
    environment = os.environ | {"LANCELET_MEMORY_BUDGET": f"{budget}MiB", "TMPDIR": str(path)}
    command = [sys.executable, "-c", BUILD, arguments[0], kind]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[0])


@pytest.mark.timing
@pytest.mark.parametrize(("kind", "rows"), [("int64", 8_000_000), ("strings", 1_500_000)])
def test_an_index_of_more_rows_than_fit_is_built_within_its_budget(tmp_path: Path, kind: str, rows: int) -> None:
    assert megabytes(tmp_path, rows, kind, 128) <= 128 + BESIDES


@pytest.mark.long
@pytest.mark.timing
def test_a_hundred_million_rows_are_indexed_within_one_gibibyte(tmp_path: Path) -> None:
    assert megabytes(tmp_path, 100_000_000, "int64", 768) <= 1024
