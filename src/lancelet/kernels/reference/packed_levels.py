"""Levels of chunks packed to one width, unpacked chunk by chunk into one array.

buffer   whole blocks of 1,024 levels in the order of ``bitpack``, then what is left: one more block, filled up with
         zeros, or as many levels of 16 bits each; the buffer's size tells which, and where both have one size it is
         the latter
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt
from lancelet.kernels import refuse
from lancelet.kernels.reference import bitpack
from lancelet.kernels.refuse_pages import bad_packed_levels

__all__ = ["unpack"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Levels = NDArray[np.uint16]

BLOCK = 1024


def unpack(data: Bytes, starts: Places, sizes: Places, counts: Places, width: int, out: Levels) -> None:
    """Unpack ``counts[i]`` levels of ``width`` bits from each buffer, one after the other.

    >>> out = np.empty(2, np.uint16)
    >>> unpack(np.array([9, 0, 7, 0], np.uint8), np.array([0]), np.array([4]), np.array([2]), 5, out)
    >>> out.tolist()
    [9, 7]
    """
    for name, array in (("sizes", sizes), ("counts", counts)):
        refuse.other_length(name, len(array), len(starts))
    if not 0 <= width <= 16:
        raise Corrupt(f"levels are {width} bits wide, expected at most 16")
    packed, at = width * BLOCK // 8, 0
    for i, (start, size, count) in enumerate(zip(starts.tolist(), sizes.tolist(), counts.tolist(), strict=True)):
        whole, left = divmod(count, BLOCK)
        is_raw = left > 0 and size == whole * packed + 2 * left
        blocks = whole + (left > 0 and not is_raw)
        expected = blocks * packed + 2 * left * is_raw
        if count < 0 or size != expected or not 0 <= start <= len(data) - size or count > len(out) - at:
            raise bad_packed_levels(i, size, count, width)
        coded = count - left * is_raw
        each = np.minimum(coded - np.arange(blocks) * BLOCK, BLOCK)
        places = start + np.arange(blocks) * packed
        bitpack.unpack_blocks(data, places, np.full(blocks, width, np.uint8), each, out[at : at + coded])
        raw = data[start + blocks * packed : start + size]
        out[at + coded : at + count] = raw[::2] | raw[1::2].astype(np.uint16) << np.uint16(8)
        at += count
    if at != len(out):
        raise refuse.wrong_total("the buffers' counts", found=at, expected=len(out))
