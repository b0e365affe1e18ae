"""Variable-width values in mini-block chunks: n + 1 offsets counted from the start of the buffer, then the bytes.

Offsets are u32 or u64. Writers fill the buffer with 0x48 up to a multiple of the offsets' width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import bad_value, bad_variable, check_bounds, check_offsets, needs_bits, too_large

__all__ = ["split_variable", "variable_at", "variable_chunks", "variable_sizes"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Offsets = NDArray[np.int32] | NDArray[np.int64]

FILL = 0x48


def variable_sizes(data: Bytes, starts: Places, sizes: Places, counts: Places, offset_bits: int) -> Places:
    """Bytes of values in each chunk, from the first and last offset only."""
    width = _width(offset_bits)
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("counts", len(counts), len(starts))
    result = np.zeros(len(starts), dtype=np.int64)
    for i, (start, size, count) in enumerate(zip(starts.tolist(), sizes.tolist(), counts.tolist(), strict=True)):
        if size < 0 or start < 0 or start > len(data) - size:
            raise refuse.range_outside("chunk", i, start=start, size=size, have=len(data))
        if count < 0 or (count + 1) > size // width:
            raise bad_variable(i)
        first, last = (_offset(data, start + width * k, width) for k in (0, count))
        if not width * (count + 1) <= first <= last <= size:
            raise bad_variable(i)
        result[i] = last - first
    return result


def variable_chunks(
    data: Bytes, starts: Places, sizes: Places, counts: Places, offset_bits: int, out_offsets: Offsets, out: Bytes
) -> None:
    """Join the values of all chunks: offsets into ``out`` (one more than there are values) and bytes, without gaps.

    ``sum(counts) + 1`` offsets and ``sum(variable_sizes(...))`` bytes fill the outputs.

    >>> data = np.frombuffer(bytes([12, 0, 0, 0, 14, 0, 0, 0, 15, 0, 0, 0]) + b"abcH", np.uint8)
    >>> offsets, out = np.empty(3, np.int32), np.empty(3, np.uint8)
    >>> variable_chunks(data, np.array([0]), np.array([16]), np.array([2]), 32, offsets, out)
    >>> offsets.tolist(), out.tobytes()
    ([0, 2, 3], b'abc')
    """
    width = _width(offset_bits)
    lengths = variable_sizes(data, starts, sizes, counts, offset_bits).tolist()
    if sum(counts.tolist()) + 1 != len(out_offsets):
        raise refuse.wrong_total("values and one", found=sum(counts.tolist()) + 1, expected=len(out_offsets))
    if sum(lengths) != len(out):
        raise refuse.wrong_total("the values' bytes", found=sum(lengths), expected=len(out))
    if out_offsets.itemsize == 4 and len(out) > np.iinfo(np.int32).max:
        raise too_large(len(out))
    at, base = 0, 0
    out_offsets[0] = 0
    for i, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
        table = data[start : start + width * (count + 1)].view(f"<u{width}")
        if (table[1:] < table[:-1]).any():
            raise bad_variable(i)
        first = int(table[0])
        out_offsets[at + 1 : at + 1 + count] = (table[1:] - table[0]).astype(np.int64) + base
        out[base : base + lengths[i]] = data[start + first : start + first + lengths[i]]
        at, base = at + count, base + lengths[i]


def variable_at(
    data: Bytes, starts: Places, sizes: Places, counts: Places, offset_bits: int, chunks: Places, values: Places
) -> tuple[Places, Bytes]:
    """Only the values asked for, ``values[i]`` of chunk ``chunks[i]``, as 64-bit offsets and bytes.

    Other values are not looked at, nor are the offsets of chunks checked further than that.

    >>> data = np.frombuffer(bytes([12, 0, 0, 0, 14, 0, 0, 0, 15, 0, 0, 0]) + b"abcH", np.uint8)
    >>> one = np.array([0])
    >>> offsets, taken = variable_at(data, one, np.array([16]), np.array([2]), 32, one, np.array([1]))
    >>> offsets.tolist(), taken.tobytes()
    ([0, 1], b'c')
    """
    width = _width(offset_bits)
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("counts", len(counts), len(starts))
    refuse.other_length("values", len(values), len(chunks))
    offsets, pieces = [0], []
    for lookup, (chunk, value) in enumerate(zip(chunks.tolist(), values.tolist(), strict=True)):
        count = int(counts[chunk]) if 0 <= chunk < len(counts) else 0
        if not 0 <= value < count:
            raise bad_value(lookup, chunk, value)
        start, size = int(starts[chunk]), int(sizes[chunk])
        if size < 0 or start < 0 or start > len(data) - size:
            raise refuse.range_outside("chunk", chunk, start=start, size=size, have=len(data))
        if count + 1 > size // width:
            raise bad_variable(chunk)
        first, end = (_offset(data, start + width * k, width) for k in (value, value + 1))
        if not width * (count + 1) <= first <= end <= size:
            raise bad_variable(chunk)
        pieces.append(data[start + first : start + end])
        offsets.append(offsets[-1] + end - first)
    out = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8)
    return np.array(offsets, dtype=np.int64), out


def split_variable(offsets: Offsets, data: Bytes, bounds: Places, offset_bits: int) -> tuple[Bytes, Places, Places]:
    """Make chunk buffers of the values between each two neighbouring bounds: all bytes, where each starts, its size.

    >>> split_variable(np.array([5, 7], np.int32), np.arange(9, dtype=np.uint8), np.array([0, 1]), 32)[0].tolist()
    [8, 0, 0, 0, 10, 0, 0, 0, 5, 6, 72, 72]
    """
    width = _width(offset_bits)
    check_offsets(offsets, len(data))
    check_bounds(bounds, len(offsets) - 1)
    parts = []
    for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        table = offsets[first : end + 1].astype(np.int64)
        values = data[int(table[0]) : int(table[-1])]
        table += width * len(table) - table[0]
        if width == 4 and table[-1] > np.iinfo(np.uint32).max:
            raise too_large(len(values))
        fill = np.full(-len(values) % width, FILL, dtype=np.uint8)
        parts.append(np.concatenate([table.astype(f"<u{width}").view(np.uint8), values, fill]))
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    joined = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint8)
    return joined, np.cumsum(sizes) - sizes, sizes


def _width(offset_bits: int) -> int:
    if offset_bits not in (32, 64):
        raise needs_bits("offsets", offset_bits, "32 or 64")
    return offset_bits // 8


def _offset(data: Bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width].tobytes(), "little")
