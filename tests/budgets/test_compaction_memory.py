"""Compacting more than fits into memory takes the memory that it may take, and no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Over the budget: what a process holds that has imported everything.
BESIDES = 200
WRITE = """
import sys
import numpy as np, pyarrow as pa
import lancelet
path, rows = sys.argv[1], int(sys.argv[2])
draw, step = np.random.default_rng(1), 2**17

def batch(start):
    numbers = np.arange(start, start + step)
    texts = pa.array(draw.integers(0, 2**62, step)).cast(pa.string())
    texts = pa.compute.binary_join_element_wise(texts, texts, texts, texts, texts, "-")
    return pa.record_batch([pa.array(numbers), pa.array(draw.random(step)), texts], ["k", "r", "s"])

reader = pa.RecordBatchReader.from_batches(batch(0).schema, (batch(start) for start in range(0, rows, step)))
lancelet.write_dataset(reader, path, max_rows_per_file=2**17).delete("k % 3 = 1")
"""
COMPACT = """
import sys
import lancelet
from lancelet.testing.memory_peak import MemoryPeak

dataset = lancelet.dataset(sys.argv[1])
before = dataset.count_rows()
with MemoryPeak() as peak:
    made = dataset.optimize.compact_files(target_rows_per_fragment=2**30)
assert made.fragments_added == 1 and dataset.count_rows() == before
print(round(peak.most / 2**10))
"""


@pytest.mark.timing
def test_more_than_fits_is_compacted_within_the_budget(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    subprocess.run([sys.executable, "-c", WRITE, table, str(24 * 2**17)], check=True)
    stored = sum(item.stat().st_size for item in (tmp_path / "t" / "data").iterdir())
    assert stored > 128 * 2**20, "the table is larger than the budget"
    environment = os.environ | {"LANCELET_MEMORY_BUDGET": "128MiB"}
    command = [sys.executable, "-c", COMPACT, table]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert int(done.stdout) <= 128 + BESIDES, done.stdout
