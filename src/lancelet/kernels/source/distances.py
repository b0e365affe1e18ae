"""Distances of many vectors to one, compiled: sixteen sums side by side, which become one at the end of a vector."""

import cython
from cython.cimports.libc.math import sqrt

from lancelet.kernels import refuse

Number = cython.fused_type(cython.float, cython.double)
ODD = cython.declare(cython.ulonglong, 0x5555555555555555)
PAIRS = cython.declare(cython.ulonglong, 0x3333333333333333)
NIBBLES = cython.declare(cython.ulonglong, 0x0F0F0F0F0F0F0F0F)
BYTES = cython.declare(cython.ulonglong, 0x0101010101010101)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _total(lanes: cython.pointer(Number)) -> Number:
    k: cython.int
    for k in range(8):
        lanes[k] += lanes[k + 8]
    for k in range(4):
        lanes[k] += lanes[k + 4]
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _differences(
    vector: cython.pointer(cython.const[Number]),
    query: cython.pointer(cython.const[Number]),
    size: cython.Py_ssize_t,
    lanes: cython.pointer(Number),
) -> Number:
    """The sum of the squared differences; ``lanes`` has room for 16 numbers."""
    i: cython.Py_ssize_t = 0
    k: cython.int
    total: Number
    for k in range(16):
        lanes[k] = 0
    while i + 16 <= size:
        for k in range(16):
            lanes[k] += (vector[i + k] - query[i + k]) * (vector[i + k] - query[i + k])
        i += 16
    total = _total(lanes)
    while i < size:
        total += (vector[i] - query[i]) * (vector[i] - query[i])
        i += 1
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _products(
    one: cython.pointer(cython.const[Number]),
    other: cython.pointer(cython.const[Number]),
    size: cython.Py_ssize_t,
    lanes: cython.pointer(Number),
) -> Number:
    """The sum of the products."""
    i: cython.Py_ssize_t = 0
    k: cython.int
    total: Number
    for k in range(16):
        lanes[k] = 0
    while i + 16 <= size:
        for k in range(16):
            lanes[k] += one[i + k] * other[i + k]
        i += 16
    total = _total(lanes)
    while i < size:
        total += one[i] * other[i]
        i += 1
    return total


def squared_l2(values: cython.const[Number][::1], query: cython.const[Number][::1], out: cython.float[::1]) -> None:
    """See the twin."""
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t = query.shape[0]
    lanes: Number[16]
    refuse.other_length("values", values.shape[0], out.shape[0] * size)
    with cython.nogil:
        for i in range(out.shape[0]):
            out[i] = _differences(cython.address(values[i * size]), cython.address(query[0]), size, lanes)


def dot_products(values: cython.const[Number][::1], query: cython.const[Number][::1], out: cython.float[::1]) -> None:
    """See the twin."""
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t = query.shape[0]
    lanes: Number[16]
    refuse.other_length("values", values.shape[0], out.shape[0] * size)
    with cython.nogil:
        for i in range(out.shape[0]):
            out[i] = _products(cython.address(values[i * size]), cython.address(query[0]), size, lanes)


def cosine(values: cython.const[Number][::1], query: cython.const[Number][::1], out: cython.float[::1]) -> None:
    """See the twin."""
    i: cython.Py_ssize_t
    size: cython.Py_ssize_t = query.shape[0]
    lanes: Number[16]
    length: cython.double
    product: cython.double
    vector: cython.pointer(cython.const[Number])
    asked: cython.pointer(cython.const[Number]) = cython.address(query[0])
    refuse.other_length("values", values.shape[0], out.shape[0] * size)
    with cython.nogil:
        length = sqrt(_products(asked, asked, size, lanes))
        for i in range(out.shape[0]):
            vector = cython.address(values[i * size])
            product = _products(vector, asked, size, lanes)
            out[i] = 1 - product / (sqrt(_products(vector, vector, size, lanes)) * length)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bits(word: cython.ulonglong) -> cython.ulonglong:
    """How many bits of a word are set; processors of the first variant have no instruction for that."""
    word = word - ((word >> 1) & ODD)
    word = (word & PAIRS) + ((word >> 2) & PAIRS)
    word = (word + (word >> 4)) & NIBBLES
    return (word * BYTES) >> 56


def hamming(
    values: cython.const[cython.uchar][::1], query: cython.const[cython.uchar][::1], out: cython.float[::1]
) -> None:
    """See the twin."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    at: cython.Py_ssize_t
    size: cython.Py_ssize_t = query.shape[0]
    words: cython.Py_ssize_t = size // 8
    total: cython.ulonglong
    one: cython.pointer(cython.const[cython.ulonglong])
    other: cython.pointer(cython.const[cython.ulonglong])
    refuse.other_length("values", values.shape[0], out.shape[0] * size)
    with cython.nogil:
        other = cython.cast(cython.pointer(cython.const[cython.ulonglong]), cython.address(query[0]))
        for i in range(out.shape[0]):
            at = i * size
            one = cython.cast(cython.pointer(cython.const[cython.ulonglong]), cython.address(values[at]))
            total = 0
            for k in range(words):
                total += _bits(one[k] ^ other[k])
            for k in range(words * 8, size):
                total += _bits(values[at + k] ^ query[k])
            out[i] = total


def widen_halves(halves: cython.const[cython.ushort][::1], out: cython.float[::1]) -> None:
    """See the twin.

    The bits of a half, moved to where a float has them, are a number 2 ** 112 times too small, small ones included.
    What was infinite or NaN gets the exponent for that back.
    """
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    top: cython.uint
    bits: cython.p_uint = cython.cast(cython.p_uint, cython.address(out[0]))
    refuse.other_length("out", out.shape[0], halves.shape[0])
    with cython.nogil:
        # So many at once that they stay in the cache between the loops, each of which becomes SIMD.
        while start < halves.shape[0]:
            stop = min(start + 4096, halves.shape[0])
            for i in range(start, stop):
                bits[i] = cython.cast(cython.uint, halves[i] & 0x7FFF) << 13
            for i in range(start, stop):
                out[i] = out[i] * cython.cast(cython.float, 5.192296858534828e33)
            for i in range(start, stop):
                top = cython.cast(cython.uint, (halves[i] & 0x7C00) == 0x7C00)
                bits[i] |= (cython.cast(cython.uint, halves[i] & 0x8000) << 16) | (top * 0x7F800000)
            start = stop
