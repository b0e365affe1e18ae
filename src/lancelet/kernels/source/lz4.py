"""LZ4 blocks, compiled: many blocks per call, each with its own bounds."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import calloc, free
from cython.cimports.libc.string import memcpy

from lancelet.kernels.blocks import bad_lz4, check_blocks, check_compression

# A block is a row of sequences:
#
#     token        high four bits: number of literals, low four: length of the match less 4; 15 means that bytes follow
#     [bytes]      each is added to the number of literals, up to the first that is not 255
#     literals
#     offset       two bytes, little-endian: how far back the match is
#     [bytes]      each is added to the length of the match
#
# The last sequence ends after its literals. A match begins 12 bytes or more before the end, and ends 5 or more before.
FREE_END = cython.declare(int64_t, 12)
LITERAL_END = cython.declare(int64_t, 5)
LEAST_MATCH = cython.declare(int64_t, 4)
FARTHEST = cython.declare(int64_t, 65535)
TABLE_BITS = cython.declare(cython.int, 13)

BAD_END = cython.declare(int64_t, -1)
BAD_LITERALS = cython.declare(int64_t, -2)
BAD_MATCH = cython.declare(int64_t, -3)
BAD_OFFSET = cython.declare(int64_t, -4)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _copy_match(
    out: cython.pointer(uint8_t), at: int64_t, offset: int64_t, length: int64_t, size: int64_t
) -> cython.void:
    """Repeat what stands `offset` bytes back; writes nothing past `size`."""
    target: cython.pointer(uint8_t) = out + at
    source: cython.pointer(uint8_t) = target - offset
    done: int64_t = 0
    step: int64_t
    if offset >= 16 and at + length + 16 <= size:
        while done < length:
            memcpy(target + done, source + done, 16)
            done += 16
    elif at + length + 8 <= size:
        # Eight bytes one by one give enough of the period to go on eight at a time, from ever farther back: a load from
        # what was stored a moment ago is slow.
        while done < 8:
            target[done] = source[done]
            done += 1
        step = offset
        while step < 8:
            step += offset
        while done < length:
            memcpy(target + done, target + done - step, 8)
            done += 8
            if done + offset >= 2 * step:
                step *= 2
    else:
        # What is there already repeats itself, so each step may copy twice as much as the one before.
        while done < length:
            step = min(offset + done, length - done)
            memcpy(target + done, source, step)
            done += step


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _more(
    data: cython.pointer(cython.const[uint8_t]),
    have: int64_t,
    i: cython.pointer(int64_t),
    length: cython.pointer(int64_t),
) -> cython.bint:
    """Add the bytes that follow a length of 15; false if the block ends before they do."""
    byte: uint8_t = 255
    while byte == 255:
        if i[0] >= have:
            return False
        byte = data[i[0]]
        i[0] += 1
        length[0] += byte
    return True


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _decompress(
    data: cython.pointer(cython.const[uint8_t]), have: int64_t, out: cython.pointer(uint8_t), size: int64_t
) -> int64_t:
    """Decompress one block to exactly `size` bytes; returns 0, or what is wrong."""
    i: int64_t = 0
    at: int64_t = 0
    length: int64_t
    offset: int64_t
    token: uint8_t
    if size == 0:
        return 0 if have == 1 and data[0] == 0 else BAD_END
    while i < have:
        token = data[i]
        i += 1
        length = token >> 4
        if length < 15 and have - i >= 32 and size - at >= 48:
            # The usual case, with room enough to copy more than is asked for.
            memcpy(out + at, data + i, 16)
            i += length
            at += length
            offset = data[i] | cython.cast(int64_t, data[i + 1]) << 8
            if (token & 15) < 15 and 8 <= offset <= at:
                memcpy(out + at, out + at - offset, 8)
                memcpy(out + at + 8, out + at + 8 - offset, 8)
                memcpy(out + at + 16, out + at + 16 - offset, 2)
                i += 2
                at += (token & 15) + LEAST_MATCH
                continue
        else:
            if length == 15 and not _more(data, have, cython.address(i), cython.address(length)):
                return BAD_END
            if length > have - i or length > size - at:
                return BAD_LITERALS
            memcpy(out + at, data + i, length)
            i += length
            at += length
            if i == have:
                return 0 if at == size else BAD_END
            # A token, an offset and five literals must still come, and room for the shortest end after a match.
            if have - i < 8 or size - at < FREE_END:
                return BAD_END
            offset = data[i] | cython.cast(int64_t, data[i + 1]) << 8
        i += 2
        length = token & 15
        if length == 15 and not _more(data, have, cython.address(i), cython.address(length)):
            return BAD_END
        length += LEAST_MATCH
        if offset == 0 or offset > at:
            return BAD_OFFSET
        if length > size - LITERAL_END - at:
            return BAD_MATCH
        _copy_match(out, at, offset, length, size)
        at += length
    return BAD_END


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _load4(data: cython.pointer(cython.const[uint8_t])) -> uint32_t:
    word = cython.declare(uint32_t)
    memcpy(cython.address(word), data, 4)
    return word


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _load8(data: cython.pointer(cython.const[uint8_t])) -> uint64_t:
    word = cython.declare(uint64_t)
    memcpy(cython.address(word), data, 8)
    return word


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _hash(data: cython.pointer(cython.const[uint8_t]), shift: cython.int) -> uint32_t:
    """Of the next eight bytes without the last `shift` bits."""
    factor: uint64_t = 889523592379
    return cython.cast(uint32_t, ((_load8(data) << shift) * factor) >> (64 - TABLE_BITS))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _same(data: cython.pointer(cython.const[uint8_t]), a: int64_t, b: int64_t, end: int64_t) -> int64_t:
    """How many bytes at a and b agree, with b after a and not past `end`."""
    start: int64_t = b
    difference: uint64_t
    ones: uint64_t = 0x0101010101010101
    while b + 8 <= end:
        difference = _load8(data + a) ^ _load8(data + b)
        if difference != 0:
            # Below the lowest bit that differs, the top bits of those bytes that agree, summed up in the top byte.
            difference = (difference & (~difference + 1)) - 1
            return b - start + cython.cast(int64_t, (((difference >> 7) & ones) * ones) >> 56)
        a += 8
        b += 8
    while b < end and data[a] == data[b]:
        a += 1
        b += 1
    return b - start


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _put_length(out: cython.pointer(uint8_t), at: int64_t, rest: int64_t) -> int64_t:
    while rest >= 255:
        out[at] = 255
        at += 1
        rest -= 255
    out[at] = cython.cast(uint8_t, rest)
    return at + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _put_literals(
    data: cython.pointer(cython.const[uint8_t]),
    start: int64_t,
    count: int64_t,
    size: int64_t,
    low: int64_t,
    out: cython.pointer(uint8_t),
    at: int64_t,
    room: int64_t,
) -> int64_t:
    """Write the token and the literals data[start:][:count]; `low` is the length of the match less 4."""
    token: int64_t = at
    done: int64_t = 0
    at += 1
    out[token] = cython.cast(uint8_t, min(count, 15) << 4 | min(low, 15))
    if count >= 15:
        at = _put_length(out, at, count - 15)
    if start + count + 16 <= size and at + count + 16 <= room:
        while done < count:
            memcpy(out + at + done, data + start + done, 16)
            done += 16
    else:
        memcpy(out + at, data + start, count)
    return at + count


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _compress(
    data: cython.pointer(cython.const[uint8_t]),
    size: int64_t,
    out: cython.pointer(uint8_t),
    room: int64_t,
    table: cython.pointer(uint32_t),
    base: int64_t,
) -> int64_t:
    """Compress one block; returns its size.

    table[hash] is base + the last place with that hash; places of earlier blocks are below base.
    """
    anchor: int64_t = 0
    at: int64_t = 0
    i: int64_t = 0
    match: int64_t
    length: int64_t
    tries: int64_t
    slot: uint32_t
    offset: uint16_t
    # In short blocks four bytes tell a place from others well enough; in long ones it takes five.
    shift: cython.int = 32 if size <= 65536 else 24
    while True:
        # Look at every place, then, the longer nothing is found, at fewer.
        tries = 64
        match = -1
        while i <= size - FREE_END - 1:
            slot = _hash(data + i, shift)
            match = cython.cast(int64_t, table[slot]) - base
            table[slot] = cython.cast(uint32_t, base + i)
            if match >= 0 and i - match <= FARTHEST and _load4(data + match) == _load4(data + i):
                break
            match = -1
            i += tries >> 6
            tries += 1
        if match < 0:
            break
        while i > anchor and match > 0 and data[i - 1] == data[match - 1]:
            i -= 1
            match -= 1
        length = _same(data, match + LEAST_MATCH, i + LEAST_MATCH, size - LITERAL_END)
        at = _put_literals(data, anchor, i - anchor, size, length, out, at, room)
        offset = cython.cast(uint16_t, i - match)
        out[at] = cython.cast(uint8_t, offset)
        out[at + 1] = cython.cast(uint8_t, offset >> 8)
        at += 2
        if length >= 15:
            at = _put_length(out, at, length - 15)
        i += length + LEAST_MATCH
        anchor = i
        if i <= size - FREE_END - 1:
            table[_hash(data + i - 2, shift)] = cython.cast(uint32_t, base + i - 2)
    return _put_literals(data, anchor, size - anchor, size, 0, out, at, room)


def decompress_blocks(
    data: cython.const[uint8_t][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    out: uint8_t[::1],
    out_starts: cython.const[cython.longlong][::1],
    out_sizes: cython.const[cython.longlong][::1],
) -> None:
    """See the twin."""
    block: cython.Py_ssize_t
    status: int64_t = 0
    nothing: uint8_t = 0
    target: cython.pointer(uint8_t)
    check_blocks("LZ4", np.asarray(starts), np.asarray(sizes), data.shape[0])
    check_blocks("decompressed", np.asarray(out_starts), np.asarray(out_sizes), out.shape[0], like=starts.shape[0])
    with cython.nogil:
        for block in range(starts.shape[0]):
            if sizes[block] == 0:
                status = BAD_END
                break
            target = cython.address(out[out_starts[block]]) if out_sizes[block] > 0 else cython.address(nothing)
            status = _decompress(cython.address(data[starts[block]]), sizes[block], target, out_sizes[block])
            if status < 0:
                break
    if status < 0:
        raise bad_lz4(block, sizes[block], out_sizes[block])


def compress_blocks(
    data: cython.const[uint8_t][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    out: uint8_t[::1],
    out_starts: cython.longlong[::1],
    out_sizes: cython.longlong[::1],
    prefix: bool = False,
) -> int:
    """See the twin."""
    block: cython.Py_ssize_t
    at: int64_t = 0
    base: int64_t = 1
    made: int64_t
    length: uint32_t
    with_prefix: cython.bint = prefix
    nothing: uint8_t = 0
    source: cython.pointer(cython.const[uint8_t])
    table: cython.pointer(uint32_t)
    check_compression(np.asarray(starts), np.asarray(sizes), data.shape[0], out.shape[0], out_starts.shape[0], prefix)
    if out_sizes.shape[0] != out_starts.shape[0]:
        check_blocks("compressed", np.asarray(out_starts), np.asarray(out_sizes), 0)
    if starts.shape[0] == 0:
        return 0
    table = cython.cast(cython.pointer(uint32_t), calloc(1 << TABLE_BITS, 4))
    if table == cython.NULL:
        raise MemoryError
    with cython.nogil:
        for block in range(starts.shape[0]):
            source = cython.address(data[starts[block]]) if sizes[block] > 0 else cython.address(nothing)
            out_starts[block] = at
            if with_prefix:
                length = cython.cast(uint32_t, sizes[block])
                memcpy(cython.address(out[at]), cython.address(length), 4)
                at += 4
            made = _compress(source, sizes[block], cython.address(out[at]), out.shape[0] - at, table, base)
            at += made
            out_sizes[block] = at - out_starts[block]
            base += sizes[block]
        free(table)
    return at
