"""Memory for decoded pages: large blocks are used again once nobody sees them any more.

A fresh block costs a page fault for each of its pages, and the system fills each with zeros: that takes as long as
decoding a page. So blocks whose last array is gone wait here, up to a limit, for the next page of about their size.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from lancelet.encodings.values import Bytes

__all__ = ["KEPT_BYTES", "empty", "kept_bytes", "release"]

#: Most bytes that wait for their next use.
KEPT_BYTES = 64 * 2**20
# Smaller ones are the C library's to keep, larger ones would crowd out all others.
_SMALLEST = 2**20
_LARGEST = KEPT_BYTES // 2

# Single operations on a deque are atomic, so no lock is needed; with one, a collection at the wrong moment would hang.
_free: deque[Bytes] = deque()


class _Loan:
    """A block in use: it comes back when the last array over it is gone, on whatever thread that happens."""

    __slots__ = ("__array_interface__", "_block")

    def __init__(self, block: Bytes, size: int) -> None:
        self._block = block
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (block.__array_interface__["data"][0], False),
        }

    def __del__(self, free: deque[Bytes] = _free) -> None:
        free.append(self._block)
        while len(free) > 1 and sum(map(len, tuple(free))) > KEPT_BYTES:
            try:
                free.popleft()
            except IndexError:
                break


def empty(size: int) -> Bytes:
    """``size`` bytes that hold anything.

    >>> release()
    >>> first = empty(2**22)
    >>> place = first.__array_interface__["data"]
    >>> del first
    >>> empty(2**22).__array_interface__["data"] == place
    True
    """
    if not _SMALLEST <= size <= _LARGEST:
        return np.empty(size, np.uint8)
    return np.asarray(_Loan(_waiting(size), size))


def _waiting(size: int) -> Bytes:
    """A block of at least ``size`` bytes and at most twice as many; a new one where none waits."""
    for _ in range(len(_free)):
        try:
            block = _free.popleft()
        except IndexError:
            break
        if size <= len(block) <= 2 * size:
            return block
        _free.append(block)
    return np.empty(size, np.uint8)


def kept_bytes() -> int:
    """Bytes that wait for their next use."""
    return sum(map(len, tuple(_free)))


def release() -> None:
    """Give all waiting blocks back to the system."""
    _free.clear()
