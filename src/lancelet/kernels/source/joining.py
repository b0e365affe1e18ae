"""Rows that have one code, compiled.

The table is an array of slots, at least twice as many as there are rows: each is 0 or one more than the first row of
a code, which lies in the first free slot from the one that the upper bits of its hash name. ``following`` leads from a
row to the next of the same code in the same way. Before all that stands a bit for each of sixteen times as many hashes
as there are rows: most codes that are not there are told by it, with a jump that the processor foresees.
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
def _hash(code: cython.ulonglong) -> cython.ulonglong:
    code ^= code >> 32
    return code * SPREAD


def build(codes: cython.const[cython.ulonglong][::1]) -> tuple:
    """See the twin."""
    count: cython.Py_ssize_t = codes.shape[0]
    if count > MOST_ROWS:
        raise InvalidInput(f"{count} rows in one table, expected at most {MOST_ROWS}")
    bits = max(4, (2 * int(count)).bit_length())
    slots = np.zeros(1 << bits, np.int32)
    following = np.zeros(count, np.int32)
    marks = np.zeros(1 << bits, np.uint8)
    marks_view: cython.uchar[::1] = marks
    mark: cython.ulonglong
    heads: cython.int[::1] = slots
    following_view: cython.int[::1] = following
    shift: cython.int = 64 - bits
    mask: cython.ulonglong = (1 << bits) - 1
    place: cython.ulonglong
    i: cython.Py_ssize_t
    with cython.nogil:
        # From the last to the first: each row becomes the head of its code, so that chains rise.
        for i in range(count - 1, -1, -1):
            place = _hash(codes[i])
            mark = place >> (shift - 3)
            marks_view[mark >> 3] |= 1 << (mark & 7)
            place = place >> shift
            while heads[place] and codes[heads[place] - 1] != codes[i]:
                place = (place + 1) & mask
            following_view[i] = heads[place]
            heads[place] = i + 1
    return slots, following, marks


def probe(codes: cython.const[cython.ulonglong][::1], table, asked: cython.const[cython.ulonglong][::1]) -> tuple:
    """See the twin."""
    heads: cython.const[cython.int][::1] = table[0]
    following: cython.const[cython.int][::1] = table[1]
    marks: cython.const[cython.uchar][::1] = table[2]
    count: cython.Py_ssize_t = asked.shape[0]
    if following.shape[0] != codes.shape[0]:
        raise InvalidInput(f"the table is one of {following.shape[0]} rows, {codes.shape[0]} codes were given")
    bits = int(heads.shape[0]).bit_length() - 1
    shift: cython.int = 64 - bits
    mask: cython.ulonglong = (1 << bits) - 1
    # Room for all; of what is not written the system makes no memory.
    left = np.empty(count, np.int64)
    right = np.empty(count, np.int64)
    left_view: cython.longlong[::1] = left
    right_view: cython.longlong[::1] = right
    place: cython.ulonglong
    row: cython.int
    i: cython.Py_ssize_t
    hits: cython.Py_ssize_t = 0
    more: cython.Py_ssize_t = 0
    code: cython.ulonglong
    mark: cython.ulonglong
    if count == 0 or codes.shape[0] == 0:
        return left[:0], right[:0]
    # Plain pointers: writing through a view, the compiler cannot tell that it does not change the others.
    words: cython.pointer(cython.const[cython.ulonglong]) = cython.address(asked[0])
    slots: cython.pointer(cython.const[cython.int]) = cython.address(heads[0])
    known: cython.pointer(cython.const[cython.ulonglong]) = cython.address(codes[0])
    marked: cython.pointer(cython.const[cython.uchar]) = cython.address(marks[0])
    with cython.nogil:
        for i in range(count):
            code = words[i]
            place = _hash(code)
            mark = place >> (shift - 3)
            if not (marked[mark >> 3] >> (mark & 7)) & 1:
                continue
            place = place >> shift
            row = slots[place]
            while row and known[row - 1] != code:
                place = (place + 1) & mask
                row = slots[place]
            if row:
                left_view[hits] = i
                right_view[hits] = row - 1
                hits += 1
                row = following[row - 1]
                while row:
                    more += 1
                    row = following[row - 1]
    if more:
        return _with_chains(left[:hits], right[:hits], following, hits + more)
    if 2 * hits < count:
        return left[:hits].copy(), right[:hits].copy()
    return left[:hits], right[:hits]


@cython.cfunc
def _with_chains(
    first: cython.const[cython.longlong][::1],
    heads: cython.const[cython.longlong][::1],
    following: cython.const[cython.int][::1],
    total: cython.Py_ssize_t,
) -> tuple:
    """The pairs of first rows, and behind each those of the rows that follow it."""
    left = np.empty(total, np.int64)
    right = np.empty(total, np.int64)
    left_view: cython.longlong[::1] = left
    right_view: cython.longlong[::1] = right
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    row: cython.longlong
    with cython.nogil:
        for i in range(first.shape[0]):
            row = heads[i] + 1
            while row:
                left_view[at] = first[i]
                right_view[at] = row - 1
                at += 1
                row = following[row - 1]
    return left, right
