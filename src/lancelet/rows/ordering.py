"""Sorting and searching many integers: what NumPy does, arranged so that memory is touched in order."""

from __future__ import annotations

from typing import Literal

import numpy as np

from lancelet.rows.addresses import UInt64s
from lancelet.rows.runs import Int64s

__all__ = ["order_of", "places_in"]

#: An array of so many integers no longer fits the caches close to the processor.
_LARGE = 2**16


def order_of(values: UInt64s) -> Int64s:
    """The places of the values, those of the smallest first; equal values in the order in which they come.

    >>> order_of(np.array([30, 10, 20], np.uint64)).tolist()
    [1, 2, 0]
    """
    count = len(values)
    bits = max(count - 1, 1).bit_length()
    if not count:
        return np.empty(0, np.int64)
    if (int(values.max()) - int(values.min())).bit_length() + bits > 64:
        return _order_of_far(values)
    # Value and place fit one integer: sorting those moves eight bytes where an indirect sort jumps about.
    packed = (values - values.min()) << np.uint64(bits)
    packed |= np.arange(count, dtype=np.uint64)
    packed.sort()
    packed &= np.uint64((1 << bits) - 1)
    order: Int64s = packed.view(np.int64)
    return order


def _order_of_far(values: UInt64s) -> Int64s:
    """The order of values too far apart to be packed: few are equal, and those are put in order afterwards."""
    order: Int64s = np.argsort(values)
    ordered = values[order]
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return order
    tied = np.flatnonzero(np.concatenate(([False], same)) | np.concatenate((same, [False])))
    # Of equal values each is a run of its own; places rise within it.
    run = np.cumsum(np.concatenate(([True], ~same)))[tied].astype(np.uint64)
    places = order[tied].astype(np.uint64)
    bits = np.uint64(max(len(values) - 1, 1).bit_length())
    packed = (run << bits) | places
    packed.sort()
    order[tied] = (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    return order


def places_in(ordered: UInt64s | Int64s, keys: UInt64s | Int64s, side: Literal["left", "right"] = "left") -> Int64s:
    """As ``np.searchsorted(ordered, keys, side)``, for keys of one dimension of the type of ``ordered``.

    >>> places_in(np.array([10, 20, 30]), np.array([20, 5])).tolist()
    [1, 0]
    """
    if len(ordered) < _LARGE or len(keys) < 1024 or bool(np.all(keys[1:] >= keys[:-1])):
        return np.searchsorted(ordered, keys, side=side)
    # Keys in order are found several times as fast as keys in none: neighbours touch the same memory.
    order = order_of(keys.astype(np.uint64, copy=False))
    places = np.empty(len(keys), np.int64)
    places[order] = np.searchsorted(ordered, keys[order], side=side)
    return places
