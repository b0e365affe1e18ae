"""Pages of 2.1 and 2.2: which bytes some rows need, and those rows from their bytes.

Reading has two steps, so that a remote file is asked as seldom as can be: ``index_ranges`` says what must be known
first (little, and mostly kept), ``data_ranges`` then says exactly which bytes hold the rows. Neither reads anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lancelet.encodings import blob, constant, full_zip, mini_block, mini_block_take
from lancelet.encodings.chunks import Ints
from lancelet.encodings.shape import Shape, items_per_row
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt, Unsupported
from lancelet.format.columns import Range
from lancelet.format.layouts import BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout, PageLayout

__all__ = ["PageIndex", "Rows", "StoredPage", "data_ranges", "index_ranges", "keeps_index", "load_index", "read"]

#: A range of rows, or sorted row numbers; counted from the start of the page.
Rows: TypeAlias = slice | Ints

PageIndex: TypeAlias = mini_block.MiniBlockIndex | full_zip.FullZipIndex | blob.BlobIndex | pa.Array | None


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page of a leaf column: its layout, its buffers in the file, and the nodes that lead to the leaf."""

    layout: PageLayout
    buffers: tuple[Range, ...]
    path: tuple[Shape, ...]
    rows: int

    @property
    def scale(self) -> int:
        """Items of the page for each row: more than one below structural fixed-size lists."""
        return items_per_row(self.path)

    def expect_buffers(self, count: int) -> None:
        """Corrupt unless the page has ``count`` buffers."""
        if len(self.buffers) != count:
            raise Corrupt(f"page has {len(self.buffers)} buffers, expected {count} for its layout")


def _items(page: StoredPage, rows: Rows) -> Rows:
    scale = page.scale
    if scale == 1:
        return rows
    if isinstance(rows, slice):
        if rows == slice(0, page.rows):
            return slice(0, page.rows * scale)
        # Chunks end anywhere in a list: the items are named one by one, so that no piece of a list comes along.
        return np.arange(rows.start * scale, rows.stop * scale, dtype=np.int64)
    return (rows[:, None] * scale + np.arange(scale)).reshape(-1)


def keeps_index(page: StoredPage) -> bool:
    """Whether the page's index serves any rows and is worth keeping."""
    return isinstance(page.layout, MiniBlockLayout | ConstantLayout | BlobLayout)


def index_ranges(page: StoredPage, rows: Rows) -> list[Range]:
    """What must be read before the rows can be found."""
    match page.layout:
        case MiniBlockLayout():
            numbers = mini_block.index_buffers(page.layout)
            page.expect_buffers(len(numbers) + 1)
            return [page.buffers[number] for number in numbers]
        case ConstantLayout() if constant.without_levels(len(page.buffers)):
            return []
        case ConstantLayout() | BlobLayout():
            return list(page.buffers)
        case FullZipLayout():
            return full_zip.index_ranges(page.layout, page.buffers, page.rows * page.scale, _items(page, rows))
    raise Unsupported(f"page layout {type(page.layout).__name__}")


def load_index(page: StoredPage, rows: Rows, buffers: Sequence[Bytes]) -> PageIndex:
    """The index from the bytes that :func:`index_ranges` named."""
    match page.layout:
        case MiniBlockLayout():
            return mini_block.parse_index(
                page.layout, page.rows * page.scale, buffers, page.buffers[mini_block.DATA_BUFFER][1]
            )
        case ConstantLayout() if constant.without_levels(len(page.buffers)):
            return None
        case ConstantLayout():
            array = constant.read_all(page.layout, page.path, buffers, page.rows * page.scale)
            if len(array) != page.rows:
                raise Corrupt(f"page's levels begin {len(array):,} rows, expected {page.rows:,}")
            return array
        case FullZipLayout():
            return full_zip.load_index(page.layout, page.buffers, page.rows * page.scale, _items(page, rows), buffers)
        case BlobLayout():
            return blob.load_index(page.layout, page.rows * page.scale, buffers)
    raise Unsupported(f"page layout {type(page.layout).__name__}")


def data_ranges(page: StoredPage, index: PageIndex, rows: Rows, *, whole: bool) -> list[Range]:
    """The bytes that hold the rows. ``whole`` asks for entire buffers, which cost nothing where files are mapped."""
    match page.layout, index:
        case MiniBlockLayout(), mini_block.MiniBlockIndex():
            start, size = page.buffers[mini_block.DATA_BUFFER]
            if whole:
                return [(start, size)]
            picked = mini_block.chunks_of_rows(index, _items(page, rows))
            return [(start + at, length) for at, length in _runs(index.starts[picked], index.sizes[picked])]
        case ConstantLayout(), _:
            return [] if index is not None else list(page.buffers)
        case FullZipLayout(), full_zip.FullZipIndex():
            start, size = page.buffers[0]
            if whole:
                return [(start, size)]
            return [(start + at, length) for at, length in _runs(index.starts, index.ends - index.starts)]
        case BlobLayout(), blob.BlobIndex():
            return [] if _wants_places(page) else blob.data_ranges(index, _items(page, rows), whole=whole)
    raise Unsupported(f"page layout {type(page.layout).__name__}")


def _runs(starts: Ints, sizes: Ints) -> list[Range]:
    """Neighbouring pieces joined."""
    if not len(starts):
        return []
    ends = starts + sizes
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    firsts = np.concatenate([np.zeros(1, np.int64), breaks])
    lasts = np.concatenate([breaks - 1, np.array([len(starts) - 1])])
    return list(zip(starts[firsts].tolist(), (ends[lasts] - starts[firsts]).tolist(), strict=True))


def read(page: StoredPage, index: PageIndex, rows: Rows, buffers: Sequence[Bytes], *, whole: bool) -> pa.Array:
    """The skeleton array of the rows from the bytes that :func:`data_ranges` named."""
    items = _items(page, rows)
    match page.layout, index:
        case MiniBlockLayout(), mini_block.MiniBlockIndex() if (
            whole and not isinstance(items, slice) and mini_block_take.is_direct(page.layout)
        ):
            return mini_block_take.read_rows(page.layout, page.path, index, buffers[0], items)
        case MiniBlockLayout(), mini_block.MiniBlockIndex():
            picked = mini_block.chunks_of_rows(index, items)
            starts = index.starts[picked]
            if not whole:
                starts = np.cumsum(index.sizes[picked]) - index.sizes[picked]
            return mini_block.read_rows(page.layout, page.path, index, _joined(buffers), starts, picked, items)
        case ConstantLayout(), None:
            count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
            return constant.read_all(page.layout, page.path, buffers, count * page.scale)
        case ConstantLayout(), pa.Array():
            if isinstance(rows, slice):
                return index.slice(rows.start, rows.stop - rows.start)
            return index.take(pa.array(rows))
        case FullZipLayout(), full_zip.FullZipIndex():
            return full_zip.read_rows(page.layout, page.path, index, _joined(buffers), items, whole=whole)
        case BlobLayout(), blob.BlobIndex() if _wants_places(page):
            return blob.read_places(page.layout, page.path, index, items)
        case BlobLayout(), blob.BlobIndex():
            return blob.read_rows(page.layout, page.path, index, buffers, items, whole=whole)
    raise Unsupported(f"page layout {type(page.layout).__name__}")


def _wants_places(page: StoredPage) -> bool:
    """Whether a blob column is asked for as structs of where the values lie rather than as the values."""
    return bool(pa.types.is_struct(page.path[-1].field.type))


def _joined(buffers: Sequence[Bytes]) -> Bytes:
    if len(buffers) == 1:
        return buffers[0]
    return np.concatenate(buffers) if buffers else np.zeros(0, np.uint8)
