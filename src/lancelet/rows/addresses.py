"""Row addresses: where a row lies, as one integer: the fragment in the upper 32 bits, the physical offset in the lower.

63                              32 31                               0
+---------------------------------+---------------------------------+
|           fragment id           |    physical offset in it        |
+---------------------------------+---------------------------------+
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from operator import index
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lancelet.errors import InvalidInput

__all__ = [
    "LARGEST",
    "NO_ADDRESS",
    "UInt32s",
    "UInt64s",
    "as_uint64s",
    "by_fragment",
    "fragments_of",
    "join",
    "offsets_of",
    "split",
]

UInt32s: TypeAlias = npt.NDArray[np.uint32]
UInt64s: TypeAlias = npt.NDArray[np.uint64]

#: The largest fragment id, and the largest offset in a fragment.
LARGEST = 2**32 - 1
#: The address of no row.
NO_ADDRESS = np.uint64(2**64 - 1)

_HALF = np.uint64(32)
_LOW = np.uint64(LARGEST)


def as_uint64s(values: npt.ArrayLike, what: str = "row addresses") -> UInt64s:
    """``values`` as unsigned 64-bit integers; InvalidInput for what is not a whole number from 0 on.

    >>> as_uint64s([3, 1]).dtype
    dtype('uint64')
    """
    array = np.asarray(values)
    if array.dtype == np.uint64:
        return array
    if array.dtype.kind in "fO" and isinstance(values, list):
        # Integers on both sides of 2**63 in one list: NumPy alone would make them inexact.
        array = _exact(values, what)
    if array.size == 0:
        return np.empty(array.shape, np.uint64)
    if array.dtype.kind not in "iu":
        raise InvalidInput(f"{what} are of type {array.dtype}, expected whole numbers")
    if array.dtype.kind == "i" and int(array.min()) < 0:
        raise InvalidInput(f"{what} include {int(array.min())}, expected none below 0")
    return array.astype(np.uint64)


def _exact(values: list[object], what: str) -> UInt64s:
    try:
        return np.array([index(value) for value in values], np.uint64)  # type: ignore[arg-type]
    except (TypeError, OverflowError) as error:
        raise InvalidInput(f"{what} are not whole numbers of 64 bits: {error}") from None


def join(fragment: int | npt.ArrayLike, offsets: npt.ArrayLike) -> UInt64s:
    """The addresses of ``offsets`` in a fragment, or in the fragment of each.

    >>> join(2, [0, 7]).tolist()
    [8589934592, 8589934599]
    """
    fragments, positions = as_uint64s(fragment, "fragment ids"), as_uint64s(offsets, "offsets")
    for name, array in (("fragment id", fragments), ("offset", positions)):
        if array.size and int(array.max()) > LARGEST:
            raise InvalidInput(f"{name} {int(array.max())} does not fit 32 bits")
    addresses: UInt64s = np.bitwise_or(fragments << _HALF, positions)
    return addresses


def fragments_of(addresses: UInt64s) -> UInt32s:
    """The fragment id of each address.

    >>> fragments_of(join([4, 5], [1, 2])).tolist()
    [4, 5]
    """
    return (addresses >> _HALF).astype(np.uint32)


def offsets_of(addresses: UInt64s) -> UInt32s:
    """The physical offset of each address within its fragment.

    >>> offsets_of(join([4, 5], [1, 2])).tolist()
    [1, 2]
    """
    return (addresses & _LOW).astype(np.uint32)


def split(addresses: UInt64s) -> tuple[UInt32s, UInt32s]:
    """The fragment ids and the offsets of addresses: the inverse of :func:`join`."""
    return fragments_of(addresses), offsets_of(addresses)


def by_fragment(addresses: UInt64s) -> Iterator[tuple[int, UInt32s, npt.NDArray[np.int64] | None]]:
    """Each fragment that occurs, ascending, with the offsets asked of it and their places in ``addresses``.

    Within a fragment the order of ``addresses`` is kept. Places are None where the fragments come in order
    already: then the groups, one after the other, are the addresses themselves.

    >>> [(fragment, offsets.tolist()) for fragment, offsets, _ in by_fragment(join([1, 0, 1], [5, 6, 4]))]
    [(0, [6]), (1, [5, 4])]
    """
    if addresses.size == 1:
        yield int(addresses[0]) >> 32, offsets_of(addresses), None
        return
    fragments, offsets = split(addresses)
    order: npt.NDArray[np.int64] | None = None
    if fragments.size > 1 and bool(np.any(fragments[1:] < fragments[:-1])):
        order = np.argsort(fragments, kind="stable")
        fragments, offsets = fragments[order], offsets[order]
    cuts = np.flatnonzero(fragments[1:] != fragments[:-1]) + 1
    bounds = [0, *cuts.tolist(), len(fragments)] if fragments.size else [0]
    for begin, end in pairwise(bounds):
        yield int(fragments[begin]), offsets[begin:end], None if order is None else order[begin:end]
