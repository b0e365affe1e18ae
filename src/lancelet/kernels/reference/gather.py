"""Bring together values that lie apart: byte ranges, and rows of fixed and of variable width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_some_offsets, index_outside, range_of_value, too_large

__all__ = ["copy_pieces", "take_fixed", "take_variable"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Offsets = NDArray[np.int32] | NDArray[np.int64]


def copy_pieces(data: Bytes, starts: Places, sizes: Places, out: Bytes) -> None:
    """Copy ranges of bytes into ``out``, one after the other; together they fill it.

    >>> out = np.empty(3, np.uint8)
    >>> copy_pieces(np.arange(9, dtype=np.uint8), np.array([7, 0]), np.array([2, 1]), out)
    >>> out.tolist()
    [7, 8, 0]
    """
    refuse.other_length("sizes", len(sizes), len(starts))
    pieces = []
    for i, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        if size < 0 or start < 0 or start > len(data) - size:
            raise refuse.range_outside("piece", i, start=start, size=size, have=len(data))
        pieces.append(data[start : start + size])
    total = sum(sizes.tolist())
    if total != len(out):
        raise refuse.wrong_total("the pieces' sizes", found=total, expected=len(out))
    if pieces:
        np.concatenate(pieces, out=out)


def take_fixed(data: Bytes, item_size: int, indices: Places, out: Bytes) -> None:
    """Copy the items of ``item_size`` bytes that the indices name.

    >>> out = np.empty(4, np.uint8)
    >>> take_fixed(np.arange(8, dtype=np.uint8), 2, np.array([3, 0]), out)
    >>> out.tolist()
    [6, 7, 0, 1]
    """
    if item_size < 1:
        raise refuse.wrong_item_size(item_size, "at least 1")
    refuse.other_length("out", len(out), len(indices) * item_size)
    items = len(data) // item_size
    _check_indices(indices, items)
    out.reshape(-1, item_size)[:] = data[: items * item_size].reshape(items, item_size)[indices]


def take_variable(offsets: Offsets, data: Bytes, indices: Places) -> tuple[Offsets, Bytes]:
    """The values that the indices name, as offsets of the same width and bytes.

    >>> data = np.frombuffer(b"abc", np.uint8)
    >>> offsets, taken = take_variable(np.array([0, 2, 3], np.int32), data, np.array([1, 0, 1]))
    >>> offsets.tolist(), taken.tobytes()
    ([0, 1, 3, 4], b'cabc')
    """
    check_some_offsets(offsets)
    _check_indices(indices, len(offsets) - 1)
    starts = offsets[:-1].astype(np.int64)[indices]
    sizes = offsets[1:].astype(np.int64)[indices] - starts
    wrong = np.flatnonzero((starts < 0) | (sizes < 0) | (starts + sizes > len(data)))
    if len(wrong):
        i = int(wrong[0])
        raise range_of_value(int(indices[i]), int(starts[i]), int(starts[i] + sizes[i]), len(data))
    taken = np.zeros(len(indices) + 1, dtype=np.int64)
    np.cumsum(sizes, out=taken[1:])
    if offsets.itemsize == 4 and taken[-1] > np.iinfo(np.int32).max:
        raise too_large(int(taken[-1]))
    out = np.empty(int(taken[-1]), dtype=np.uint8)
    copy_pieces(data, starts, sizes, out)
    return (taken.astype(np.int32) if offsets.itemsize == 4 else taken), out


def _check_indices(indices: Places, have: int) -> None:
    outside = np.flatnonzero((indices < 0) | (indices >= have))
    if len(outside):
        raise index_outside(int(outside[0]), int(indices[outside[0]]), have)
