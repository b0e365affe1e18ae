"""Streaming: a file's rows as batches of one size, a bounded window of them decoded at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pyarrow as pa

from lancelet.config import default_options
from lancelet.encodings.page import Rows
from lancelet.encodings.shape import Shape, leaves
from lancelet.file.data_file import DataFile
from lancelet.file.legacy import LegacyFile
from lancelet.file.reading import read_columns
from lancelet.file.workers import ahead as reading_ahead
from lancelet.format.arrays import BlobColumn

__all__ = ["read_table", "stream_batches", "window_rows"]

# Decoded bytes aimed at for one window; small enough for the processor's cache to matter, large enough for the pool.
_WINDOW = 32 * 2**20
_LEAST_ROWS = 1024
# Encoded strings and levels are smaller than what they decode to.
_GROWTH = 3


def window_rows(file: DataFile | LegacyFile, shapes: Sequence[Shape], batch_size: int) -> int:
    """How many rows to decode at a time: whole batches, within the window and a share of the memory budget."""
    if isinstance(file, LegacyFile):
        return _whole_batches(file.size, file.num_rows, batch_size)
    columns = [file.column(leaf.column) for shape in shapes for leaf in leaves(shape)]
    stored = sum(size for column in columns for page in column.pages for _, size in page.buffers)
    # Pages of 2.0 blobs only say where the blobs are.
    stored += file.size * any(isinstance(column.encoding, BlobColumn) for column in columns)
    return _whole_batches(stored, file.num_rows, batch_size)


def _whole_batches(stored: int, num_rows: int, batch_size: int) -> int:
    per_row = max(1.0, _GROWTH * stored / max(num_rows, 1))
    target = min(_WINDOW, default_options().memory_budget // 4)
    rows = max(int(target / per_row), min(_LEAST_ROWS, batch_size))
    return max(rows // batch_size, 1) * batch_size


def read_table(file: DataFile | LegacyFile, shapes: Sequence[Shape], schema: pa.Schema, rows: Rows) -> pa.Table:
    """The rows as one table, in chunks as the file's pages have them."""
    return pa.table(read_columns(file, shapes, rows), schema=schema)


def stream_batches(
    file: DataFile | LegacyFile, shapes: Sequence[Shape], schema: pa.Schema, rows: Rows, batch_size: int
) -> Iterator[pa.RecordBatch]:
    """Batches of ``batch_size`` rows, the last one shorter; the next window is read while one is handed out."""
    step = window_rows(file, shapes, batch_size)
    windows = iter(_windows(rows, step))
    current = next(windows, None)
    if current is None:
        return
    ahead: Future[pa.Table] | None = reading_ahead().submit(read_table, file, shapes, schema, current)
    while ahead is not None:
        table = ahead.result()
        following = next(windows, None)
        ahead = None if following is None else reading_ahead().submit(read_table, file, shapes, schema, following)
        yield from _batches(table, batch_size)


def _windows(rows: Rows, step: int) -> Iterator[Rows]:
    if isinstance(rows, slice):
        for start in range(rows.start, rows.stop, step):
            yield slice(start, min(start + step, rows.stop))
    else:
        for start in range(0, len(rows), step):
            yield rows[start : start + step]


def _batches(table: pa.Table, batch_size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, table.num_rows, batch_size):
        piece = table.slice(start, batch_size)
        batches = piece.to_batches()
        yield batches[0] if len(batches) == 1 else piece.combine_chunks().to_batches()[0]
