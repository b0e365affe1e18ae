"""Runs: long sequences as stretches that a number or two describe, cut and found by position, none of it row by row.

A sequence of n rows in k runs has ``ends``, the position behind each run:

    position   0        ends[0]    ends[1]              ends[k-1] == n
               | run 0  |  run 1   |  ...  |  run k-1   |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lancelet.errors import InvalidInput

__all__ = ["Cuts", "Int64s", "checked_positions", "cut", "run_of", "starts_of"]

Int64s: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cuts:
    """Pieces of runs: which run each was cut from, how far into it the piece begins, and its rows."""

    run: Int64s
    skipped: Int64s
    lengths: Int64s


def starts_of(ends: Int64s) -> Int64s:
    """The position at which each run begins.

    >>> starts_of(np.array([3, 5])).tolist()
    [0, 3]
    """
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1]
    return starts


def run_of(ends: Int64s, positions: Int64s) -> Int64s:
    """The run that holds each position, all of which must lie in the sequence.

    >>> run_of(np.array([3, 5]), np.array([0, 3])).tolist()
    [0, 1]
    """
    return np.searchsorted(ends, positions, side="right")


def checked_positions(positions: npt.ArrayLike, length: int) -> Int64s:
    """The positions as integers; InvalidInput where one lies outside a sequence of so many rows."""
    asked = np.asarray(positions)
    if asked.size == 0:
        return np.empty(asked.shape, np.int64)
    if asked.dtype.kind not in "iu":
        raise InvalidInput(f"positions are of type {asked.dtype}, expected whole numbers")
    low, high = int(asked.min()), int(asked.max())
    if low < 0 or high >= length:
        raise InvalidInput(f"position {low if low < 0 else high} lies outside the sequence of {length} rows")
    return asked.astype(np.int64)


def cut(ends: Int64s, begins: Int64s, stops: Int64s) -> Cuts:
    """The parts of the runs that lie in stretches of positions, which ascend and do not overlap.

    >>> pieces = cut(np.array([3, 5]), np.array([1]), np.array([4]))
    >>> pieces.run.tolist(), pieces.skipped.tolist(), pieces.lengths.tolist()
    ([0, 1], [1, 0], [2, 1])
    """
    filled = begins < stops
    begins, stops = begins[filled], stops[filled]
    if not len(begins):
        nothing = np.empty(0, np.int64)
        return Cuts(nothing, nothing, nothing)
    starts = starts_of(ends)
    # A run that begins strictly within a stretch ends one piece there and begins the next.
    stretch = np.searchsorted(begins, starts) - 1
    inner = starts[(stretch >= 0) & (starts < stops[np.maximum(stretch, 0)])]
    if len(inner):
        begins, stops = np.sort(np.concatenate((begins, inner))), np.sort(np.concatenate((stops, inner)))
    run = run_of(ends, begins)
    return Cuts(run, begins - starts[run], stops - begins)
