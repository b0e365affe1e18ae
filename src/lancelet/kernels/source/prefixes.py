"""Prefixes of byte strings as integers, compiled."""

import cython

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_some_offsets, range_of_value

Offset = cython.fused_type(cython.int, cython.longlong)


@cython.cfunc
def _prefixes(
    data: cython.const[cython.uchar][::1],
    offsets: cython.const[Offset][::1],
    skip: cython.longlong,
    out: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    count: cython.Py_ssize_t = offsets.shape[0] - 1
    have: cython.longlong = data.shape[0]
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    start: cython.longlong
    left: cython.longlong
    word: cython.ulonglong
    p: cython.pointer(cython.const[cython.uchar]) = cython.address(data[0])
    with cython.nogil:
        for i in range(count):
            start = offsets[i]
            if start < 0 or offsets[i + 1] < start or offsets[i + 1] > have:
                return i
            left = offsets[i + 1] - start - skip
            start += skip
            word = 0
            if left >= 8:
                for k in range(8):
                    word = (word << 8) | p[start + k]
            elif left > 0:
                for k in range(left):
                    word = (word << 8) | p[start + k]
                word <<= 8 * (8 - left)
            out[i] = word
    return -1


def prefixes(data, offsets, skip: cython.longlong, out) -> None:
    """See the twin."""
    bad: cython.Py_ssize_t
    check_some_offsets(offsets)
    refuse.other_length("out", out.shape[0], offsets.shape[0] - 1)
    refuse.negative("skip", skip)
    if offsets.itemsize == 4:
        bad = _prefixes[cython.int](data, offsets, skip, out)
    else:
        bad = _prefixes[cython.longlong](data, offsets, skip, out)
    if bad >= 0:
        raise range_of_value(bad, int(offsets[bad]), int(offsets[bad + 1]), data.shape[0])
