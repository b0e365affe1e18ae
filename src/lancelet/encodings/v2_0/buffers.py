"""Buffers of a page: where they lie, which of their bytes some rows need, and those rows from the bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lancelet.encodings.budget import check_budget
from lancelet.encodings.chunks import Ints
from lancelet.encodings.v2_0.steps import Steps, fetch
from lancelet.encodings.values import Bytes, Values
from lancelet.errors import Corrupt
from lancelet.format.arrays import Buffer, BufferHome
from lancelet.format.columns import Range

__all__ = [
    "Decoded",
    "PageBuffers",
    "Pending",
    "Rows",
    "aligned",
    "count_of",
    "expanded",
    "put",
    "read_bits",
    "read_bytes",
    "runs_of",
    "select_bits",
    "select_bytes",
]

#: A range of rows, or strictly ascending row numbers; counted from the start of the page.
Rows = slice | Ints


@dataclass(frozen=True, slots=True)
class Decoded:
    """Values and, where some are null, one bit for each that says whether it is there."""

    values: Values
    validity: Bytes | None = None


#: The decoding that is left once all bytes are here.
Pending = Callable[[], Decoded]


@dataclass(frozen=True, slots=True)
class PageBuffers:
    """The buffers that a page's encoding can name. ``whole`` says that entire buffers cost no more than parts."""

    page: tuple[Range, ...]
    rows: int
    whole: bool
    column: tuple[Range, ...] = ()
    file: tuple[Range, ...] = ()

    def place(self, buffer: Buffer) -> Range:
        """Where a buffer lies in the file."""
        found = {BufferHome.PAGE: self.page, BufferHome.COLUMN: self.column, BufferHome.FILE: self.file}[buffer.home]
        if buffer.index >= len(found):
            raise Corrupt(
                f"encoding names {buffer.home.name.lower()} buffer {buffer.index}, but there are {len(found)}"
            )
        return found[buffer.index]

    def covers(self, rows: Rows) -> bool:
        """Whether the rows are all those of the page."""
        return isinstance(rows, slice) and rows.start == 0 and rows.stop == self.rows


def put(buffers: list[Bytes], data: Bytes) -> Buffer:
    """Append a buffer to those of a page being written; how the encoding names it."""
    buffers.append(data)
    return Buffer(len(buffers) - 1)


def count_of(rows: Rows) -> int:
    """How many rows there are."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def _end_of(rows: Rows) -> int:
    if isinstance(rows, slice):
        return int(rows.stop)
    return int(rows[-1]) + 1 if len(rows) else 0


def expanded(rows: Ints, size: int) -> Ints:
    """The numbers of all items of lists of one size."""
    check_budget(8 * len(rows) * size)
    return (rows[:, None] * size + np.arange(size)).reshape(-1)


def runs_of(starts: Ints, stops: Ints) -> list[Range]:
    """Ranges from starts to stops, neighbours joined and empty ones left out."""
    filled = stops > starts
    starts, stops = starts[filled], stops[filled]
    if not len(starts):
        return []
    breaks = np.flatnonzero(starts[1:] != stops[:-1]) + 1
    firsts = starts[np.concatenate([[0], breaks])]
    lasts = stops[np.concatenate([breaks - 1, [len(stops) - 1]])]
    return list(zip(firsts.tolist(), (lasts - firsts).tolist(), strict=True))


def read_bytes(source: PageBuffers, buffer: Buffer, width: int, rows: Rows) -> Steps[Bytes]:
    """Rows of ``width`` bytes each, side by side."""
    start, size = source.place(buffer)
    _check_size(size, _end_of(rows) * width, width)
    if isinstance(rows, slice):
        found = yield from fetch([(start + rows.start * width, count_of(rows) * width)])
        return found[0]
    if source.whole:
        (data,) = yield from fetch([(start, size)])
        return select_bytes(data, width, rows)
    pieces = yield from fetch(runs_of(start + rows * width, start + (rows + 1) * width))
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.uint8), *pieces])


def _check_size(size: int, needed: int, width: int) -> None:
    if needed > size:
        raise Corrupt(f"buffer has {size:,} bytes, expected at least {needed:,} for values of {width:,} bytes")


def select_bytes(data: Bytes, width: int, rows: Rows) -> Bytes:
    """Rows of ``width`` bytes out of all of them."""
    _check_size(len(data), _end_of(rows) * width, width)
    if isinstance(rows, slice):
        return data[rows.start * width : rows.stop * width]
    if width in (2, 4, 8):
        return aligned(data[: len(data) // width * width], width).view(f"<u{width}")[rows].view(np.uint8)
    return np.ascontiguousarray(data[: len(data) // width * width].reshape(-1, width)[rows]).reshape(-1)


def read_bits(source: PageBuffers, buffer: Buffer, rows: Rows) -> Steps[Bytes]:
    """Single bits, least significant first, moved to start at bit 0."""
    if isinstance(rows, slice):
        data = yield from read_bytes(source, buffer, 1, slice(rows.start >> 3, (rows.stop + 7) >> 3))
        return select_bits(data, slice(rows.start & 7, (rows.start & 7) + count_of(rows)))
    places = rows >> 3
    needed = np.unique(places)
    data = yield from read_bytes(source, buffer, 1, needed)
    return select_bits(data, np.searchsorted(needed, places) * 8 + (rows & 7))


def select_bits(data: Bytes, rows: Rows) -> Bytes:
    """Single bits out of all of them, moved to start at bit 0."""
    _check_size(len(data), (_end_of(rows) + 7) >> 3, 1)
    if not isinstance(rows, slice):
        return np.packbits((data[rows >> 3] >> (rows & 7).astype(np.uint8)) & np.uint8(1), bitorder="little")
    data = data[rows.start >> 3 : (rows.stop + 7) >> 3]
    shift = rows.start & 7
    if not shift or not len(data):
        return data
    out = data >> np.uint8(shift)
    out[:-1] |= data[1:] << np.uint8(8 - shift)
    return out[: (count_of(rows) + 7) >> 3]


def aligned(data: Bytes, width: int) -> Bytes:
    """The bytes at an address where values of ``width`` bytes may lie: 2.0 files need not align their buffers."""
    step = min(width & -width, 8)
    return data if step <= 1 or data.ctypes.data % step == 0 else data.copy()
