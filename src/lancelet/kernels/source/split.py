"""Byte stream split, compiled: each chunk holds all first bytes of its values, then all second bytes, and so on."""

import cython

from lancelet.errors import Corrupt, InvalidInput


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _merge(
    source: cython.pointer(cython.const[cython.uchar]),
    count: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    target: cython.pointer(cython.uchar),
) -> cython.void:
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(count):
        for k in range(size):
            target[i * size + k] = source[k * count + i]


def merge_bytes(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    item_size: cython.Py_ssize_t,
    out: cython.uchar[::1],
) -> None:
    """See the twin."""
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    if item_size not in (4, 8):
        raise InvalidInput("x")
    with cython.nogil:
        for i in range(starts.shape[0]):
            if item_size == 4:
                _merge(cython.address(data[starts[i]]), counts[i], 4, cython.address(out[at]))
            else:
                _merge(cython.address(data[starts[i]]), counts[i], 8, cython.address(out[at]))
            at += counts[i] * item_size
    if at != out.shape[0]:
        raise Corrupt("y")
