"""Rows and chunks among levels, compiled."""

import cython
import numpy as np

from lancelet.errors import InvalidInput


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count(
    rep: cython.pointer(cython.const[cython.ushort]), count: cython.Py_ssize_t, level: cython.ushort
) -> cython.Py_ssize_t:
    """How many levels are ``level`` or more."""
    i: cython.Py_ssize_t
    total: cython.Py_ssize_t = 0
    for i in range(count):
        total += rep[i] >= level
    return total


def row_starts(rep: cython.const[cython.ushort][::1], max_rep: cython.ushort) -> object:
    """See the twin."""
    count: cython.Py_ssize_t = rep.shape[0]
    n: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    if count == 0:
        return np.empty(0, dtype=np.int64)
    with cython.nogil:
        n = _count(cython.address(rep[0]), count, max_rep)
    starts = np.empty(n + 1, dtype=np.int64)
    out: cython.longlong[::1] = starts
    n = 0
    with cython.nogil:
        for i in range(count):
            out[n] = i
            n += rep[i] >= max_rep
    return starts[:n]


def level_bounds(definition, max_visible: cython.ushort, counts: cython.const[cython.longlong][::1]) -> object:
    """See the twin."""
    chunks: cython.Py_ssize_t = counts.shape[0]
    bounds = np.zeros(chunks + 1, dtype=np.int64)
    if definition is None:
        np.cumsum(counts, out=bounds[1:])
        return bounds
    levels: cython.const[cython.ushort][::1] = definition
    total: cython.Py_ssize_t = levels.shape[0]
    out: cython.longlong[::1] = bounds
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    left: cython.longlong
    short: cython.bint = False
    with cython.nogil:
        for i in range(chunks):
            left = counts[i]
            while left > 0 and at < total:
                left -= levels[at] <= max_visible
                at += 1
            short |= left != 0
            out[i + 1] = at
        while at < total and levels[at] > max_visible:
            at += 1
        if chunks:
            out[chunks] = at
    if short or at != total:
        raise InvalidInput(f"chunks hold {np.sum(counts)} values, which is not what the levels tell of")
    return bounds


def repetition_index(
    rep: cython.const[cython.ushort][::1], bounds: cython.const[cython.longlong][::1], max_rep: cython.ushort
) -> object:
    """See the twin."""
    chunks: cython.Py_ssize_t = max(bounds.shape[0] - 1, 0)
    index = np.zeros((chunks, 2), dtype=np.uint64)
    out: cython.ulonglong[:, ::1] = index
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    good: cython.bint = chunks == 0 or (bounds[0] == 0 and bounds[chunks] == rep.shape[0])
    for i in range(chunks):
        good &= bounds[i] < bounds[i + 1]
    if not good:
        raise InvalidInput(f"bounds do not cut {rep.shape[0]} levels into chunks of at least one")
    with cython.nogil:
        for i in range(chunks):
            # A row ends where the next one starts: levels one place further on.
            out[i, 0] = i + 1 == chunks
            if bounds[i + 1] - bounds[i] > 1:
                out[i, 0] += _count(cython.address(rep[bounds[i] + 1]), bounds[i + 1] - bounds[i] - 1, max_rep)
            if i + 1 == chunks:
                break
            if rep[bounds[i + 1]] == max_rep:
                out[i, 0] += 1
                continue
            at = bounds[i + 1] - 1
            while at > bounds[i] and rep[at] != max_rep:
                at -= 1
            out[i, 1] = bounds[i + 1] - at
    return index
