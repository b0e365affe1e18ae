"""Data files that pylance releases from 0.4 to 1.0 wrote, against what those releases read from them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelet.file import LanceFileReader

GOLDEN = Path(__file__).parents[1] / "golden"
SINCE_2_0 = sorted(path for path in GOLDEN.iterdir() if path.is_dir() and not path.name.endswith(("default", "legacy")))


def expected(table: Path) -> pa.Table:
    with pa.OSFile(f"{table}.arrow") as file:
        return pa.ipc.open_file(file).read_all()


@pytest.mark.parametrize("table", SINCE_2_0, ids=lambda path: path.name)
def test_a_file_of_an_old_release_reads_as_that_release_read_it(table: Path) -> None:
    wanted = expected(table)
    (file,) = (table / "data").iterdir()
    reader = LanceFileReader(file)
    found = reader.read_all().to_table()
    for name in wanted.column_names:
        column, other = found[name], wanted[name]
        if pa.types.is_dictionary(other.type):
            column, other = column.cast(pa.string()), other.cast(pa.string())
        assert column.equals(other), name
    chosen = [0, 1, 17, 255, 299]
    assert reader.take_rows(chosen).to_table()["u"].to_pylist() == wanted["u"].take(chosen).to_pylist()
