"""Chunks of byte strings, compiled: how many strings go into each."""

import cython
import numpy as np

from lancelet.errors import InvalidInput
from lancelet.kernels.reference.chunking import MOST_STRINGS
from lancelet.kernels.refuse_pages import check_offsets

Offset = cython.fused_type(cython.int, cython.longlong)

_MOST = cython.declare(cython.Py_ssize_t, MOST_STRINGS)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _choose(
    offsets: cython.pointer(cython.const[Offset]),
    total: cython.Py_ssize_t,
    limit: cython.longlong,
    offset_bytes: cython.longlong,
    counts: cython.pointer(cython.longlong),
) -> cython.Py_ssize_t:
    """Write the number of strings of each chunk; returns how many chunks there are."""
    chunks: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = 0
    left: cython.Py_ssize_t
    count: cython.Py_ssize_t
    step: cython.Py_ssize_t
    low: cython.longlong
    while start < total:
        left = total - start
        count = left if left < 2 else 2
        low = offsets[start]
        if left > 1:
            step = 4
            while step <= left and step <= _MOST:
                if offsets[start + step] - low + (step + 1) * offset_bytes > limit:
                    break
                count = step
                step = 2 * step
            if step > left and offsets[total] - low + (left + 1) * offset_bytes <= limit:
                count = left
        counts[chunks] = count
        chunks += 1
        start += count
    return chunks


def variable_chunks(offsets, limit_bytes: cython.longlong, offset_bytes: cython.int) -> object:
    """See the twin."""
    _check_offset_bytes(offset_bytes)
    check_offsets(offsets, int(offsets[-1]) if len(offsets) else 0)
    total: cython.Py_ssize_t = len(offsets) - 1
    counts = np.empty(total // 2 + 1, np.int64)
    out: cython.longlong[::1] = counts
    narrow: cython.const[cython.int][::1]
    wide: cython.const[cython.longlong][::1]
    chunks: cython.Py_ssize_t
    if offsets.itemsize == 4:
        narrow = offsets
        with cython.nogil:
            chunks = _choose(cython.address(narrow[0]), total, limit_bytes, offset_bytes, cython.address(out[0]))
    else:
        wide = offsets
        with cython.nogil:
            chunks = _choose(cython.address(wide[0]), total, limit_bytes, offset_bytes, cython.address(out[0]))
    return counts[:chunks].copy()


def _check_offset_bytes(found: cython.int) -> None:
    if found != 4 and found != 8:
        raise InvalidInput(f"offsets of {found} bytes, expected 4 or 8")
