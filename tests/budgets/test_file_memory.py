"""Reading and writing files in streams takes bounded memory, however large the files are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Over what the process has in use before it begins.
MOST_MEGABYTES = 200
#: What each process does first: a file of about 1 GB once decoded is made of one batch, again and again.
COMMON = """
import sys
import numpy as np, pyarrow as pa
from lancelet.file import LanceFileReader, LanceFileWriter
from lancelet.testing.memory_peak import MemoryPeak

path, case, version = sys.argv[1:]
draw = np.random.default_rng(1)

def batch():
    if case == "vectors":
        return pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(draw.random(16_000 * 768, np.float32)), 768)})
    if case == "strings":
        return pa.table({"s": [f"row {n} has some words" for n in range(300_000)]})
    if case == "constant strings":
        return pa.table({"s": ["the same words in every row, again and again"] * 300_000})
    if case == "few strings":
        return pa.table({"s": [f"one of a few long strings that repeat: {n % 9}" * 3 for n in range(100_000)]})
    if case == "lists":
        offsets = np.arange(0, 3_000_001, 3, dtype=np.int32)
        return pa.table({"l": pa.ListArray.from_arrays(offsets, pa.array(draw.integers(0, 99, 3_000_000)))})
    if case == "nulls":
        return pa.table({"n": pa.nulls(2_000_000, pa.int64())})
    return pa.table({f"c{n}": draw.integers(0, 2**40, 20_000) for n in range(200)})

class Peak(MemoryPeak):
    def __exit__(self, *error):
        super().__exit__(*error)
        print(round((self.most - self.base) / 1e3))
"""
WRITE = """
table = batch()
times = -(-10**9 // table.nbytes)
# Of many columns each waits for its page; this much is what all of them may hold back.
held_back = 64 * 2**20 if case == "wide" else None
with Peak(), LanceFileWriter(path, table.schema, version=version, data_cache_bytes=held_back) as writer:
    for _ in range(times):
        writer.write_batch(table)
"""
READ = """
reader = LanceFileReader(path)
rows = 0
with Peak():
    for one in reader.read_all(batch_size={batch_size}).to_batches():
        rows += one.num_rows
        del one
assert rows == reader.num_rows()
"""


def megabytes(code: str, path: Path, case: str, version: str) -> int:
    """The most that a fresh process had in use over what it began with."""
    command = [sys.executable, "-c", COMMON + code, str(path), case, version]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


#: Batches of vectors are large already, those of wide rows too.
BATCH_SIZES = {"vectors": (1024, 10_000), "wide": (16, 1024)}
CASES = ("vectors", "strings", "constant strings", "few strings", "lists", "nulls", "wide")


def check(case: str, version: str, path: Path) -> None:
    found = {"writing": megabytes(WRITE, path, case, version)}
    for batch_size in BATCH_SIZES.get(case, (1024, 100_000)):
        code = READ.replace("{batch_size}", str(batch_size))
        found[f"reading {batch_size:,} rows at a time"] = megabytes(code, path, case, version)
    assert max(found.values()) <= MOST_MEGABYTES, found


@pytest.mark.timing
@pytest.mark.parametrize("case", ["vectors", "few strings", "lists"])
def test_a_stream_of_a_gigabyte_takes_bounded_memory(case: str, tmp_path: Path) -> None:
    check(case, "2.2", tmp_path / "a.lance")


@pytest.mark.timing
@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_any_stream_of_a_gigabyte_takes_bounded_memory(case: str, version: str, tmp_path: Path) -> None:
    check(case, version, tmp_path / "a.lance")
