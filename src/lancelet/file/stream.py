"""Streaming: a file's rows as batches of one size, a bounded window of them decoded at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa

from lancelet.config import default_options
from lancelet.encodings.budget import is_fixed, row_bits
from lancelet.encodings.page import Rows
from lancelet.encodings.shape import Shape, leaves
from lancelet.file.data_file import DataFile
from lancelet.file.legacy import LegacyFile
from lancelet.file.reading import read_columns
from lancelet.file.workers import ahead as reading_ahead
from lancelet.format.arrays import BlobColumn
from lancelet.format.columns import Column, Deferred, Page
from lancelet.format.layouts import BlobLayout, ConstantLayout, MiniBlockLayout

__all__ = ["Pace", "read_table", "row_bytes", "stream_batches"]

# Decoded bytes aimed at for one window; small enough for the processor's cache to matter, large enough for the pool.
_WINDOW = 16 * 2**20
# Rows of the first window where types do not tell how large rows are; by how much a window may exceed the one before.
_FIRST_ROWS = 32 * 2**10
_STEP = 8
# Encoded strings and levels are smaller than what they decode to.
_GROWTH = 3


@dataclass(slots=True)
class Pace:
    """How many rows to decode at a time: whole batches, within the window and a share of the memory budget.

    What rows take in memory is guessed for the first window and measured from then on: a few stored bytes may stand
    for many.

    >>> pace = Pace(batch_size=100, rows=1000)
    >>> pace.seen(1000, 8000), pace.seen(8000, 80_000_000)
    (8000, 1600)
    """

    batch_size: int
    rows: int

    def seen(self, rows: int, size: int) -> int:
        """The rows of the next window after one whose rows took ``size`` bytes."""
        self.rows = self._whole_batches(min(rows * _STEP, int(_target() * rows / max(size, 1))))
        return self.rows

    def _whole_batches(self, rows: int) -> int:
        return max(rows // self.batch_size, 1) * self.batch_size

    @staticmethod
    def first(file: DataFile | LegacyFile, shapes: Sequence[Shape], batch_size: int) -> Pace:
        """The pace to begin with."""
        found = Pace(batch_size, batch_size)
        rows = int(_target() / max(1.0, row_bytes(file, shapes)))
        known = all(is_fixed(shape.field.type) for shape in shapes)
        found.rows = found._whole_batches(rows if known else min(rows, _FIRST_ROWS))
        return found


def _target() -> int:
    return min(_WINDOW, default_options().memory_budget // 8)


def row_bytes(file: DataFile | LegacyFile, shapes: Sequence[Shape]) -> float:
    """About what a row takes once decoded: as its type says, or as the stored bytes suggest."""
    fixed = sum(row_bits(shape.field.type) / 8 for shape in shapes)
    if all(is_fixed(shape.field.type) for shape in shapes):
        return fixed
    if isinstance(file, LegacyFile):
        return max(fixed, _GROWTH * file.size / max(file.num_rows, 1))
    columns = [file.column(leaf.column) for shape in shapes for leaf in leaves(shape)]
    stored = sum(size for column in columns for page in column.pages for _, size in page.buffers)
    stored += file.size * any(_are_blobs(file, column) for column in columns)
    repeated = sum(_item_bytes(file, column.pages[0]) for column in columns if column.pages)
    return max(fixed, _GROWTH * stored / max(file.num_rows, 1)) + repeated


def _are_blobs(file: DataFile, column: Column) -> bool:
    """Whether the column's pages only say where the values are."""
    if isinstance(column.encoding, BlobColumn):
        return True
    first = column.pages[0] if column.pages else None
    if first is None or isinstance(first.description, Deferred):
        return False
    return isinstance(first.describe(file.version), BlobLayout)


def _item_bytes(file: DataFile, page: Page) -> float:
    """Stored bytes of a value that the page holds once for many rows: a constant, or an item of its dictionary."""
    if isinstance(page.description, Deferred):
        return 0.0
    match page.describe(file.version):
        case ConstantLayout() if len(page.buffers) == 1:
            return page.buffers[0][1]
        case MiniBlockLayout(dictionary=found, num_dictionary_items=items) if found is not None and items:
            return page.buffers[2][1] / items if len(page.buffers) > 2 else 0.0
    return 0.0


def read_table(file: DataFile | LegacyFile, shapes: Sequence[Shape], schema: pa.Schema, rows: Rows) -> pa.Table:
    """The rows as one table, in chunks as the file's pages have them."""
    return pa.table(read_columns(file, shapes, rows), schema=schema)


def stream_batches(
    file: DataFile | LegacyFile, shapes: Sequence[Shape], schema: pa.Schema, rows: Rows, batch_size: int
) -> Iterator[pa.RecordBatch]:
    """Batches of ``batch_size`` rows, the last one shorter; the next window is read while one is handed out."""
    pace = Pace.first(file, shapes, batch_size)
    start, stop = (rows.start, rows.stop) if isinstance(rows, slice) else (0, len(rows))

    def submit() -> Future[pa.Table] | None:
        nonlocal start
        if start >= stop:
            return None
        end = min(start + pace.rows, stop)
        window = slice(start, end) if isinstance(rows, slice) else rows[start:end]
        start = end
        return reading_ahead().submit(read_table, file, shapes, schema, window)

    ahead = submit()
    while ahead is not None:
        table = ahead.result()
        pace.seen(table.num_rows, table.nbytes)
        ahead = submit()
        yield from _batches(table, batch_size)
        del table


def _batches(table: pa.Table, batch_size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, table.num_rows, batch_size):
        piece = table.slice(start, batch_size)
        batches = piece.to_batches()
        yield batches[0] if len(batches) == 1 else piece.combine_chunks().to_batches()[0]
