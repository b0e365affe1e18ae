"""Bit packing in FastLanes order, in NumPy.

A block holds 1024 unsigned values of T bits (T = 8, 16, 32 or 64), each cut to ``width`` bits, in 128 * width bytes.
Its words of T bits lie in ``width`` lines of LANES = 1024 / T words. Lane L is column L; the T values of a lane
follow each other down that column without gaps, lowest bit first. Value r ("row") of lane L is value
128 * (r % 8) + 16 * mirror(r // 8) + L of the block, where mirror reverses three bits.

    u64, width 3       word 0            ...  word 15           line 0: bits 0..63 of each lane
    16 lanes           v0 v128 v256 ...       v15 v143 v271 ...
                       word 16           ...  word 31           line 1: bits 64..127 of each lane

An *inline* block is preceded by one word of T bits that holds the width.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lancelet.kernels import refuse

__all__ = [
    "block_widths",
    "pack_blocks",
    "pack_inline",
    "unpack_at",
    "unpack_blocks",
    "unpack_inline",
    "unpack_inline_at",
]

Words = NDArray[np.unsignedinteger]
Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

BLOCK = 1024
_MIRROR = np.array([0, 4, 2, 6, 1, 5, 3, 7])


def block_widths(values: Words) -> Bytes:
    """Bits that the largest value of each block of 1024 needs; the last block may be short.

    >>> block_widths(np.array([0, 5], np.uint32))
    array([3], dtype=uint8)
    """
    _check_type(values)
    blocks = _in_blocks(values)
    seen = np.bitwise_or.reduce(blocks, axis=1)
    widths = np.zeros(len(blocks), np.uint8)
    for bit in range(8 * values.itemsize):
        widths[seen >> values.dtype.type(bit) != 0] = bit + 1
    return widths


def pack_blocks(values: Words, widths: Bytes, out: Bytes) -> int:
    """Pack blocks of 1024 values one after the other, each at its width; a short last block is padded with zeros.

    Returns the number of bytes written. Values that do not fit their block's width are refused.

    >>> out = np.zeros(128 * 3, np.uint8)
    >>> pack_blocks(np.array([5, 0, 2], np.uint32), np.array([3], np.uint8), out), out[0]
    (384, np.uint8(5))
    """
    refuse.other_length("widths", len(widths), -(-len(values) // BLOCK))
    return _pack(values, widths.astype(np.int64), out, header=0)[1]


def pack_inline(values: Words, out: Bytes, starts: Places) -> int:
    """Like :func:`pack_blocks` at the least widths, each block behind a header word with its width.

    ``starts[i]`` becomes the byte at which block i, that is its header, begins.
    """
    refuse.other_length("starts", len(starts), -(-len(values) // BLOCK))
    widths = block_widths(values).astype(np.int64)
    starts[:], written = _pack(values, widths, out, header=values.itemsize)
    return written


def unpack_blocks(data: Bytes, starts: Places, widths: Bytes, counts: Places, out: Words) -> None:
    """Unpack the first ``counts[i]`` values of block i, which lies at byte ``starts[i]``, one block after the other.

    >>> out = np.zeros(2, np.uint32)
    >>> data = np.array([5, 0, 0, 0, 2] + [0] * 379, np.uint8)
    >>> unpack_blocks(data, np.array([0]), np.array([3], np.uint8), np.array([2]), out)
    >>> out
    array([5, 2], dtype=uint32)
    """
    _check_type(out)
    refuse.other_length("widths", len(widths), len(starts))
    refuse.other_length("counts", len(counts), len(starts))
    checked = _checked_widths(data, starts, widths, None, out.itemsize)
    _check_blocks(data, starts, widths, None, counts, checked, out.itemsize)
    _unpack(data, starts, checked, counts, out)


def unpack_inline(data: Bytes, starts: Places, sizes: Places, counts: Places, out: Words) -> None:
    """Like :func:`unpack_blocks` for inline blocks, of which block i has ``sizes[i]`` bytes, header included."""
    _check_type(out)
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("counts", len(counts), len(starts))
    checked = _checked_widths(data, starts, None, sizes, out.itemsize)
    _check_blocks(data, starts, None, sizes, counts, checked, out.itemsize)
    _unpack(data, starts + out.itemsize, checked, counts, out)


def unpack_at(data: Bytes, starts: Places, widths: Bytes, blocks: Places, indices: Places, out: Words) -> None:
    """Value ``indices[k]`` of block ``blocks[k]`` into ``out[k]``, without unpacking the block."""
    _check_type(out)
    refuse.other_length("widths", len(widths), len(starts))
    checked = _checked_widths(data, starts, widths, None, out.itemsize)
    _check_lookups(data, starts, widths, None, blocks, indices, checked, out)
    _look_up(data, starts, checked, blocks, indices, out)


def unpack_inline_at(data: Bytes, starts: Places, sizes: Places, blocks: Places, indices: Places, out: Words) -> None:
    """Like :func:`unpack_at` for inline blocks."""
    _check_type(out)
    refuse.other_length("sizes", len(sizes), len(starts))
    checked = _checked_widths(data, starts, None, sizes, out.itemsize)
    _check_lookups(data, starts, None, sizes, blocks, indices, checked, out)
    _look_up(data, starts + out.itemsize, checked, blocks, indices, out)


def _check_type(values: Words) -> None:
    if values.dtype.kind != "u" or values.itemsize > 8:
        raise refuse.wrong_item_size(values.itemsize, "1, 2, 4 or 8")


def _in_blocks(values: Words) -> Words:
    """The values as lines of 1024, the last one padded with zeros."""
    padded = np.zeros(-(-len(values) // BLOCK) * BLOCK, values.dtype)
    padded[: len(values)] = values
    return padded.reshape(-1, BLOCK)


def _row_start(row: int) -> int:
    """The index within the block of row ``row`` of lane 0."""
    return int(128 * (row % 8) + 16 * _MIRROR[row // 8])


def _pack(values: Words, widths: Places, out: Bytes, *, header: int) -> tuple[Places, int]:
    """Pack each block at its width behind a header of so many bytes; gives starts and the number of bytes written."""
    _check_type(values)
    bits, lanes = 8 * values.itemsize, 128 // values.itemsize
    blocks = _in_blocks(values)
    needed = block_widths(values)
    ends = np.cumsum(header + 128 * widths)
    bad = np.flatnonzero((needed > widths) | (widths > bits) | (ends > len(out)))
    if len(bad):
        i = int(bad[0])
        raise refuse.cannot_pack(i, int(needed[i]), int(widths[i]), bits, int(ends[i]), len(out))
    starts = ends - header - 128 * widths
    for width in np.unique(widths):
        members = np.flatnonzero(widths == width)
        lines = np.zeros((len(members), int(width) + 1, lanes), values.dtype)
        for row in range(bits if width else 0):
            line, shift = divmod(row * int(width), bits)
            row_values = blocks[members, _row_start(row) : _row_start(row) + lanes]
            lines[:, line] |= row_values << values.dtype.type(shift)
            if shift + width > bits:
                lines[:, line + 1] = row_values >> values.dtype.type(bits - shift)
        packed = np.ascontiguousarray(lines[:, : int(width)]).view(np.uint8).reshape(len(members), -1)
        if header:
            words = np.full((len(members), 1), width, values.dtype).view(np.uint8)
            packed = np.concatenate([words, packed], axis=1)
        if packed.size:
            sliding_window_view(out, packed.shape[1], writeable=True)[starts[members]] = packed
    return starts, int(ends[-1]) if len(ends) else 0


def _checked_widths(data: Bytes, starts: Places, widths: Bytes | None, sizes: Places | None, word: int) -> Places:
    """The width of each block, or -1 where the block does not lie within the data."""
    have = len(data)
    if widths is not None:
        known = widths.astype(np.int64)
        return np.where((known <= 8 * word) & (starts >= 0) & (starts <= have - 128 * known), known, -1)
    stated = np.zeros(0, np.int64) if sizes is None else sizes
    checked = np.full(len(starts), -1)
    inside = np.flatnonzero((starts >= 0) & (stated >= word) & (starts <= have - np.maximum(stated, 0)))
    headers = _words(data, starts[inside], np.dtype(f"<u{word}"))
    fits = headers <= 8 * word
    inside, found = inside[fits], headers[fits].astype(np.int64)
    fits = stated[inside] >= word + 128 * found
    checked[inside[fits]] = found[fits]
    return checked


def _words(data: Bytes, places: Places, dtype: np.dtype[np.unsignedinteger]) -> Words:
    """The words that begin at these bytes."""
    if not len(places):
        return np.zeros(0, dtype)
    return sliding_window_view(data, dtype.itemsize)[places].view(dtype)[:, 0]


def _check_blocks(
    data: Bytes,
    starts: Places,
    widths: Bytes | None,
    sizes: Places | None,
    counts: Places,
    checked: Places,
    word: int,
) -> None:
    bad = np.flatnonzero((checked < 0) | (counts < 0) | (counts > BLOCK))
    if len(bad):
        raise _bad_block(int(bad[0]), data, starts, widths, sizes, word, int(counts[bad[0]]))


def _bad_block(
    i: int, data: Bytes, starts: Places, widths: Bytes | None, sizes: Places | None, word: int, count: int
) -> Exception:
    width, size = None if widths is None else int(widths[i]), None if sizes is None else int(sizes[i])
    return refuse.bad_block(i, data, int(starts[i]), width, size, word, count)


def _check_lookups(
    data: Bytes,
    starts: Places,
    widths: Bytes | None,
    sizes: Places | None,
    blocks: Places,
    indices: Places,
    checked: Places,
    out: Words,
) -> None:
    refuse.other_length("indices", len(indices), len(blocks))
    refuse.other_length("out", len(out), len(blocks))
    misses = (blocks < 0) | (blocks >= len(starts)) | (indices < 0) | (indices >= BLOCK)
    broken = np.append(checked, -1)[np.where(misses, -1, blocks)] < 0
    bad = np.flatnonzero(misses | broken)
    if not len(bad):
        return
    k = int(bad[0])
    if misses[k]:
        raise refuse.bad_lookup(k, "block", int(blocks[k]), len(starts), int(indices[k]), BLOCK)
    raise _bad_block(int(blocks[k]), data, starts, widths, sizes, out.itemsize, 0)


def _unpack(data: Bytes, starts: Places, widths: Places, counts: Places, out: Words) -> None:
    """Unpack checked blocks, all of one width at a time."""
    bits, lanes = 8 * out.itemsize, 128 // out.itemsize
    if int(counts.sum()) != len(out):
        raise refuse.wrong_total("the blocks' counts", found=int(counts.sum()), expected=len(out))
    values = np.zeros((len(starts), BLOCK), out.dtype)
    for width in np.unique(widths):
        if width == 0:
            continue
        members = np.flatnonzero(widths == width)
        packed = sliding_window_view(data, 128 * int(width))[starts[members]]
        lines = packed.view(out.dtype).reshape(len(members), int(width), lanes)
        mask = out.dtype.type(2 ** int(width) - 1)
        for row in range(bits):
            line, shift = divmod(row * int(width), bits)
            found = lines[:, line] >> out.dtype.type(shift)
            if shift + width > bits:
                found |= lines[:, line + 1] << out.dtype.type(bits - shift)
            values[members, _row_start(row) : _row_start(row) + lanes] = found & mask
    if (counts == BLOCK).all():
        out[:] = values.reshape(-1)
    else:
        out[:] = values[np.arange(BLOCK) < counts[:, None]]


def _look_up(data: Bytes, starts: Places, widths: Places, blocks: Places, indices: Places, out: Words) -> None:
    """Single values of checked blocks: which line, which bit, and whether the value goes on in the next line."""
    size, bits, lanes = out.itemsize, 8 * out.itemsize, 128 // out.itemsize
    known = np.flatnonzero(widths[blocks] > 0)
    out[:] = 0
    width, start, index = widths[blocks[known]], starts[blocks[known]], indices[known]
    mirrored = _MIRROR[index % 128 // 16 & -(lanes // 16)]
    row, lane = index // 128 + 8 * mirrored, index % lanes
    line, shift = np.divmod(row * width, bits)
    place = start + (line * lanes + lane) * size
    found = _words(data, place, out.dtype) >> shift.astype(out.dtype)
    split = np.flatnonzero(shift + width > bits)
    following = _words(data, place[split] + lanes * size, out.dtype)
    found[split] |= following << (bits - shift[split]).astype(out.dtype)
    masks = ~out.dtype.type(0) >> (bits - width).astype(out.dtype)
    out[known] = found & masks
