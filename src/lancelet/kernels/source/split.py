"""Byte stream split, compiled: per chunk all first bytes of the values, then all second bytes, and so on."""

import cython

from lancelet.kernels import refuse


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _merge(
    source: cython.p_uchar, count: cython.Py_ssize_t, size: cython.Py_ssize_t, target: cython.p_uchar
) -> cython.void:
    """Called with a constant size, so that the inner loop is unrolled and the outer one becomes SIMD."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(count):
        for k in range(size):
            target[i * size + k] = source[k * count + i]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _split(
    source: cython.p_uchar, count: cython.Py_ssize_t, size: cython.Py_ssize_t, target: cython.p_uchar
) -> cython.void:
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for k in range(size):
        for i in range(count):
            target[k * count + i] = source[i * size + k]


def split_bytes(
    values: cython.const[cython.uchar][::1],
    item_size: cython.int,
    counts: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> None:
    """See the twin."""
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    at: cython.longlong = 0
    room: cython.longlong = values.shape[0]
    source: cython.p_uchar = cython.cast(cython.p_uchar, cython.address(values[0]))
    target: cython.p_uchar = cython.address(out[0])
    if item_size != 4 and item_size != 8:
        raise refuse.wrong_item_size(item_size, "4 or 8")
    refuse.other_length("out", out.shape[0], values.shape[0])
    with cython.nogil:
        for i in range(counts.shape[0]):
            if counts[i] < 0 or counts[i] > (room - at) // item_size:
                bad = i
                break
            if item_size == 8:
                _split(source + at, counts[i], 8, target + at)
            else:
                _split(source + at, counts[i], 4, target + at)
            at += counts[i] * item_size
    if bad >= 0 or at != room:
        raise refuse.cannot_split(len(counts), item_size, room)


def merge_bytes(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    item_size: cython.int,
    out: cython.uchar[::1],
) -> None:
    """See the twin."""
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    have: cython.longlong = data.shape[0]
    room: cython.longlong = out.shape[0]
    at: cython.longlong = 0
    source: cython.p_uchar = cython.cast(cython.p_uchar, cython.address(data[0]))
    target: cython.p_uchar = cython.address(out[0])
    if item_size != 4 and item_size != 8:
        raise refuse.wrong_item_size(item_size, "4 or 8")
    refuse.other_length("counts", counts.shape[0], starts.shape[0])
    with cython.nogil:
        for i in range(starts.shape[0]):
            if counts[i] < 0 or counts[i] > have // item_size or starts[i] < 0:
                bad = i
                break
            if starts[i] > have - counts[i] * item_size:
                bad = i
                break
            at += counts[i] * item_size
        if bad < 0 and at == room:
            at = 0
            for i in range(starts.shape[0]):
                if item_size == 8:
                    _merge(source + starts[i], counts[i], 8, target + at)
                else:
                    _merge(source + starts[i], counts[i], 4, target + at)
                at += counts[i] * item_size
    if bad >= 0:
        raise refuse.range_outside("chunk", bad, start=starts[bad], size=int(counts[bad]) * item_size, have=have)
    if at != room:
        raise refuse.wrong_total("the chunks' bytes", found=at, expected=room)
