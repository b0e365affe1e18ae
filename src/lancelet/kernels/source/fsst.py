"""FSST decoding, compiled: whole runs of strings at a time, wherever single strings begin and end."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy

from lancelet.errors import InvalidInput
from lancelet.kernels.refuse import other_length
from lancelet.kernels.symbol_table import broken_offsets, cut_escape, no_room, read_table, too_long, unknown_code

# Codes are decoded in blocks. For each code of a block, _decode_block notes where its bytes begin in the output; the
# ends of strings are looked up there afterwards. So the inner loop never asks whether a string has ended.
BLOCK = cython.declare(cython.Py_ssize_t, 4096)
ESCAPE = cython.declare(cython.int, 255)
# Length given to codes without a symbol: one bit that no true length has.
UNKNOWN = cython.declare(cython.int, 16)
# Mark of the byte after an escape: no string may begin or end there.
INSIDE = cython.declare(uint32_t, 0xFFFFFFFF)

BAD_CODE = cython.declare(cython.int, -1)
BAD_ROOM = cython.declare(cython.int, -2)
BAD_ESCAPE = cython.declare(cython.int, -3)
BAD_OFFSET = cython.declare(cython.int, -4)
BAD_WIDTH = cython.declare(cython.int, -5)

Decoder = cython.struct(
    plain=cython.bint,
    symbols=uint64_t[256],
    lengths=uint8_t[256],
    # The block at hand.
    marks=uint32_t[4096 + 8],
    consumed=cython.Py_ssize_t,
)
# count + 1 integers of `width` bytes, in any alignment.
Offsets = cython.struct(start=cython.pointer(uint8_t), width=cython.Py_ssize_t, count=cython.Py_ssize_t)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _get(offsets: Offsets, i: cython.Py_ssize_t) -> int64_t:
    narrow = cython.declare(uint32_t)
    wide = cython.declare(int64_t)
    if offsets.width == 4:
        memcpy(cython.address(narrow), offsets.start + 4 * i, 4)
        return cython.cast(int64_t, narrow)
    memcpy(cython.address(wide), offsets.start + 8 * i, 8)
    return wide


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _set(offsets: Offsets, i: cython.Py_ssize_t, value: int64_t) -> cython.void:
    narrow: uint32_t = cython.cast(uint32_t, value)
    if offsets.width == 4:
        memcpy(offsets.start + 4 * i, cython.address(narrow), 4)
    else:
        memcpy(offsets.start + 8 * i, cython.address(value), 8)


@cython.cfunc
def _open(table: cython.const[uint8_t][::1], decoder: cython.pointer(Decoder)) -> cython.int:
    """Fill in the decoder; raise what the table breaks."""
    count: cython.Py_ssize_t
    i: cython.Py_ssize_t
    decoder.plain = not read_table(table)[3]
    count = table[0]
    for i in range(256):
        decoder.symbols[i] = 0
        decoder.lengths[i] = UNKNOWN
    memcpy(cython.address(decoder.symbols[0]), cython.address(table[8]), 8 * count)
    memcpy(cython.address(decoder.lengths[0]), cython.address(table[8 + 8 * count]), count)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _any_escape(word: uint64_t) -> uint64_t:
    """Nonzero if one of the eight codes is the escape."""
    inverse: uint64_t = ~word
    low: uint64_t = 0x0101010101010101
    high: uint64_t = low << 7
    return (inverse - low) & ~inverse & high


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _decode_block(
    d: cython.pointer(Decoder),
    codes: cython.pointer(cython.const[uint8_t]),
    count: cython.Py_ssize_t,
    out: cython.pointer(uint8_t),
    room: int64_t,
) -> int64_t:
    """Decode `count` codes to `out`; returns the bytes made, or what is wrong.

    An escape that is the last code is left over: d.consumed tells.
    """
    i: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    at: int64_t = 0
    length: int64_t
    code: uint8_t
    seen: uint8_t = 0
    word = cython.declare(uint64_t)
    while i < count:
        # Eight codes make at most 8 * UNKNOWN bytes, the last store reaches 8 further.
        if i + 8 <= count and at + 136 <= room:
            memcpy(cython.address(word), codes + i, 8)
            if _any_escape(word) == 0:
                for k in range(8):
                    code = cython.cast(uint8_t, word >> (8 * k))
                    d.marks[i + k] = cython.cast(uint32_t, at)
                    memcpy(out + at, cython.address(d.symbols[code]), 8)
                    seen |= d.lengths[code]
                    at += d.lengths[code]
                i += 8
                continue
        code = codes[i]
        d.marks[i] = cython.cast(uint32_t, at)
        if code == ESCAPE:
            if i + 1 == count:
                break
            if at >= room:
                return BAD_ROOM
            out[at] = codes[i + 1]
            d.marks[i + 1] = INSIDE
            at += 1
            i += 2
            continue
        length = d.lengths[code]
        if length == UNKNOWN:
            return BAD_CODE
        if at + 8 <= room:
            memcpy(out + at, cython.address(d.symbols[code]), 8)
        elif at + length <= room:
            memcpy(out + at, cython.address(d.symbols[code]), length)
        else:
            return BAD_ROOM
        at += length
        i += 1
    d.marks[i] = cython.cast(uint32_t, at)
    d.consumed = i
    return BAD_CODE if seen & UNKNOWN else at


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _decode_run(
    d: cython.pointer(Decoder),
    data: cython.pointer(cython.const[uint8_t]),
    size: int64_t,
    offsets: Offsets,
    out: cython.pointer(uint8_t),
    at: int64_t,
    room: int64_t,
    out_offsets: Offsets,
    first: cython.Py_ssize_t,
) -> int64_t:
    """Decode the strings that `offsets` cut out of `data`; their ends go to out_offsets[first + 1:]."""
    string: cython.Py_ssize_t = 1
    position: int64_t = _get(offsets, 0)
    end: int64_t = _get(offsets, offsets.count)
    previous: int64_t = position
    boundary: int64_t
    made: int64_t
    if position < 0 or end < position or end > size:
        return BAD_OFFSET
    while string <= offsets.count:
        if d.plain:
            d.consumed = end - position
            made = d.consumed
            if made > room - at:
                return BAD_ROOM
            memcpy(out + at, data + position, made)
        else:
            made = _decode_block(d, data + position, min(end - position, BLOCK), out + at, room - at)
            if made < 0:
                return made
        while string <= offsets.count:
            boundary = _get(offsets, string)
            if boundary < previous or boundary > end:
                return BAD_OFFSET
            if boundary > position + d.consumed:
                break
            previous = boundary
            boundary -= position
            if not d.plain:
                if d.marks[boundary] == INSIDE:
                    return BAD_ESCAPE
                boundary = d.marks[boundary]
            _set(out_offsets, first + string, at + boundary)
            string += 1
        if string <= offsets.count and d.consumed == 0:
            return BAD_ESCAPE
        at += made
        position += d.consumed
        if out_offsets.width == 4 and at > 0x7FFFFFFF:
            return BAD_WIDTH
    return at


@cython.cfunc
def _view(array: object, name: str) -> Offsets:
    """The offsets in a NumPy array of int32 or int64."""
    view = cython.declare(Offsets)
    narrow: cython.const[cython.int][::1]
    wide: cython.const[cython.longlong][::1]
    view.start = cython.NULL
    if array.dtype == np.int32:
        narrow = array
        view.width, view.count = 4, narrow.shape[0] - 1
        if view.count >= 0:
            view.start = cython.cast(cython.pointer(uint8_t), cython.address(narrow[0]))
    elif array.dtype == np.int64:
        wide = array
        view.width, view.count = 8, wide.shape[0] - 1
        if view.count >= 0:
            view.start = cython.cast(cython.pointer(uint8_t), cython.address(wide[0]))
    else:
        raise InvalidInput(f"{name} hold {array.dtype}, expected int32 or int64")
    if name == "out_offsets" and not array.flags.writeable:
        raise InvalidInput("out_offsets cannot be written to")
    if view.count < 0:
        raise InvalidInput(f"{name} are empty, expected one more than there are strings")
    return view


def _refuse(status: int, room: int) -> Exception:
    if status == BAD_CODE:
        return unknown_code()
    if status == BAD_ROOM:
        return no_room(room)
    if status == BAD_ESCAPE:
        return cut_escape()
    return too_long() if status == BAD_WIDTH else broken_offsets()


def decoded_sizes(table: cython.const[uint8_t][::1], data: cython.const[uint8_t][::1], offsets: object) -> object:
    """See the twin."""
    decoder = cython.declare(Decoder)
    view: Offsets = _view(offsets, "offsets")
    result = np.empty(view.count, np.int64)
    sizes: cython.longlong[::1] = result
    start: int64_t = _get(view, 0)
    status: cython.int = 0
    string: cython.Py_ssize_t
    i: int64_t
    end: int64_t
    size: int64_t
    seen: uint8_t = 0
    _open(table, cython.address(decoder))
    with cython.nogil:
        for string in range(view.count):
            end = _get(view, string + 1)
            if start < 0 or end < start or end > data.shape[0]:
                status = BAD_OFFSET
                break
            size = end - start
            if not decoder.plain:
                i, size = start, 0
                while i < end:
                    if data[i] == ESCAPE:
                        i += 2
                        size += 1
                    else:
                        seen |= decoder.lengths[data[i]]
                        size += decoder.lengths[data[i]]
                        i += 1
                if i > end:
                    status = BAD_ESCAPE
                    break
            sizes[string] = size
            start = end
    if seen & UNKNOWN:
        status = BAD_CODE
    if status < 0:
        raise _refuse(status, 0)
    return result


def decode(
    table: cython.const[uint8_t][::1],
    data: cython.const[uint8_t][::1],
    offsets: object,
    out_offsets: object,
    out: uint8_t[::1],
) -> int:
    """See the twin."""
    decoder = cython.declare(Decoder)
    view: Offsets = _view(offsets, "offsets")
    out_view: Offsets = _view(out_offsets, "out_offsets")
    nothing: uint8_t = 0
    source: cython.pointer(cython.const[uint8_t]) = cython.address(nothing)
    target: cython.pointer(uint8_t) = cython.address(nothing)
    at: int64_t
    other_length("out_offsets", out_view.count, view.count)
    _open(table, cython.address(decoder))
    if data.shape[0] > 0:
        source = cython.address(data[0])
    if out.shape[0] > 0:
        target = cython.address(out[0])
    with cython.nogil:
        _set(out_view, 0, 0)
        at = _decode_run(cython.address(decoder), source, data.shape[0], view, target, 0, out.shape[0], out_view, 0)
    if at < 0:
        raise _refuse(at, out.shape[0])
    return at


def decode_chunks(
    table: cython.const[uint8_t][::1],
    data: cython.const[uint8_t][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    offset_bytes: cython.Py_ssize_t,
    out_offsets: object,
    out: uint8_t[::1],
) -> int:
    """See the twin."""
    decoder = cython.declare(Decoder)
    view = cython.declare(Offsets)
    out_view: Offsets = _view(out_offsets, "out_offsets")
    nothing: uint8_t = 0
    target: cython.pointer(uint8_t) = cython.address(nothing)
    chunk: cython.Py_ssize_t
    first: cython.Py_ssize_t = 0
    at: int64_t = 0
    within: cython.bint
    other_length("sizes of chunks", sizes.shape[0], starts.shape[0])
    other_length("counts of chunks", counts.shape[0], starts.shape[0])
    if offset_bytes != 4 and offset_bytes != 8:
        raise InvalidInput(f"offset_bytes is {offset_bytes}, expected 4 or 8")
    _open(table, cython.address(decoder))
    if out.shape[0] > 0:
        target = cython.address(out[0])
    view.width = offset_bytes
    with cython.nogil:
        _set(out_view, 0, 0)
        for chunk in range(starts.shape[0]):
            within = 0 <= starts[chunk] <= data.shape[0] and 0 <= sizes[chunk] <= data.shape[0] - starts[chunk]
            if not within or not 0 <= counts[chunk] <= out_view.count - first:
                at = BAD_OFFSET
                break
            if counts[chunk] >= sizes[chunk] // offset_bytes:
                at = BAD_OFFSET
                break
            view.start = cython.cast(cython.pointer(uint8_t), cython.address(data[starts[chunk]]))
            view.count = counts[chunk]
            at = _decode_run(
                cython.address(decoder), view.start, sizes[chunk], view, target, at, out.shape[0], out_view, first
            )
            if at < 0:
                break
            first += view.count
    if at < 0:
        raise _refuse(at, out.shape[0])
    other_length("out_offsets", out_view.count, first)
    return at
