"""Byte stream split, in NumPy: per chunk all first bytes of the values, then all second bytes, and so on.

Bytes of equal meaning side by side compress better. A chunk of three values of four bytes:

    values   a0 a1 a2 a3  b0 b1 b2 b3  c0 c1 c2 c3
    chunk    a0 b0 c0  a1 b1 c1  a2 b2 c2  a3 b3 c3
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lancelet.kernels import refuse

__all__ = ["merge_bytes", "split_bytes"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


def split_bytes(values: Bytes, item_size: int, counts: Places, out: Bytes) -> None:
    """Split values of 4 or 8 bytes into chunks of ``counts[i]`` values each, one after the other.

    >>> out = np.zeros(8, np.uint8)
    >>> split_bytes(np.arange(8, dtype=np.uint8), 4, np.array([2]), out)
    >>> out
    array([0, 4, 1, 5, 2, 6, 3, 7], dtype=uint8)
    """
    _check_item_size(item_size)
    refuse.other_length("out", len(out), len(values))
    sizes = counts * item_size
    if (counts < 0).any() or (counts > len(values)).any() or int(sizes.sum()) != len(values):
        raise refuse.cannot_split(len(counts), item_size, len(values))
    places = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]):
        members = np.flatnonzero(sizes == size)
        chunks = sliding_window_view(values, int(size))[places[members]].reshape(len(members), -1, item_size)
        _write(out, places[members], chunks)


def merge_bytes(data: Bytes, starts: Places, counts: Places, item_size: int, out: Bytes) -> None:
    """Undo :func:`split_bytes`: chunk i lies at byte ``starts[i]`` and has ``counts[i]`` values.

    >>> out = np.zeros(8, np.uint8)
    >>> merge_bytes(np.array([0, 4, 1, 5, 2, 6, 3, 7], np.uint8), np.array([0]), np.array([2]), 4, out)
    >>> out
    array([0, 1, 2, 3, 4, 5, 6, 7], dtype=uint8)
    """
    _check_item_size(item_size)
    refuse.other_length("counts", len(counts), len(starts))
    inside = (counts >= 0) & (counts <= len(data) // item_size) & (starts >= 0)
    sizes = np.where(inside, counts, 0) * item_size
    bad = np.flatnonzero(~inside | (starts > len(data) - sizes))
    if len(bad):
        i = int(bad[0])
        raise refuse.range_outside("chunk", i, start=int(starts[i]), size=int(counts[i]) * item_size, have=len(data))
    if int(sizes.sum()) != len(out):
        raise refuse.wrong_total("the chunks' bytes", found=int(sizes.sum()), expected=len(out))
    places = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]):
        members = np.flatnonzero(sizes == size)
        chunks = sliding_window_view(data, int(size))[starts[members]].reshape(len(members), item_size, -1)
        _write(out, places[members], chunks)


def _write(out: Bytes, places: Places, chunks: Bytes) -> None:
    """Put chunks of equal size, each turned from lines to columns, at their places in the output."""
    turned = chunks.swapaxes(1, 2).reshape(len(chunks), -1)
    sliding_window_view(out, turned.shape[1], writeable=True)[places] = turned


def _check_item_size(item_size: int) -> None:
    if item_size not in (4, 8):
        raise refuse.wrong_item_size(item_size, "4 or 8")
