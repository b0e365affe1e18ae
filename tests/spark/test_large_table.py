"""A table far larger than the memory of the executors that compact and merge it: LANCELET_LARGE_GB, 20 by default."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import lance
import pytest

SCRIPT = Path(__file__).parent / "scripts" / "large_table.py"
GIGABYTES = float(os.environ.get("LANCELET_LARGE_GB", "20"))


@pytest.mark.long
def test_a_table_far_larger_than_executors_is_compacted_and_merged(tmp_path: Path) -> None:
    place = tmp_path / "t"
    # The table, its compacted copy, and what Spark shuffles.
    needed = int(2.6 * GIGABYTES * 1e9)
    free = shutil.disk_usage(tmp_path).free
    if free < needed:
        pytest.fail(f"{free / 1e9:.0f} GB are free, {needed / 1e9:.0f} are needed: set LANCELET_LARGE_GB")
    command = [sys.executable, str(SCRIPT), str(place), str(GIGABYTES)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=6 * 3600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    print(json.dumps(found))  # noqa: T201 - what the long run reports
    try:
        check(found["figures"], place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check(figures: dict[str, int], place: Path) -> None:
    rows, table = figures["rows"], lance.dataset(str(place))
    assert figures["bytes"] > 0.95 * GIGABYTES * 1e9
    assert figures["fragments"] < figures["files"]
    assert (figures["updated"], figures["inserted"]) == (-(-rows // 100), rows // 100)
    assert table.count_rows() == rows + rows // 100
    assert table.count_rows("round = 1") == -(-rows // 100) + rows // 100
    ids = table.to_table(columns=["id"])["id"].to_numpy()
    assert (sorted(ids.tolist()) == list(range(rows + rows // 100))) is True
    changed = table.to_table(columns=["id", "vector"], filter="id = 100")["vector"][0]
    assert len(changed) == 250
    # An executor of Spark, and the Python worker beside it.
    assert figures["executor"] < 1.6 * 2**30
    assert figures["worker"] < 2**30
