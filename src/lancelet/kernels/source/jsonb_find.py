"""Values at a path of JSONB documents, compiled: where they lie, without a look at what is not on the way."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memcmp

from lancelet.kernels.jsonb_layout import bad_document, check_offsets

BAD_HEADER = cython.declare(cython.int, -11)
BAD_ENTRY = cython.declare(cython.int, -12)
BAD_KEY = cython.declare(cython.int, -13)
SCALAR = cython.declare(cython.int, 1)
OBJECT = cython.declare(cython.int, 2)
ARRAY = cython.declare(cython.int, 4)
CONTAINER = cython.declare(cython.int, 5)

# What is sought, and the value at hand; all places are in the data.
Seeker = cython.struct(
    data=cython.pointer(cython.const[uint8_t]),
    names=cython.pointer(cython.const[uint8_t]),
    start=int64_t,
    end=int64_t,
    tag=cython.int,
    status=cython.int,
    wrong=int64_t,
)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _word(data: cython.pointer(cython.const[uint8_t])) -> uint32_t:
    high: uint32_t = cython.cast(uint32_t, data[0]) << 24 | cython.cast(uint32_t, data[1]) << 16
    return high | cython.cast(uint32_t, data[2]) << 8 | data[3]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _refuse(s: cython.pointer(Seeker), status: cython.int, where: int64_t) -> cython.bint:
    s.status, s.wrong = status, where
    return False


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _item(s: cython.pointer(Seeker), entries: int64_t, payload: int64_t, number: int64_t) -> cython.bint:
    """Go to the value of an entry by its number; `payload` is where that of the first one begins."""
    i: int64_t
    entry: uint32_t
    for i in range(number):
        payload += _word(s.data + entries + 4 * i) & 0x0FFFFFFF
    entry = _word(s.data + entries + 4 * number)
    if payload + (entry & 0x0FFFFFFF) > s.end:
        return _refuse(s, BAD_ENTRY, entries + 4 * number)
    s.start, s.end, s.tag = payload, payload + (entry & 0x0FFFFFFF), cython.cast(cython.int, entry >> 28 & 7)
    return True


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _step(s: cython.pointer(Seeker), named: cython.bint, begin: int64_t, size: int64_t, number: int64_t) -> cython.bint:
    """Go to the field of a name, or the item of a number, of the container at hand; False if there is none."""
    header: uint32_t
    count: int64_t
    i: int64_t
    entry: uint32_t
    found: int64_t = -1
    key: int64_t
    if s.tag != CONTAINER:
        return False
    if s.end - s.start < 4:
        return _refuse(s, BAD_HEADER, s.start)
    header = _word(s.data + s.start)
    count = header & 0x1FFFFFFF
    if header >> 29 == SCALAR:
        return False
    if header >> 29 == ARRAY:
        if s.start + 4 + 4 * count > s.end:
            return _refuse(s, BAD_ENTRY, s.start)
        if number < 0 or number >= count:
            return False
        return _item(s, s.start + 4, s.start + 4 + 4 * count, number)
    if header >> 29 != OBJECT:
        return _refuse(s, BAD_HEADER, s.start)
    key = s.start + 4 + 8 * count
    if key > s.end:
        return _refuse(s, BAD_ENTRY, s.start)
    if not named:
        return False
    for i in range(count):
        entry = _word(s.data + s.start + 4 + 4 * i)
        if entry & 0x70000000 != 0x10000000:
            return _refuse(s, BAD_KEY, s.start + 4 + 4 * i)
        entry &= 0x0FFFFFFF
        if key + entry > s.end:
            return _refuse(s, BAD_ENTRY, s.start)
        if entry == size and found < 0 and memcmp(s.data + key, s.names + begin, size) == 0:
            found = i
        key += entry
    if found < 0:
        return False
    return _item(s, s.start + 4 + 4 * count, key, found)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _unwrap(s: cython.pointer(Seeker)) -> cython.bint:
    """Of a document that is no object and no array, the value itself."""
    if s.tag != CONTAINER:
        return True
    if s.end - s.start < 4:
        return _refuse(s, BAD_HEADER, s.start)
    if _word(s.data + s.start) >> 29 != SCALAR:
        return True
    if s.end - s.start < 8:
        return _refuse(s, BAD_ENTRY, s.start)
    return _item(s, s.start + 4, s.start + 8, 0)


def find(
    offsets: cython.const[cython.longlong][::1],
    data: cython.const[uint8_t][::1],
    validity: cython.const[uint8_t][::1],
    names: cython.const[uint8_t][::1],
    ends: cython.const[cython.longlong][::1],
    named: cython.const[uint8_t][::1],
    numbers: cython.const[cython.longlong][::1],
) -> tuple:
    """See the twin."""
    seeker = cython.declare(Seeker)
    s: cython.pointer(Seeker) = cython.address(seeker)
    count: cython.Py_ssize_t = offsets.shape[0] - 1
    row: cython.Py_ssize_t
    step: cython.Py_ssize_t
    begin: int64_t
    there: cython.bint
    nothing: uint8_t = 0
    check_offsets(np.asarray(offsets), data.shape[0], validity.shape[0])
    starts = np.zeros(count, np.int64)
    sizes = np.zeros(count, np.int64)
    kinds = np.full(count, -1, np.int8)
    out_starts: cython.longlong[::1] = starts
    out_sizes: cython.longlong[::1] = sizes
    out_kinds: cython.schar[::1] = kinds
    seeker.data = cython.address(data[0]) if data.shape[0] > 0 else cython.address(nothing)
    seeker.names = cython.address(names[0]) if names.shape[0] > 0 else cython.address(nothing)
    seeker.status, seeker.wrong = 0, 0
    row = 0
    with cython.nogil:
        while row < count:
            if validity[row]:
                seeker.start, seeker.end, seeker.tag = offsets[row], offsets[row + 1], CONTAINER
                if seeker.start == seeker.end:
                    seeker.tag = 0
                there, begin = True, 0
                for step in range(numbers.shape[0]):
                    there = _step(s, named[step], begin, ends[step] - begin, numbers[step])
                    begin = ends[step]
                    if not there:
                        break
                if there:
                    there = _unwrap(s)
                if seeker.status < 0:
                    break
                if there:
                    out_starts[row], out_sizes[row] = seeker.start, seeker.end - seeker.start
                    out_kinds[row] = seeker.tag
            row += 1
    if seeker.status < 0:
        raise bad_document(seeker.status, row, seeker.wrong - offsets[row])
    return kinds, starts, sizes
