"""Batches on their way to tensors: small ones put together, and all kept on disk for the next pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from lancelet.errors import InvalidInput

__all__ = ["CachedBatches", "buffered", "concat_batches"]


def concat_batches(bs: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one.

    >>> concat_batches([pa.record_batch({"x": [1]}), pa.record_batch({"x": [2, 3]})])["x"].to_pylist()
    [1, 2, 3]
    """
    columns = [pa.concat_arrays([batch.column(place) for batch in bs]) for place in range(bs[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=bs[0].schema)


def buffered(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: neighbours are put together as long as they have ``size`` rows at most.

    >>> [batch.num_rows for batch in buffered([pa.record_batch({"x": [0] * rows}) for rows in (2, 1, 3, 1)], 4)]
    [3, 4]
    """
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if rows and rows + batch.num_rows > size:
            yield held[0] if len(held) == 1 else concat_batches(held)
            held, rows = [], 0
        held.append(batch)
        rows += batch.num_rows
    if rows:
        yield held[0] if len(held) == 1 else concat_batches(held)


class CachedBatches:
    """Batches that are written to a file when they are gone through, and read from it ever after.

    A pass that was broken off is begun anew, at the source.

    >>> kept = CachedBatches(lambda: iter([pa.record_batch({"x": [1]})]))
    >>> [list(kept) for _ in range(2)][1][0]["x"].to_pylist()
    [1]
    """

    def __init__(
        self, source: Callable[[], Iterable[pa.RecordBatch]], folder: str | os.PathLike[str] | bool | None = True
    ) -> None:
        if not isinstance(folder, str | os.PathLike | bool | None):
            raise InvalidInput(f"cache is {folder!r}, expected True or a folder")
        self._source = source
        self._folder = TemporaryDirectory(
            prefix="lance-torch-dataset", dir=None if folder is None or isinstance(folder, bool) else folder
        )
        self._file: Path | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._file is not None:
            with pa.OSFile(str(self._file)) as file, pa.ipc.open_stream(file) as reader:
                yield from reader
            return
        path = Path(self._folder.name) / "cache.arrow"
        writer: pa.ipc.RecordBatchStreamWriter | None = None
        try:
            for batch in self._source():
                if writer is None:
                    writer = pa.ipc.new_stream(str(path), batch.schema)
                writer.write_batch(batch)
                yield batch
        finally:
            if writer is not None:
                writer.close()
        if writer is not None:
            self._file = path

    def close(self) -> None:
        """Remove the file."""
        self._folder.cleanup()
