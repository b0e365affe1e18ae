"""Streams: any number of them run side by side, and none holds more than a window of rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancelet.config import default_options
from lancelet.file import LanceFileReader, LanceFileWriter
from lancelet.file.stream import Pace


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_more_streams_than_threads_all_end(tmp_path: Path, version: str) -> None:
    path = str(tmp_path / "f.lance")
    draw = np.random.default_rng(1)
    with LanceFileWriter(path, version=version) as writer:
        for _ in range(3):
            writer.write_batch(pa.table({name: draw.normal(size=400_000) for name in "abc"}))

    def stream(_: int) -> int:
        return sum(batch.num_rows for batch in LanceFileReader(path).read_all(batch_size=8192).to_batches())

    streams = 2 * default_options().threads + 1
    # An executor that is never joined: a stream that hangs must fail the test, not stop it.
    executor = ThreadPoolExecutor(streams)
    found = [executor.submit(stream, number) for number in range(streams)]
    assert [one.result(timeout=60) for one in found] == [1_200_000] * streams


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_a_window_of_blobs_counts_the_blobs(tmp_path: Path, version: str) -> None:
    path = str(tmp_path / "f.lance")
    kind = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    with LanceFileWriter(path, pa.schema([kind]), version=version) as writer:
        for _ in range(20):
            writer.write_batch(
                pa.table({"b": pa.array([bytes(400_000)] * 10, pa.large_binary())}, schema=pa.schema([kind]))
            )
    reader = LanceFileReader(path)
    assert Pace.first(reader.file, reader.shapes, 10).rows < 100
    batches = reader.read_all(batch_size=10).to_batches()
    assert sum(int(pc.binary_length(batch["b"]).to_numpy().sum()) for batch in batches) == 80_000_000
