"""Merges of many rows into many more stay within the memory budget that they are given, however many there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: In a process of its own: the table is made, then merged into with a budget, and the peak of its memory told.
SCRIPT = """
import sys, time
import numpy as np, pyarrow as pa
import lancelet
from lancelet.testing.memory_peak import MemoryPeak

path, rows, source = sys.argv[1], *map(int, sys.argv[2:])
STEP = 250_000

def batch(keys, word):
    texts = pa.array(np.char.add(word, (keys % 9973).astype(str)))
    return pa.record_batch({"k": keys, "x": keys / 3, "s": texts})

def made(count, keys_of, word):
    schema = batch(np.arange(1), word).schema
    starts = range(0, count, STEP)
    parts = (batch(keys_of(np.arange(first, min(first + STEP, count))), word) for first in starts)
    return pa.RecordBatchReader.from_batches(schema, parts)

def scattered(numbers):
    # Each number once, in no order: half of them are keys of the table, the others new.
    return (numbers * 7_368_787) % (2 * rows)

lancelet.write_dataset(made(rows, lambda numbers: numbers, "old "), path)
with MemoryPeak() as peak:
    began, cpu = time.perf_counter(), time.process_time()
    merge = lancelet.dataset(path).merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    counts = merge.execute(made(source, scattered, "new "))
    took, used = time.perf_counter() - began, time.process_time() - cpu
base, most = peak.base / 1e3, peak.most / 1e3
found = lancelet.dataset(path)
keys = scattered(np.arange(source))
inserted = int((keys >= rows).sum())
assert counts["num_inserted_rows"] == inserted, counts
assert counts["num_updated_rows"] == source - inserted, counts
assert found.count_rows() == rows + inserted
assert found.count_rows(filter="s LIKE 'new %'") == source
some = keys[:: max(source // 50, 1)]
listed = ", ".join(map(str, some.tolist()))
values = found.to_table(columns=["k", "s"], filter=f"k IN ({listed})").to_pydict()
assert dict(zip(values["k"], values["s"])) == {key: f"new {key % 9973}" for key in some.tolist()}
print(round(most - base), round(took, 1), round(used, 1))
"""
MEGABYTE = 2**20


def merged(path: Path, rows: int, source: int, budget: int) -> float:
    """Megabytes that the merge added to its process."""
    given = [sys.executable, "-c", SCRIPT, str(path), str(rows), str(source)]
    options = os.environ | {"LANCELET_MEMORY_BUDGET": str(budget)}
    done = subprocess.run(given, capture_output=True, text=True, check=False, env=options)
    assert done.returncode == 0, done.stderr[-3000:]
    sys.stdout.write(f"{source:,} into {rows:,}: megabytes, seconds, seconds of processor time: {done.stdout}")
    return float(done.stdout.split()[-3])


@pytest.mark.timing
def test_a_merge_of_half_a_million_rows_stays_within_its_budget(tmp_path: Path) -> None:
    # What Python, Arrow's pools and buffers of files take besides is allowed for.
    assert merged(tmp_path / "t", 2_500_000, 500_000, 128 * MEGABYTE) < 128 * 1.049 + 150


@pytest.mark.long
@pytest.mark.timing
def test_ten_million_rows_are_merged_into_fifty_within_a_gibibyte(tmp_path: Path) -> None:
    assert merged(tmp_path / "t", 50_000_000, 10_000_000, 1024 * MEGABYTE) < 1074
