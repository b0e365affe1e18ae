"""Single rows of mini-block pages without lists: which chunk each is in, and its value or level from there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt
from lancelet.kernels import refuse
from lancelet.kernels.reference import bitpack
from lancelet.kernels.reference.miniblock import read_header
from lancelet.kernels.refuse_pages import check_buffer_count, short_buffer, unequal_levels

__all__ = ["find", "levels_at", "values_at"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Levels = NDArray[np.uint16]

BLOCK = 1024


def find(
    data: Bytes,
    starts: Places,
    sizes: Places,
    first_rows: Places,
    rows: Places,
    has_def: bool,
    num_buffers: int,
    large: bool,
) -> tuple[Places, Places, Places, Places]:
    """For each row: the values of its chunk, its place among them, and where the chunk's buffers start and their sizes.

    ``first_rows`` has the first row of each chunk and behind them the number of rows. The last two results have a line
    for each buffer: definition levels if there are any, then the value buffers.

    >>> chunk = np.array([0, 0, 2, 0, 254, 254, 254, 254, 5, 6, 254, 254, 254, 254, 254, 254], np.uint8)
    >>> zero, one, row = np.array([0]), np.array([0, 2]), np.array([1])
    >>> counts, within, places, lengths = find(chunk, zero, zero + 16, one, row, False, 1, False)
    >>> counts.tolist(), within.tolist(), places.tolist(), lengths.tolist()
    ([2], [1], [[8]], [[2]])
    """
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("first_rows", len(first_rows), len(starts) + 1)
    check_buffer_count(num_buffers)
    total = int(first_rows[-1]) if len(starts) else 0
    counts, within = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    places, lengths = (np.zeros((has_def + num_buffers, len(rows)), np.int64) for _ in range(2))
    for i, row in enumerate(rows.tolist() if len(places) else ()):
        if not 0 <= row < total:
            raise refuse.bad_lookup(i, "page", 0, 1, row, total)
        chunk = int(np.searchsorted(first_rows, row, "right")) - 1
        counts[i], within[i] = first_rows[chunk + 1] - first_rows[chunk], row - first_rows[chunk]
        start, size = int(starts[chunk]), int(sizes[chunk])
        levels = read_header(
            data, chunk, start, size, int(has_def), large, buffer_starts=places[:, i], buffer_sizes=lengths[:, i]
        )
        if has_def and levels != counts[i]:
            raise unequal_levels(chunk, levels, int(counts[i]))
    return counts, within, places, lengths


def values_at(
    data: Bytes, starts: Places, sizes: Places, item_size: int, blocks: Places, indices: Places, out: Bytes
) -> None:
    """Copy value ``indices[i]`` of buffer ``blocks[i]``, of ``item_size`` bytes each.

    >>> out = np.empty(2, np.uint8)
    >>> values_at(np.arange(9, dtype=np.uint8), np.array([3]), np.array([6]), 2, np.array([0]), np.array([1]), out)
    >>> out.tolist()
    [5, 6]
    """
    if item_size < 1:
        raise refuse.wrong_item_size(item_size, "at least 1")
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("indices", len(indices), len(blocks))
    refuse.other_length("out", len(out), len(blocks) * item_size)
    lines = out.reshape(len(blocks), item_size)
    for i, (block, index) in enumerate(zip(blocks.tolist(), indices.tolist(), strict=True)):
        if not 0 <= block < len(starts) or index < 0:
            raise refuse.bad_lookup(i, "buffer", block, len(starts), index, 0)
        start, size = int(starts[block]), int(sizes[block])
        if size < 0 or start < 0 or start > len(data) - size:
            raise refuse.range_outside("buffer", block, start=start, size=size, have=len(data))
        if (index + 1) * item_size > size:
            raise short_buffer(block, size, index, item_size)
        lines[i] = data[start + index * item_size : start + (index + 1) * item_size]


def levels_at(
    data: Bytes, starts: Places, sizes: Places, counts: Places, width: int, indices: Places, out: Levels
) -> None:
    """Level ``indices[i]`` of buffer ``i``, which holds ``counts[i]`` levels packed to ``width`` bits.

    A buffer has whole blocks of 1,024, then what is left either as one padded block or unpacked: its size tells which.

    >>> out = np.empty(1, np.uint16)
    >>> one = np.array([1])
    >>> levels_at(np.array([9, 0, 7, 0], np.uint8), one - 1, one * 4, one * 2, 5, one, out)
    >>> out.tolist()
    [7]
    """
    for name, array in (("sizes", sizes), ("counts", counts), ("indices", indices), ("out", out)):
        refuse.other_length(name, len(array), len(starts))
    if not 0 <= width <= 16:
        raise Corrupt(f"levels are {width} bits wide, expected at most 16")
    whole, left = counts // BLOCK, counts % BLOCK
    packed = width * BLOCK // 8
    raw = (left > 0) & (sizes == whole * packed + left * 2)
    wrong = (starts < 0) | (starts > len(data) - sizes) | (indices < 0) | (indices >= counts)
    wrong |= ~raw & (sizes != (whole + (left > 0)) * packed)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise short_buffer(at, int(sizes[at]), int(indices[at]), 2)
    in_tail = raw & (indices >= whole * BLOCK)
    tail, rest = np.flatnonzero(in_tail), np.flatnonzero(~in_tail)
    place = starts[tail] + whole[tail] * packed + (indices[tail] - whole[tail] * BLOCK) * 2
    out[tail] = data[place] | data[place + 1].astype(np.uint16) << np.uint16(8)
    found = np.empty(len(rest), np.uint16)
    blocks = starts[rest] + indices[rest] // BLOCK * packed
    widths = np.full(len(rest), width, np.uint8)
    bitpack.unpack_at(data, blocks, widths, np.arange(len(rest)), indices[rest] % BLOCK, found)
    out[rest] = found
