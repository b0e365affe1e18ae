"""Where rows and chunks lie among levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import InvalidInput

__all__ = ["level_bounds", "repetition_index", "row_starts"]

Levels = NDArray[np.uint16]


def row_starts(rep: Levels, max_rep: int) -> NDArray[np.int64]:
    """The places among the levels at which a row starts.

    >>> row_starts(np.array([2, 0, 1, 2], np.uint16), 2).tolist()
    [0, 3]
    """
    return np.flatnonzero(rep >= max_rep).astype(np.int64)


def level_bounds(definition: Levels | None, max_visible: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut the levels of a page where its chunks of stored values end: ``counts[i]`` values make chunk ``i``.

    A chunk ends with its last value; levels without a value go with the next one, after the last with that.

    >>> level_bounds(np.array([0, 2, 0, 2, 2, 0, 2], np.uint16), 1, np.array([2, 1])).tolist()
    [0, 3, 7]
    """
    bounds = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=bounds[1:])
    if definition is None:
        return bounds
    ends = np.flatnonzero(definition <= max_visible) + 1
    if len(ends) != bounds[-1] or (len(counts) == 0 and len(definition)):
        raise InvalidInput(f"chunks hold {bounds[-1]} values, which is not what the levels tell of")
    bounds[1:] = np.append(0, ends)[bounds[1:]]
    if len(counts):
        bounds[-1] = len(definition)
    return bounds


def repetition_index(rep: Levels, bounds: NDArray[np.int64], max_rep: int) -> NDArray[np.uint64]:
    """For each chunk of levels: the rows that end in it, and the levels of a row that goes on in the next chunk.

    >>> repetition_index(np.array([1, 0, 1, 0, 0, 1], np.uint16), np.array([0, 4, 6]), 1).tolist()
    [[1, 2], [2, 0]]
    """
    chunks = max(len(bounds) - 1, 0)
    if chunks and (bounds[0] != 0 or bounds[-1] != len(rep) or (np.diff(bounds) < 1).any()):
        raise InvalidInput(f"bounds do not cut {len(rep)} levels into chunks of at least one")
    starts = np.append(np.flatnonzero(rep == max_rep), len(rep))
    index = np.zeros((chunks, 2), dtype=np.uint64)
    for i in range(chunks):
        first, end = bounds[i], bounds[i + 1]
        index[i, 0] = np.count_nonzero((starts > first) & (starts <= end))
        if end not in starts:
            index[i, 1] = end - max(first, starts[starts < end].max(initial=0))
    return index
