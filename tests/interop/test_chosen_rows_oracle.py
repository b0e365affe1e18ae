"""Scans of rows that are allowed or blocked by their ids: both implementations hand out and count the same."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.dataset import serialize_row_addrs as serialized_by_pylance

import lancelet
from lancelet.dataset import serialize_row_addrs
from lancelet.errors import InvalidInput

SECOND = 2**32


@pytest.mark.parametrize("rows", [[], [5], [SECOND + 5, 0, 2], [7, 7, 3]])
def test_a_set_of_rows_has_the_same_bytes_in_both(rows: list[int]) -> None:
    assert serialize_row_addrs(rows) == serialized_by_pylance(rows)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"row_addr_allowlist": [0, 2, SECOND + 1, 7]},
        {"row_addr_blocklist": [0, 2, SECOND + 1, 7]},
        {"row_addr_allowlist": [0, 2, 3], "row_addr_blocklist": [2]},
        {"row_addr_allowlist": [0, 2, 3], "filter": "x > 1"},
        {"row_addr_blocklist": range(1000), "filter": "x > 1"},
        {"row_addr_allowlist": []},
    ],
)
def test_both_hand_out_and_count_the_same_rows(tmp_path: Path, stable: bool, options: dict[str, object]) -> None:
    table = pa.table({"x": list(range(10))})
    theirs = lance.write_dataset(table, tmp_path / "t", max_rows_per_file=5, enable_stable_row_ids=stable)
    theirs.delete("x = 3")
    ours = lancelet.dataset(tmp_path / "t")
    sets = {name: serialize_row_addrs(value) for name, value in options.items() if name != "filter"}
    given = {**options, **sets}
    expected = theirs.scanner(**given).to_table()
    assert ours.scanner(**given).to_table() == expected
    assert ours.scanner(**given).count_rows() == expected.num_rows


def test_bytes_that_are_no_set_of_rows_are_refused(tmp_path: Path) -> None:
    made = lancelet.write_dataset(pa.table({"x": [1]}), tmp_path / "t")
    with pytest.raises(InvalidInput, match="row_addr_allowlist is no set of rows"):
        made.scanner(row_addr_allowlist=b"xx")
