"""Spilling: rows put aside in temporary files and read again, as they came or divided by what their keys are.

The files are Arrow IPC streams of LZ4 frames in a folder of their own below the system's folder for temporary files
(``TMPDIR``); it goes when the spill is closed, and when the process ends as it should.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import Storage
from lancelet.rows.addresses import UInt64s

__all__ = ["Partitions", "SpillFile", "SpillFolder", "bits_of", "divided"]

#: What all partitions together hold back before they write: batches should be worth their frames.
_HELD = 32 * 2**20
#: Smaller batches of a partition are written together.
_WORTH_A_BATCH = 256 * 2**10
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class SpillFolder:
    """A temporary folder, made when it is first needed; as a context manager it is removed at the end.

    >>> with SpillFolder() as folder:
    ...     folder.path.is_dir()
    True
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._remove: Callable[[], object] | None = None

    @property
    def path(self) -> Path:
        """Where it is."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix="lancelet-"))
            self._remove = weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
        return self._path

    def close(self) -> None:
        """Remove the folder and all in it."""
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> SpillFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SpillFile:
    """Rows in the order in which they are written; they are read once all are in, as often as wanted.

    >>> with SpillFolder() as folder:
    ...     file = SpillFile(folder, "rows", pa.schema({"x": pa.int8()}))
    ...     file.write(pa.record_batch({"x": pa.array([1, 2], pa.int8())}))
    ...     [batch.num_rows for batch in file.read()], file.num_rows
    ([2], 2)
    """

    def __init__(self, folder: SpillFolder, name: str, schema: pa.Schema) -> None:
        self.schema = schema
        self.num_rows = 0
        #: Bytes of the rows in memory.
        self.nbytes = 0
        self._folder, self._name = folder, name
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None
        self._sink: pa.NativeFile | None = None

    @property
    def _path(self) -> Path:
        return self._folder.path / self._name

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows in."""
        if not rows.num_rows:
            return
        try:
            if self._writer is None:
                self._sink = pa.OSFile(str(self._path), "wb")
                self._writer = pa.ipc.new_stream(self._sink, self.schema, options=_OPTIONS)
            self._writer.write(rows)
        except OSError as error:
            hint = "make room there, or name another folder by TMPDIR"
            raise Storage(f"rows cannot be put aside: {error}", uri=str(self._path), hint=hint) from error
        self.num_rows += rows.num_rows
        self.nbytes += rows.nbytes

    def finish(self) -> None:
        """Write what waits; no more rows come."""
        if self._writer is not None and self._sink is not None:
            self._writer.close()
            self._sink.close()
            self._writer = None

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        self.finish()
        if not self.num_rows:
            return
        # Read, not mapped: what was looked at once is not to count as the process's memory.
        with pa.OSFile(str(self._path)) as source, pa.ipc.open_stream(source) as reader:
            yield from reader

    def read_table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(self.read(), self.schema)

    def remove(self) -> None:
        """Remove the file."""
        self.finish()
        if self.num_rows:
            self._path.unlink(missing_ok=True)


class Partitions:
    """Rows divided among files by a number for each."""

    def __init__(self, folder: SpillFolder, name: str, schema: pa.Schema, count: int) -> None:
        self.files = [SpillFile(folder, f"{name}-{number}", schema) for number in range(count)]
        self.schema = schema
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in self.files]
        self._sizes = np.zeros(len(self.files), np.int64)

    def add(self, rows: pa.RecordBatch, numbers: npt.NDArray[np.uint16]) -> None:
        """Take rows in, each with the number of its file."""
        for number, piece in divided(rows, numbers):
            self._waiting[number].append(piece)
            self._sizes[number] += piece.nbytes
        if int(self._sizes.sum()) >= _HELD:
            # The largest first: they are worth the most, and most of the memory is theirs.
            for number in np.argsort(self._sizes)[::-1].tolist():
                if self._sizes[number] < _WORTH_A_BATCH and int(self._sizes.sum()) < _HELD // 2:
                    break
                self._flush(number)

    def _flush(self, number: int) -> None:
        pieces = self._waiting[number]
        if pieces:
            self.files[number].write(pa.Table.from_batches(pieces, self.schema).combine_chunks())
            self._waiting[number], self._sizes[number] = [], 0

    def finish(self) -> list[SpillFile]:
        """Write what waits; the files by their numbers."""
        for number, file in enumerate(self.files):
            self._flush(number)
            file.finish()
        return self.files


def bits_of(words: UInt64s, bits: int, used: int = 0) -> npt.NDArray[np.uint16]:
    """Numbers made of the upper bits of words, below those that were used before.

    >>> bits_of(np.array([0b101 << 61], np.uint64), 2, used=1).tolist()
    [1]
    """
    found: npt.NDArray[np.uint16] = ((words << np.uint64(used)) >> np.uint64(64 - bits)).astype(np.uint16)
    return found


def divided(rows: pa.RecordBatch, numbers: npt.NDArray[np.uint16]) -> Sequence[tuple[int, pa.RecordBatch]]:
    """Rows by number, those of one number in their order.

    >>> found = divided(pa.record_batch({"x": [1, 2, 3]}), np.array([4, 2, 4], np.uint16))
    >>> [(number, piece["x"].to_pylist()) for number, piece in found]
    [(2, [2]), (4, [1, 3])]
    """
    if not len(numbers):
        return []
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    cuts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    taken = rows.take(pa.array(order))
    ends = [*cuts[1:].tolist(), len(order)]
    return [
        (int(ordered[start]), taken.slice(start, end - start)) for start, end in zip(cuts.tolist(), ends, strict=True)
    ]
