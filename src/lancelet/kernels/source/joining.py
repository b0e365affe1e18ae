"""Rows that have one code, compiled.

The table is an array of slots, at least twice as many as there are rows: each is 0 or one more than the first row of
a code, which lies in the first free slot from the one that the code's upper bits name. ``following`` leads from a row
to the next of the same code in the same way.
"""

import cython
import numpy as np

from lancelet.errors import InvalidInput

MOST_ROWS = 2**31 - 2
SPREAD = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _slot(code: cython.ulonglong, shift: cython.int) -> cython.ulonglong:
    code ^= code >> 32
    return (code * SPREAD) >> shift


def build(codes: cython.const[cython.ulonglong][::1]) -> tuple:
    """See the twin."""
    count: cython.Py_ssize_t = codes.shape[0]
    if count > MOST_ROWS:
        raise InvalidInput(f"{count} rows in one table, expected at most {MOST_ROWS}")
    bits = max(4, (2 * int(count)).bit_length())
    slots = np.zeros(1 << bits, np.int32)
    following = np.zeros(count, np.int32)
    heads: cython.int[::1] = slots
    following_view: cython.int[::1] = following
    shift: cython.int = 64 - bits
    mask: cython.ulonglong = (1 << bits) - 1
    place: cython.ulonglong
    i: cython.Py_ssize_t
    with cython.nogil:
        # From the last to the first: each row becomes the head of its code, so that chains rise.
        for i in range(count - 1, -1, -1):
            place = _slot(codes[i], shift)
            while heads[place] and codes[heads[place] - 1] != codes[i]:
                place = (place + 1) & mask
            following_view[i] = heads[place]
            heads[place] = i + 1
    return slots, following


def probe(codes: cython.const[cython.ulonglong][::1], table, asked: cython.const[cython.ulonglong][::1]) -> tuple:
    """See the twin."""
    heads: cython.const[cython.int][::1] = table[0]
    following: cython.const[cython.int][::1] = table[1]
    count: cython.Py_ssize_t = asked.shape[0]
    if following.shape[0] != codes.shape[0]:
        raise InvalidInput(f"the table is one of {following.shape[0]} rows, {codes.shape[0]} codes were given")
    bits = int(heads.shape[0]).bit_length() - 1
    shift: cython.int = 64 - bits
    mask: cython.ulonglong = (1 << bits) - 1
    first = np.empty(count, np.int32)
    first_view: cython.int[::1] = first
    place: cython.ulonglong
    row: cython.int
    total: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(count):
            place = _slot(asked[i], shift)
            row = heads[place]
            while row and codes[row - 1] != asked[i]:
                place = (place + 1) & mask
                row = heads[place]
            first_view[i] = row
            while row:
                total += 1
                row = following[row - 1]
    left = np.empty(total, np.int64)
    right = np.empty(total, np.int64)
    left_view: cython.longlong[::1] = left
    right_view: cython.longlong[::1] = right
    with cython.nogil:
        for i in range(count):
            row = first_view[i]
            while row:
                left_view[at] = i
                right_view[at] = row - 1
                at += 1
                row = following[row - 1]
    return left, right
