"""Hashes of values, compiled: XXH64."""

import cython
from cython.cimports.libc.string import memcpy

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_some_offsets, range_of_value

Offset = cython.fused_type(cython.int, cython.longlong)
P1 = cython.declare(cython.ulonglong, 0x9E3779B185EBCA87)
P2 = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)
P3 = cython.declare(cython.ulonglong, 0x165667B19E3779F9)
P4 = cython.declare(cython.ulonglong, 0x85EBCA77C2B2AE63)
P5 = cython.declare(cython.ulonglong, 0x27D4EB2F165667C5)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rotated(word: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    return (word << bits) | (word >> (64 - bits))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _round(lane: cython.ulonglong, word: cython.ulonglong) -> cython.ulonglong:
    return _rotated(lane + word * P2, 31) * P1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed(found: cython.ulonglong) -> cython.ulonglong:
    found = (found ^ (found >> 33)) * P2
    found = (found ^ (found >> 29)) * P3
    return found ^ (found >> 32)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word(p: cython.pointer(cython.const[cython.uchar])) -> cython.ulonglong:
    word: cython.ulonglong = 0
    memcpy(cython.address(word), p, 8)
    return word


def hash_words(words: cython.const[cython.ulonglong][::1], hashes: cython.ulonglong[::1]) -> None:
    """See the twin."""
    i: cython.Py_ssize_t
    found: cython.ulonglong
    refuse.other_length("hashes", hashes.shape[0], words.shape[0])
    with cython.nogil:
        for i in range(words.shape[0]):
            found = (hashes[i] + P5 + 8) ^ _round(0, words[i])
            hashes[i] = _mixed(_rotated(found, 27) * P1 + P4)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hash(
    p: cython.pointer(cython.const[cython.uchar]), size: cython.longlong, seed: cython.ulonglong
) -> cython.ulonglong:
    found: cython.ulonglong
    at: cython.longlong = 0
    half: cython.uint = 0
    a: cython.ulonglong = seed + P1 + P2
    b: cython.ulonglong = seed + P2
    c: cython.ulonglong = seed
    d: cython.ulonglong = seed - P1
    if size >= 32:
        while at <= size - 32:
            a = _round(a, _word(p + at))
            b = _round(b, _word(p + at + 8))
            c = _round(c, _word(p + at + 16))
            d = _round(d, _word(p + at + 24))
            at += 32
        found = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        found = (found ^ _round(0, a)) * P1 + P4
        found = (found ^ _round(0, b)) * P1 + P4
        found = (found ^ _round(0, c)) * P1 + P4
        found = (found ^ _round(0, d)) * P1 + P4
    else:
        found = seed + P5
    found += cython.cast(cython.ulonglong, size)
    while at <= size - 8:
        found = _rotated(found ^ _round(0, _word(p + at)), 27) * P1 + P4
        at += 8
    if at <= size - 4:
        memcpy(cython.address(half), p + at, 4)
        found = _rotated(found ^ (half * P1), 23) * P2 + P3
        at += 4
    while at < size:
        found = _rotated(found ^ (p[at] * P5), 11) * P1
        at += 1
    return _mixed(found)


@cython.cfunc
def _hash_bytes(
    offsets: cython.const[Offset][::1], data: cython.const[cython.uchar][::1], hashes: cython.ulonglong[::1]
) -> cython.void:
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    have: cython.longlong = data.shape[0]
    none: cython.uchar = 0
    p: cython.pointer(cython.const[cython.uchar]) = cython.address(none)
    refuse.other_length("hashes", hashes.shape[0], offsets.shape[0] - 1)
    if have:
        p = cython.address(data[0])
    with cython.nogil:
        # All are looked at before any is hashed, so that an error leaves the seeds as they were.
        for i in range(hashes.shape[0]):
            if offsets[i] < 0 or offsets[i + 1] < offsets[i] or offsets[i + 1] > have:
                bad = i
                break
        if bad < 0:
            for i in range(hashes.shape[0]):
                hashes[i] = _hash(p + offsets[i], offsets[i + 1] - offsets[i], hashes[i])
    if bad >= 0:
        raise range_of_value(bad, offsets[bad], offsets[bad + 1], have)


def hash_bytes(offsets, data, hashes) -> None:
    """See the twin."""
    check_some_offsets(offsets)
    if offsets.itemsize == 4:
        _hash_bytes[cython.int](offsets, data, hashes)
    else:
        _hash_bytes[cython.longlong](offsets, data, hashes)
