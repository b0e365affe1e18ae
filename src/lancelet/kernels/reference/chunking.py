"""Chunks of byte strings, in Python: how many strings go into each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import InvalidInput
from lancelet.kernels.refuse_pages import check_offsets

__all__ = ["variable_chunks"]

Places = NDArray[np.int64]
Offsets = NDArray[np.int32] | NDArray[np.int64]

#: A chunk other than the last has a power of two of strings, from 2 up to this.
MOST_STRINGS = 2048


def variable_chunks(offsets: Offsets, limit_bytes: int, offset_bytes: int) -> Places:
    """How many strings to put into each chunk so that none but one of two strings takes more than ``limit_bytes``.

    Every chunk but the last has the largest power of two that fits; the last has what is left.

    >>> variable_chunks(np.arange(0, 6001, 10, dtype=np.int32), 4096, 4).tolist()
    [256, 256, 88]
    """
    _check_offset_bytes(offset_bytes)
    check_offsets(offsets, int(offsets[-1]) if len(offsets) else 0)
    bounds = offsets.tolist()
    counts, start, total = [], 0, len(bounds) - 1
    while start < total:
        left = total - start
        count = min(2, left)
        if left > 1:
            step = 4
            while step <= left and step <= MOST_STRINGS and _size(bounds, start, step, offset_bytes) <= limit_bytes:
                count, step = step, 2 * step
            if step > left and _size(bounds, start, left, offset_bytes) <= limit_bytes:
                count = left
        counts.append(count)
        start += count
    return np.array(counts, np.int64)


def _size(bounds: list[int], start: int, count: int, offset_bytes: int) -> int:
    return bounds[start + count] - bounds[start] + (count + 1) * offset_bytes


def _check_offset_bytes(found: int) -> None:
    if found not in (4, 8):
        raise InvalidInput(f"offsets of {found} bytes, expected 4 or 8")
