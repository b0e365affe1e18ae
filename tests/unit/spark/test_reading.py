"""Reads planned and carried out without a session: what options of batches and splits do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelet import write_dataset
from lancelet.spark.address import Address
from lancelet.spark.options import ReadOptions, read_options
from lancelet.spark.reading import Reading, plan_reading, plan_splits, read_split

ROWS = 10_000


@pytest.fixture
def place(tmp_path: Path) -> str:
    """One column of eight bytes a row in two fragments."""
    write_dataset(pa.table({"id": pa.array(range(ROWS), pa.int64())}), str(tmp_path / "t"), max_rows_per_file=ROWS // 2)
    return str(tmp_path / "t")


def planned(place: str, asked: ReadOptions) -> Reading:
    """The read of the newest version."""
    address = Address(uri=place)
    return plan_reading(address.pinned(address.open()), asked)


@pytest.mark.parametrize(
    ("options", "most"),
    [({"batch_size": "100"}, 100), ({"batchSize": "3000"}, 3000), ({"batch_bytes": "4KiB"}, 1024), ({}, 8192)],
)
def test_batches_are_as_large_as_they_were_asked_for(place: str, options: dict[str, str], most: int) -> None:
    reading = planned(place, read_options({"path": place, **options})[1])
    sizes = [batch.num_rows for split in plan_splits(reading) for batch in read_split(reading, split)]
    assert sum(sizes) == ROWS
    assert max(sizes) <= most
    # And not needlessly small.
    assert len(sizes) <= 2 * (ROWS // most + 2)


@pytest.mark.parametrize(("size", "splits"), [("20KB", 4), ("40KB", 2), ("1MB", 1), ("80KB", 1)])
def test_splits_have_about_as_many_bytes_as_they_were_asked_for(place: str, size: str, splits: int) -> None:
    reading = planned(place, read_options({"path": place, "split_size": size})[1])
    found = plan_splits(reading)
    assert len(found) == splits
    ids = [value for split in found for batch in read_split(reading, split) for value in batch["id"].to_pylist()]
    assert ids == list(range(ROWS))
