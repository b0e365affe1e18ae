"""JSONB to JSON text, compiled: whole columns at a time, with a stack of its own in place of recursion."""

import cython
import numpy as np
from cython.cimports.json_text import put_real, put_whole, utf8_sequence
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy

from lancelet.kernels.jsonb_layout import bad_document, check_offsets
from lancelet.kernels.powers_of_ten import powers_of_ten

TOO_DEEP = cython.declare(cython.int, -6)
BAD_UTF8 = cython.declare(cython.int, -7)
BAD_HEADER = cython.declare(cython.int, -11)
BAD_ENTRY = cython.declare(cython.int, -12)
BAD_KEY = cython.declare(cython.int, -13)
BAD_BYTES = cython.declare(cython.int, -14)
UNKNOWN_KIND = cython.declare(cython.int, -15)
SCALAR = cython.declare(cython.int, 1)
OBJECT = cython.declare(cython.int, 2)
ARRAY = cython.declare(cython.int, 4)
MOST_LEVELS = cython.declare(cython.Py_ssize_t, 131072)
# No text is longer than this many times its bytes: a control character becomes six, an entry of null four and a comma.
GROWTH = cython.declare(int64_t, 6)
# Room behind each document's longest text, so that strings can be copied eight bytes at a time.
SLACK = cython.declare(int64_t, 32)

# A container whose items are being written; all places are in the data.
Frame = cython.struct(
    kind=cython.int,
    first=cython.bint,
    left=int64_t,
    key_entry=int64_t,
    key=int64_t,
    entry=int64_t,
    payload=int64_t,
    end=int64_t,
)
Reader = cython.struct(
    data=cython.pointer(cython.const[uint8_t]),
    powers=cython.pointer(cython.const[uint64_t]),
    frames=cython.pointer(Frame),
    depth=cython.Py_ssize_t,
    # What is wrong, and where.
    status=cython.int,
    wrong=int64_t,
)
Out = cython.typedef(cython.pointer(uint8_t))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _word(data: cython.pointer(cython.const[uint8_t])) -> uint32_t:
    high: uint32_t = cython.cast(uint32_t, data[0]) << 24 | cython.cast(uint32_t, data[1]) << 16
    return high | cython.cast(uint32_t, data[2]) << 8 | data[3]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _special(word: uint64_t) -> uint64_t:
    """Nonzero if one of eight characters is a control character, a quote, a backslash or not ASCII."""
    low: uint64_t = 0x0101010101010101
    quote: uint64_t = word ^ (low * 34)
    backslash: uint64_t = word ^ (low * 92)
    return (word | (word - low * 32) | (quote - low) | (backslash - low)) & (low << 7)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _string(r: cython.pointer(Reader), start: int64_t, end: int64_t, out: Out) -> Out:
    """Write a string in quotes."""
    i: int64_t = start
    word = cython.declare(uint64_t)
    c: uint8_t
    length: cython.int
    out[0] = 34
    out += 1
    while i < end:
        if i + 8 <= end:
            memcpy(cython.address(word), r.data + i, 8)
            if _special(word) == 0:
                memcpy(out, cython.address(word), 8)
                out += 8
                i += 8
                continue
        c = r.data[i]
        if c >= 128:
            length = utf8_sequence(r.data + i, end - i)
            if length == 0:
                r.status, r.wrong = BAD_UTF8, i
                return out
            memcpy(out, r.data + i, length)
            out += length
            i += length
            continue
        if c >= 32 and c != 34 and c != 92:
            out[0] = c
            out += 1
        else:
            out = _escaped(out, c)
        i += 1
    out[0] = 34
    return out + 1


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _escaped(out: Out, c: uint8_t) -> Out:
    letter: uint8_t = 0
    if c == 34 or c == 92:
        letter = c
    elif c == 8:
        letter = 98
    elif c == 9:
        letter = 116
    elif c == 10:
        letter = 110
    elif c == 12:
        letter = 102
    elif c == 13:
        letter = 114
    out[0] = 92
    if letter:
        out[1] = letter
        return out + 2
    memcpy(out + 1, b"u00", 3)
    out[4] = 48 + (c >> 4)
    c &= 15
    out[5] = 48 + c if c < 10 else 87 + c
    return out + 6


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _number(r: cython.pointer(Reader), start: int64_t, length: int64_t, out: Out) -> Out:
    kind: uint8_t = r.data[start] if length > 0 else 0xFF
    value: uint64_t = 0
    infinite: uint64_t = 0x7FF0000000000000
    width: int64_t = length - 1
    i: int64_t
    if kind == 0:
        out[0] = 48
        return out + 1
    if kind == 0x10 or kind == 0x20 or kind == 0x30:
        memcpy(out, b"null", 4)
        return out + 4
    if kind == 0x70:
        r.status, r.wrong = UNKNOWN_KIND, start
        return out
    fits: cython.bint = width == 8 or (kind != 0x60 and (width == 1 or width == 2 or width == 4))
    if not fits or (kind != 0x40 and kind != 0x50 and kind != 0x60):
        r.status, r.wrong = BAD_BYTES, start
        return out
    for i in range(1, length):
        value = value << 8 | r.data[start + i]
    if kind == 0x60:
        if value & infinite == infinite:
            memcpy(out, b"null", 4)
            return out + 4
        return put_real(out, value, r.powers)
    if kind == 0x40 and value >> (8 * width - 1):
        out[0] = 45
        value = 0 - value
        if width < 8:
            value &= (cython.cast(uint64_t, 1) << (8 * width)) - 1
        return put_whole(out + 1, value)
    return put_whole(out, value)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _open(r: cython.pointer(Reader), start: int64_t, end: int64_t, out: Out) -> Out:
    """Begin a container."""
    f: cython.pointer(Frame)
    header: uint32_t
    entry: uint32_t
    i: int64_t
    if end - start < 4:
        r.status, r.wrong = BAD_HEADER, start
        return out
    if r.depth == MOST_LEVELS:
        r.status, r.wrong = TOO_DEEP, start
        return out
    header = _word(r.data + start)
    f = r.frames + r.depth
    f.kind, f.first, f.left, f.end = cython.cast(cython.int, header >> 29), True, header & 0x1FFFFFFF, end
    f.entry = start + 4
    if f.kind == SCALAR:
        f.left = 1
    elif f.kind != OBJECT and f.kind != ARRAY:
        r.status, r.wrong = BAD_HEADER, start
        return out
    f.payload = f.entry + 4 * f.left
    if f.kind == OBJECT:
        f.key_entry, f.entry, f.payload = f.entry, f.payload, f.payload + 4 * f.left
        f.key = f.payload
    if f.payload > end:
        r.status, r.wrong = BAD_ENTRY, start
        return out
    if f.kind == OBJECT:
        for i in range(f.left):
            entry = _word(r.data + f.key_entry + 4 * i)
            if entry & 0x70000000 != 0x10000000:
                r.status, r.wrong = BAD_KEY, f.key_entry + 4 * i
                return out
            f.payload += entry & 0x0FFFFFFF
        if f.payload > end:
            r.status, r.wrong = BAD_ENTRY, start
            return out
    r.depth += 1
    if f.kind == SCALAR:
        return out
    out[0] = 91 if f.kind == ARRAY else 123
    return out + 1


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _item(r: cython.pointer(Reader), f: cython.pointer(Frame), out: Out) -> Out:
    """Write the next item of a container, or begin it where it is a container itself."""
    entry: uint32_t
    start: int64_t = f.payload
    if not f.first:
        out[0] = 44
        out += 1
    f.first = False
    f.left -= 1
    if f.kind == OBJECT:
        entry = _word(r.data + f.key_entry) & 0x0FFFFFFF
        f.key_entry += 4
        out = _string(r, f.key, f.key + entry, out)
        if r.status != 0:
            # What is found first is what is told.
            return out
        out[0] = 58
        out += 1
        f.key += entry
    entry = _word(r.data + f.entry)
    f.entry += 4
    f.payload += entry & 0x0FFFFFFF
    if f.payload > f.end:
        r.status, r.wrong = BAD_ENTRY, f.entry - 4
        return out
    entry = entry >> 28 & 7
    if entry == 1:
        return _string(r, start, f.payload, out)
    if entry == 2:
        return _number(r, start, f.payload - start, out)
    if entry == 5 and f.kind != SCALAR:
        return _open(r, start, f.payload, out)
    if entry == 0:
        memcpy(out, b"null", 4)
        return out + 4
    if entry == 4:
        memcpy(out, b"true", 4)
        return out + 4
    if entry == 3:
        memcpy(out, b"false", 5)
        return out + 5
    r.status, r.wrong = UNKNOWN_KIND if entry == 6 else BAD_BYTES, f.entry - 4
    return out


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _document(r: cython.pointer(Reader), start: int64_t, end: int64_t, out: Out) -> Out:
    """Write one document; nothing at all stands for null."""
    f: cython.pointer(Frame)
    r.depth, r.status = 0, 0
    if start == end:
        memcpy(out, b"null", 4)
        return out + 4
    out = _open(r, start, end, out)
    while r.depth > 0 and r.status == 0:
        f = r.frames + r.depth - 1
        if f.left > 0:
            out = _item(r, f, out)
            continue
        r.depth -= 1
        if f.kind != SCALAR:
            out[0] = 93 if f.kind == ARRAY else 125
            out += 1
    return out


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _documents(
    r: cython.pointer(Reader),
    offsets: cython.const[cython.longlong][::1],
    valid: cython.const[uint8_t][::1],
    row: cython.Py_ssize_t,
    out_offsets: cython.longlong[::1],
    out: Out,
    room: int64_t,
) -> cython.Py_ssize_t:
    """Write documents from `row` on; returns the first that was not, for want of room or because it is wrong."""
    at: int64_t = out_offsets[row]
    while row < offsets.shape[0] - 1:
        if valid[row]:
            if room - at < GROWTH * (offsets[row + 1] - offsets[row]) + SLACK:
                break
            at = _document(r, offsets[row], offsets[row + 1], out + at) - out
            if r.status < 0:
                break
        row += 1
        out_offsets[row] = at
    return row


def decode(
    offsets: cython.const[cython.longlong][::1],
    data: cython.const[uint8_t][::1],
    validity: cython.const[uint8_t][::1],
) -> tuple:
    """See the twin."""
    reader = cython.declare(Reader)
    count: cython.Py_ssize_t = offsets.shape[0] - 1
    row: cython.Py_ssize_t = 0
    nothing: uint8_t = 0
    check_offsets(np.asarray(offsets), data.shape[0], validity.shape[0])
    powers: cython.const[uint64_t][:, ::1] = powers_of_ten(round_up=True)
    result_offsets = np.zeros(count + 1, np.int64)
    out_offsets: cython.longlong[::1] = result_offsets
    lengths = np.diff(offsets)
    total: int64_t = offsets[count] - offsets[0]
    result = np.empty(total + total // 4 + GROWTH * int(lengths.max(initial=0)) + 2 * SLACK, np.uint8)
    out: uint8_t[::1] = result
    reader.status = 0
    reader.data = cython.address(data[0]) if data.shape[0] > 0 else cython.address(nothing)
    reader.powers = cython.address(powers[0, 0])
    reader.frames = cython.cast(cython.pointer(Frame), malloc(MOST_LEVELS * cython.sizeof(Frame)))
    if reader.frames == cython.NULL:
        raise MemoryError
    try:
        while True:
            with cython.nogil:
                row = _documents(
                    cython.address(reader), offsets, validity, row, out_offsets, cython.address(out[0]), out.shape[0]
                )
            if row == count:
                return result_offsets, result[: out_offsets[count]]
            if reader.status < 0:
                raise bad_document(reader.status, row, reader.wrong - offsets[row])
            grown = np.empty(2 * out.shape[0], np.uint8)
            grown[: out_offsets[row]] = result[: out_offsets[row]]
            result = out = grown
    finally:
        free(reader.frames)
