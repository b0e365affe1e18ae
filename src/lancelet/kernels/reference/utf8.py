"""Whether strings are UTF-8: what readers of Arrow take for granted, and what bytes from a file need not be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels.refuse_pages import check_some_offsets, range_of_value

__all__ = ["find_invalid"]


def find_invalid(data: NDArray[np.uint8], offsets: NDArray[np.int32] | NDArray[np.int64]) -> int:
    """The number of the first value that is not UTF-8, or -1 where all are.

    >>> find_invalid(np.frombuffer("größe".encode(), np.uint8), np.array([0, 4, 7]))
    -1
    >>> find_invalid(np.frombuffer("größe".encode(), np.uint8), np.array([0, 1, 3, 7]))
    1
    """
    check_some_offsets(offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    if first < 0 or last > len(data):
        raise range_of_value(0, first, last, len(data))
    fallen = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(fallen):
        at = int(fallen[0])
        raise range_of_value(at, int(offsets[at]), int(offsets[at + 1]), len(data))
    text = data[first:last]
    if not len(text) or text.max() < 0x80:
        return -1
    begins = offsets[(offsets > first) & (offsets < last)]
    if _is_text(text) and not np.any((data[begins] & 0xC0) == 0x80):
        return -1
    bounds = offsets.tolist()
    wrong = (at for at in range(len(bounds) - 1) if not _is_text(data[bounds[at] : bounds[at + 1]]))
    return next(wrong, -1)


def _is_text(data: NDArray[np.uint8]) -> bool:
    try:
        str(data.tobytes(), "utf-8")
    except UnicodeDecodeError:
        return False
    return True
