"""Small pages read as one: which are grouped, and that reading gives the same rows as page by page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.file import LanceFileReader, LanceFileWriter
from lancelet.file.page_groups import Apart, group_bounds
from lancelet.format.columns import Page
from lancelet.testing.arrays import make_array

MIB = 2**20


@pytest.mark.parametrize(
    ("sizes", "bounds"),
    [
        ([], [0]),
        ([0], [0, 1]),
        ([0, 0, 0], [0, 3]),
        ([MIB, MIB], [0, 1, 2]),
        ([MIB // 2] * 9, [0, 8, 9]),
        ([MIB, 5, 0, MIB, 5], [0, 1, 3, 4, 5]),
        ([1] * 300, [0, 256, 300]),
    ],
)
def test_neighbouring_small_pages_make_groups(sizes: list[int], bounds: list[int]) -> None:
    assert group_bounds([Page(((0, size),), 1, 0, b"") for size in sizes]) == bounds


KINDS = (pa.int64(), pa.string(), pa.list_(pa.int32()), pa.struct([("a", pa.int16()), ("b", pa.list_(pa.string()))]))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("nulls", ["none", "few", "runs"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_many_small_pages_read_like_one(tmp_path: Path, kind: pa.DataType, nulls: str, version: str) -> None:
    column = make_array(np.random.default_rng(3), kind, 20_000, nulls=nulls, shape="small")
    path = str(tmp_path / "a.lance")
    # A cache this small makes a page of every batch.
    with LanceFileWriter(path, pa.schema([("c", kind)]), version=version, data_cache_bytes=1) as writer:
        for start in range(0, 20_000, 700):
            writer.write_batch(pa.record_batch([column.slice(start, 700)], names=["c"]))
    reader = LanceFileReader(path)
    assert reader.read_all().to_table()["c"].combine_chunks().equals(column)
    rows = np.unique(np.random.default_rng(4).integers(0, 20_000, 300))
    for some in (rows, rows[:1], rows[-1:], rows[100:103]):
        assert reader.take_rows(some.tolist()).to_table()["c"].combine_chunks().equals(column.take(pa.array(some)))
    for start, count in ((0, 1), (699, 2), (1_234, 5_678), (19_999, 1)):
        found = reader.read_range(start, count).to_table()["c"].combine_chunks()
        assert found.equals(column.slice(start, count))


def test_pages_that_differ_are_read_apart(tmp_path: Path) -> None:
    parts = [pa.array(range(500)), pa.array([None, 7] * 200), pa.nulls(300, pa.int64()), pa.array(range(100))]
    path = str(tmp_path / "a.lance")
    with LanceFileWriter(path, pa.schema([("c", pa.int64())]), data_cache_bytes=1) as writer:
        for part in parts:
            writer.write_batch(pa.record_batch([part], names=["c"]))
    reader = LanceFileReader(path)
    assert reader.read_all().to_table()["c"].combine_chunks().equals(pa.concat_arrays(parts))
    ((_, (leaf,)),) = reader.file.leaf_pages.values()
    assert isinstance(leaf.stored[0], Apart)
