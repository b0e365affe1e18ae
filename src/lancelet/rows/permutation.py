"""A random order of any number of rows that is computed place by place, so that nothing of it is held in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Permutation"]

UInt64s = npt.NDArray[np.uint64]
_ROUNDS = 6
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_U30, _U27, _U31 = np.uint64(30), np.uint64(27), np.uint64(31)


@dataclass(frozen=True, slots=True)
class Permutation:
    """The numbers below ``size`` in an order that a seed decides: each place has a number, each number a place.

    >>> order = Permutation(10, seed=1)
    >>> sorted(order.at(np.arange(10)).tolist()) == list(range(10)), order == Permutation(10, seed=1)
    (True, True)
    """

    size: int
    seed: int = 0

    def at(self, places: npt.ArrayLike) -> UInt64s:
        """The numbers at some places.

        A Feistel network permutes the numbers of an even count of bits, of which there are fewer than four times as
        many as rows; a number that is none of ours is permuted again until it is one.
        """
        numbers: UInt64s = np.array(places, np.uint64)
        size, half = np.uint64(self.size), max(-(-(self.size - 1).bit_length() // 2), 1)
        turns = [(self.seed * _ROUNDS + turn + 1) * _GOLDEN % 2**64 for turn in range(_ROUNDS)]
        keys = _mixed(np.array(turns, np.uint64))
        numbers = _network(numbers, half, keys)
        outside = np.flatnonzero(numbers >= size)
        while len(outside):
            numbers[outside] = _network(numbers[outside], half, keys)
            outside = outside[numbers[outside] >= size]
        return numbers


def _network(numbers: UInt64s, half: int, keys: UInt64s) -> UInt64s:
    bits, mask = np.uint64(half), np.uint64(2**half - 1)
    left, right = numbers >> bits, numbers & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right ^ key) & mask)
    return (left << bits) | right


def _mixed(values: UInt64s) -> UInt64s:
    """The values with every bit depending on every other: the finishing steps of SplitMix64."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> _U30)) * _FIRST
        values = (values ^ (values >> _U27)) * _SECOND
    return values ^ (values >> _U31)
