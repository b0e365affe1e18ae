"""Bring together values that lie apart, compiled."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_some_offsets, index_outside, range_of_value, too_large

Offset = cython.fused_type(cython.int, cython.longlong)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    to: cython.pointer(cython.uchar), source: cython.pointer(cython.const[cython.uchar]), size: cython.longlong
) -> cython.void:
    """Copy; a few bytes without the call, which costs more than the bytes do."""
    i: cython.longlong
    word: cython.ulonglong = 0
    if size >= 16:
        memcpy(to, source, size)
    elif size >= 8:
        memcpy(cython.address(word), source, 8)
        memcpy(to, cython.address(word), 8)
        memcpy(cython.address(word), source + size - 8, 8)
        memcpy(to + size - 8, cython.address(word), 8)
    else:
        for i in range(size):
            to[i] = source[i]


def copy_pieces(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> None:
    """See the twin."""
    have: cython.longlong = data.shape[0]
    room: cython.longlong = out.shape[0]
    i: cython.Py_ssize_t
    at: cython.longlong = 0
    bad: cython.Py_ssize_t = -1
    full: cython.bint = False
    refuse.other_length("sizes", sizes.shape[0], starts.shape[0])
    with cython.nogil:
        for i in range(starts.shape[0]):
            if sizes[i] < 0 or starts[i] < 0 or starts[i] > have - sizes[i]:
                bad = i
                break
            if full or sizes[i] > room - at:
                full = True  # go on: a piece outside the data is the better message
                continue
            _copy(cython.address(out[0]) + at, cython.address(data[0]) + starts[i], sizes[i])
            at += sizes[i]
    if bad >= 0:
        raise refuse.range_outside("piece", bad, start=starts[bad], size=sizes[bad], have=have)
    if full or at != room:
        raise refuse.wrong_total("the pieces' sizes", found=sum(np.asarray(sizes).tolist()), expected=room)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _outside(
    indices: cython.pointer(cython.const[cython.longlong]), count: cython.Py_ssize_t, have: cython.longlong
) -> cython.Py_ssize_t:
    """The first index that is not below ``have``, or -1."""
    i: cython.Py_ssize_t
    for i in range(count):
        if indices[i] < 0 or indices[i] >= have:
            return i
    return -1


def take_fixed(
    data: cython.const[cython.uchar][::1],
    item_size: cython.longlong,
    indices: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> None:
    """See the twin."""
    count: cython.Py_ssize_t = indices.shape[0]
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t
    if item_size < 1:
        raise refuse.wrong_item_size(item_size, "at least 1")
    refuse.other_length("out", out.shape[0], int(count) * int(item_size))
    if count == 0:
        return
    source: cython.pointer(cython.const[cython.uchar]) = cython.address(data[0])
    to: cython.pointer(cython.uchar) = cython.address(out[0])
    with cython.nogil:
        bad = _outside(cython.address(indices[0]), count, data.shape[0] // item_size)
        if bad < 0:
            # Constant sizes make plain loads and stores of the copies.
            if item_size == 1:
                for i in range(count):
                    to[i] = source[indices[i]]
            elif item_size == 2:
                for i in range(count):
                    memcpy(to + 2 * i, source + 2 * indices[i], 2)
            elif item_size == 4:
                for i in range(count):
                    memcpy(to + 4 * i, source + 4 * indices[i], 4)
            elif item_size == 8:
                for i in range(count):
                    memcpy(to + 8 * i, source + 8 * indices[i], 8)
            elif item_size == 16:
                for i in range(count):
                    memcpy(to + 16 * i, source + 16 * indices[i], 16)
            else:
                for i in range(count):
                    memcpy(to + item_size * i, source + item_size * indices[i], item_size)
    if bad >= 0:
        raise index_outside(bad, indices[bad], data.shape[0] // item_size)


@cython.cfunc
def _take(
    offsets: cython.const[Offset][::1],
    data: cython.const[cython.uchar][::1],
    indices: cython.const[cython.longlong][::1],
    taken: Offset[::1],
    most: cython.longlong,
) -> object:
    count: cython.Py_ssize_t = indices.shape[0]
    have: cython.longlong = data.shape[0]
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t
    wrong: cython.Py_ssize_t = -1
    start: cython.longlong
    end: cython.longlong
    total: cython.longlong = 0
    taken[0] = 0
    with cython.nogil:
        bad = _outside(cython.address(indices[0]), count, offsets.shape[0] - 1)
        if bad < 0:
            for i in range(count):
                start = offsets[indices[i]]
                end = offsets[indices[i] + 1]
                if start < 0 or end < start or end > have:
                    wrong = i
                    break
                total += end - start
                taken[i + 1] = total
    if bad >= 0:
        raise index_outside(bad, indices[bad], offsets.shape[0] - 1)
    if wrong >= 0:
        raise range_of_value(indices[wrong], offsets[indices[wrong]], offsets[indices[wrong] + 1], have)
    if total > most:
        raise too_large(total)
    values = np.empty(total, dtype=np.uint8)
    out: cython.uchar[::1] = values
    with cython.nogil:
        for i in range(count):
            _copy(
                cython.address(out[0]) + taken[i],
                cython.address(data[0]) + offsets[indices[i]],
                taken[i + 1] - taken[i],
            )
    return values


def take_variable(offsets, data, indices) -> tuple:
    """See the twin."""
    check_some_offsets(offsets)
    taken = np.zeros(len(indices) + 1, dtype=offsets.dtype)
    if len(indices) == 0:
        return taken, np.empty(0, dtype=np.uint8)
    if offsets.itemsize == 4:
        return taken, _take[cython.int](offsets, data, indices, taken, 2**31 - 1)
    return taken, _take[cython.longlong](offsets, data, indices, taken, 2**63 - 1)
