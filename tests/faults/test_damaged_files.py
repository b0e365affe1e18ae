"""Damaged data files give rows or a typed error that says where, in bounded time and memory, whatever the kernels.

Every page layout, encoding and version, written by us and by pylance, is damaged and read in processes of its own,
which may die of it. A failure names its case, which the same seed makes again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance.file
import pytest

from lancelet.file import LanceFileWriter
from lancelet.kernels import variants
from lancelet.testing.damage_worker import Batch
from lancelet.testing.recipes import recipes

WRITERS = {"lancelet": LanceFileWriter, "pylance": lance.file.LanceFileWriter}
#: What is made of rows that nothing in a file vouches for stays within this.
BUDGET = "64MiB"
#: The compiled kernels and their twins.
KERNELS = sorted({variants()[0], "reference"})


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A small file of each recipe, version and writer, and one of several pages."""
    folder = tmp_path_factory.mktemp("whole")
    found = []
    for recipe in recipes():
        table = recipe.table()
        for version in recipe.versions:
            for name, writer in WRITERS.items():
                path = folder / f"{recipe}-{version}-{name}.lance"
                with writer(str(path), table.schema, version=version) as out:
                    out.write_batch(table)
                found.append(str(path))
            path = folder / f"{recipe}-{version}-pages.lance"
            with LanceFileWriter(path, table.schema, version=version, data_cache_bytes=1) as out:
                for batch in table.to_batches(max_chunksize=table.num_rows // 4 + 1):
                    out.write_batch(batch)
            found.append(str(path))
    return found


def outcomes(
    files: list[str], folder: Path, kernels: str, kind: str, seed: int, count: int
) -> Iterator[dict[str, Any]]:
    """What the workers say; one that died is followed by another for the files that are left."""
    environment = {**os.environ, "LANCELET_KERNELS": kernels, "LANCELET_MEMORY_BUDGET": BUDGET}
    command = [sys.executable, "-m", "lancelet.testing.damage_worker"]
    progress = folder / "progress"
    while files:
        batch = Batch(tuple(files), kind, seed, count, str(progress))
        ended = subprocess.run(
            command, input=batch.to_json(), capture_output=True, text=True, env=environment, check=False
        )
        yield from map(json.loads, ended.stdout.splitlines())
        if ended.returncode == 0:
            return
        case = progress.read_text()
        yield {"case": case, "wrong": f"died with {ended.returncode}: {ended.stderr[-2000:]}"}
        names = [Path(file).name for file in files]
        files = files[names.index(case.split(": ")[0]) + 1 :]


def check(files: list[str], folder: Path, kernels: str, kind: str, seed: int, count: int, refused: float) -> None:
    """No outcome but rows and typed errors, and at least a share ``refused`` of these."""
    found = list(outcomes(files, folder, kernels, kind, seed, count))
    wrong = [f"{one['case']}: {one['wrong']}" for one in found if "wrong" in one]
    assert not wrong, f"{len(wrong)} outcomes, kernels {kernels}\n" + "\n".join(wrong[:10])
    cases = sum(one["cases"] for one in found)
    assert cases >= len(files)
    assert sum(one["refused"] for one in found) >= refused * cases


@pytest.mark.parametrize("kernels", KERNELS)
def test_files_as_they_are_are_read(files: list[str], tmp_path: Path, kernels: str) -> None:
    found = list(outcomes(files, tmp_path, kernels, "as they are", 0, 1))
    assert found == [{"cases": len(files), "refused": 0}]


@pytest.mark.parametrize("kernels", KERNELS)
def test_damaged_files_give_rows_or_errors_that_say_where(files: list[str], tmp_path: Path, kernels: str) -> None:
    check(files, tmp_path, kernels, "damages", 1, 2, refused=0.3)


@pytest.mark.parametrize("kernels", KERNELS)
def test_lying_descriptions_give_rows_or_errors_that_say_where(files: list[str], tmp_path: Path, kernels: str) -> None:
    check(files, tmp_path, kernels, "lies", 1, 2, refused=0.3)


def test_files_cut_off_at_any_boundary_are_refused(files: list[str], tmp_path: Path) -> None:
    check(files[::5], tmp_path, KERNELS[-1], "boundaries", 0, 0, refused=1.0)


def test_bombs_do_not_go_off(files: list[str], tmp_path: Path) -> None:
    check(files[::7], tmp_path, KERNELS[-1], "bombs", 0, 0, refused=0.9)


@pytest.mark.long
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(("kind", "seed", "count"), [("damages", 100, 60), ("lies", 100, 60), ("bombs", 0, 0)])
def test_many_damages(files: list[str], tmp_path: Path, kernels: str, kind: str, seed: int, count: int) -> None:
    check(files, tmp_path, kernels, kind, seed, count, refused=0.3)


@pytest.mark.long
def test_every_file_cut_off_at_any_boundary_is_refused(files: list[str], tmp_path: Path) -> None:
    check(files, tmp_path, KERNELS[-1], "boundaries", 0, 0, refused=1.0)
