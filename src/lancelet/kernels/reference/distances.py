"""Distances of many vectors to one, in NumPy: the vectors one after the other, all of the query's length.

Sums are made with the precision of the values, in whatever order: the last bits differ from kind to kind of kernel.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse

__all__ = ["cosine", "dot_products", "hamming", "squared_l2", "widen_halves"]

Number = TypeVar("Number", np.float32, np.float64)
Item = TypeVar("Item", bound=np.generic)
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

#: Bits that are set in each byte.
_SET = np.array([number.bit_count() for number in range(256)], np.uint8)


def squared_l2(values: NDArray[Number], query: NDArray[Number], out: Floats) -> None:
    """The sums of the squared differences.

    >>> out = np.zeros(2, np.float32)
    >>> squared_l2(np.array([1, 2, 4, 6], np.float32), np.array([1, 2], np.float32), out)
    >>> out
    array([ 0., 25.], dtype=float32)
    """
    rows = _rows(values, query, out)
    with np.errstate(all="ignore"):
        differences = rows - query
        out[:] = np.einsum("ij,ij->i", differences, differences)


def dot_products(values: NDArray[Number], query: NDArray[Number], out: Floats) -> None:
    """The sums of the products.

    >>> out = np.zeros(2, np.float32)
    >>> dot_products(np.array([1, 2, 4, 6], np.float32), np.array([1, 2], np.float32), out)
    >>> out
    array([ 5., 16.], dtype=float32)
    """
    rows = _rows(values, query, out)
    with np.errstate(all="ignore"):
        out[:] = np.einsum("ij,j->i", rows, query)


def cosine(values: NDArray[Number], query: NDArray[Number], out: Floats) -> None:
    """1 less the cosine of the angle between; NaN where a vector has no direction.

    >>> out = np.zeros(2, np.float32)
    >>> cosine(np.array([0, 3, 0, 0], np.float32), np.array([1, 0], np.float32), out)
    >>> out
    array([ 1., nan], dtype=float32)
    """
    rows = _rows(values, query, out)
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
        lengths = np.sqrt(squares) * np.sqrt(np.float64(np.einsum("i,i->", query, query)))
        out[:] = 1 - np.einsum("ij,j->i", rows, query) / lengths


def hamming(values: Bytes, query: Bytes, out: Floats) -> None:
    """How many bits differ.

    >>> out = np.zeros(2, np.float32)
    >>> hamming(np.array([0, 7, 255, 0], np.uint8), np.array([0, 1], np.uint8), out)
    >>> out
    array([2., 9.], dtype=float32)
    """
    out[:] = _SET[np.bitwise_xor(_rows(values, query, out), query)].sum(axis=1, dtype=np.int64)


def widen_halves(halves: NDArray[np.uint16], out: Floats) -> None:
    """Numbers of 16 bits, given as words, as numbers of 32.

    >>> out = np.zeros(2, np.float32)
    >>> widen_halves(np.array([1.5, -2], np.float16).view(np.uint16), out)
    >>> out
    array([ 1.5, -2. ], dtype=float32)
    """
    refuse.other_length("out", len(out), len(halves))
    out[:] = halves.view(np.float16)


def _rows(values: NDArray[Item], query: NDArray[Item], out: Floats) -> NDArray[Item]:
    refuse.other_length("values", len(values), len(out) * len(query))
    return values.reshape(len(out), len(query))
