"""Roaring bitmaps of 32-bit integers: between NumPy arrays, stored bytes, and the sets that can be combined."""

from __future__ import annotations

from array import array

import numpy as np
from pyroaring import BitMap

from lancelet.errors import Corrupt
from lancelet.rows.addresses import UInt32s

__all__ = ["BitMap", "parse_bitmap", "to_bitmap", "to_values", "write_bitmap"]


def to_bitmap(values: UInt32s) -> BitMap:
    """The set of the values, which may come in any order.

    >>> to_bitmap(np.array([3, 1, 3], np.uint32))
    BitMap([1, 3])
    """
    if not len(values):
        return BitMap()
    first, last = int(values[0]), int(values[-1])
    if last - first + 1 == len(values) and bool(np.all(values[1:] > values[:-1])):
        return BitMap(range(first, last + 1))
    items = array("I")
    items.frombytes(values.tobytes())
    return BitMap(items)


def to_values(bitmap: BitMap) -> UInt32s:
    """The members, ascending.

    >>> to_values(BitMap([3, 1])).tolist()
    [1, 3]
    """
    return np.frombuffer(bitmap.to_array(), np.uint32) if len(bitmap) else np.empty(0, np.uint32)


def parse_bitmap(data: bytes | memoryview, what: str) -> BitMap:
    """The set that bytes in the portable format hold; they are checked through and through.

    >>> parse_bitmap(write_bitmap(BitMap([5])), "example")
    BitMap([5])
    """
    if not len(data):
        raise Corrupt(f"{what} is empty, expected a Roaring bitmap")
    try:
        return BitMap.deserialize(bytes(data))
    except ValueError as error:
        raise Corrupt(f"{what} of {len(data)} bytes is no Roaring bitmap: {error}") from None


def write_bitmap(bitmap: BitMap) -> bytes:
    """The set in the portable format, runs of members as runs where that is shorter."""
    return BitMap(bitmap, optimize=True).serialize()
