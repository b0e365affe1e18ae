"""Rows of large values from many pages: gathered at once, they are the same as page by page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancelet.file import LanceFileReader, LanceFileWriter


@pytest.mark.parametrize("nulls", ["none", "in some pages"])
@pytest.mark.parametrize("count", [1, 2, 60, 500])
def test_vectors_of_many_pages_are_taken(tmp_path: Path, nulls: str, count: int) -> None:
    random = np.random.default_rng(count)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.standard_normal(2_000 * 600, np.float32)), 600)
    if nulls != "none":
        vectors = pa.concat_arrays([vectors.slice(0, 1_000), pa.nulls(10, vectors.type), vectors.slice(1_010)])
    path = str(tmp_path / "a.lance")
    with LanceFileWriter(path, pa.schema([("c", vectors.type)]), data_cache_bytes=1) as writer:
        for start in range(0, 2_000, 250):
            writer.write_batch(pa.record_batch([vectors.slice(start, 250)], names=["c"]))
    rows = np.sort(random.choice(2_000, count, replace=False))
    found = LanceFileReader(path).take_rows(rows.tolist()).to_table()["c"].combine_chunks()
    assert found.equals(vectors.take(pa.array(rows)))
