"""FSST encoding, compiled: learning a symbol table from a sample, and writing strings in its codes."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.symbol_candidates import Candidate, Candidates, count, forget, rank, reserve

from lancelet.kernels.symbol_table import (
    EARLY_ROUNDS,
    IDLE_ROUNDS,
    ROUNDS,
    SINGLE_WEIGHT,
    check_encode,
    early_step,
    finish_offsets,
    least_count,
    plain_table,
    sample,
    symbols_of,
    write_table,
)

SETS = cython.declare(cython.int, 1024)
MOST_SYMBOLS = cython.declare(cython.int, 255)
_EARLY_ROUNDS = cython.declare(cython.int, EARLY_ROUNDS)
_ROUNDS = cython.declare(cython.int, ROUNDS)
_IDLE_ROUNDS = cython.declare(cython.int, IDLE_ROUNDS)
_SINGLE_WEIGHT = cython.declare(uint32_t, SINGLE_WEIGHT)

# Finds the symbol that a string goes on with, given its next eight bytes as a little-endian word.
#
# shorts[first two bytes] tells the symbol of two bytes, else of one, else the escape. Longer symbols sit in 1024 sets
# of two, told by the hash of their first three bytes, the longer one first: keys are symbols moved to the top of the
# word, shifts say by how much. A free entry has a key that no word moved by its shift can have.
# A result is code | length << 12; the code of an escape is 511: its low byte is what is written, bit 8 tells it apart.
Index = cython.struct(
    shorts=uint16_t[65536],
    keys=uint64_t[2048],
    shifts=uint8_t[2048],
    results=uint16_t[2048],
    # The terminator eight times over. No symbol of two bytes or more holds it, so a word filled up with it past the end
    # of a string never lets a symbol reach past that end.
    filler=uint64_t,
)
Symbols = cython.struct(values=uint64_t[256], lengths=uint8_t[256], count=cython.int)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _set_of(word: uint64_t) -> cython.int:
    prefix: uint32_t = cython.cast(uint32_t, word & 0xFFFFFF)
    factor: uint32_t = 2654435761
    return cython.cast(cython.int, (prefix * factor) >> 22)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _match(index: cython.pointer(Index), word: uint64_t) -> uint32_t:
    entry: cython.int = 2 * _set_of(word)
    result: uint32_t = index.shorts[word & 0xFFFF]
    if (word << index.shifts[entry + 1]) == index.keys[entry + 1]:
        result = index.results[entry + 1]
    if (word << index.shifts[entry]) == index.keys[entry]:
        result = index.results[entry]
    return result


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _build(index: cython.pointer(Index), symbols: cython.pointer(Symbols), terminator: uint8_t) -> cython.void:
    """Index the symbols; those that cannot be found for lack of room, or hold the terminator, are left out."""
    i: cython.int
    k: cython.int
    length: cython.int
    entry: cython.int
    row = cython.declare(uint16_t[256])
    ones: uint64_t = 0x0101010101010101
    index.filler = ones * terminator
    for i in range(256):
        row[i] = 511 | 1 << 12
    for i in range(symbols.count):
        if symbols.lengths[i] == 1:
            row[symbols.values[i]] = cython.cast(uint16_t, i | 1 << 12)
    for i in range(256):
        memcpy(cython.address(index.shorts[256 * i]), cython.address(row[0]), 512)
    for i in range(2 * SETS):
        index.keys[i] = 1
        index.shifts[i] = 56
        index.results[i] = 0
    for i in range(symbols.count):
        length = symbols.lengths[i]
        if length == 1 or _holds(symbols.values[i], length, terminator):
            continue
        if length == 2:
            index.shorts[symbols.values[i]] = cython.cast(uint16_t, i | 2 << 12)
            continue
        entry = 2 * _set_of(symbols.values[i])
        if index.results[entry + 1] != 0:
            continue
        k = entry
        if index.results[entry] != 0:
            k = entry + 1
            if index.results[entry] >> 12 < length:
                index.keys[k], index.shifts[k], index.results[k] = (
                    index.keys[entry],
                    index.shifts[entry],
                    index.results[entry],
                )
                k = entry
        index.shifts[k] = cython.cast(uint8_t, 64 - 8 * length)
        index.keys[k] = symbols.values[i] << index.shifts[k]
        index.results[k] = cython.cast(uint16_t, i | length << 12)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _holds(value: uint64_t, length: cython.int, byte: uint8_t) -> cython.bint:
    k: cython.int
    found: cython.bint = False
    for k in range(length):
        found = found or ((value >> (8 * k)) & 255) == byte
    return found


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _tail(
    data: cython.pointer(cython.const[uint8_t]), position: int64_t, end: int64_t, size: int64_t, filler: uint64_t
) -> uint64_t:
    """The next eight bytes, those past `end` taken from the filler; reads nothing past `size`."""
    word: uint64_t = 0
    mask: uint64_t = ~word
    left: int64_t = end - position
    k: int64_t
    if left < 8:
        mask = mask >> (64 - 8 * left)
    if position + 8 <= size:
        memcpy(cython.address(word), data + position, 8)
    else:
        for k in range(left):
            word |= cython.cast(uint64_t, data[position + k]) << (8 * k)
    return (word & mask) | (filler & ~mask)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _encode_string(
    index: cython.pointer(Index),
    data: cython.pointer(cython.const[uint8_t]),
    position: int64_t,
    end: int64_t,
    size: int64_t,
    out: cython.pointer(uint8_t),
    at: int64_t,
) -> int64_t:
    """Write one string's codes to out[at:], two bytes at most for each of its own; returns where they end."""
    word = cython.declare(uint64_t)
    found: uint32_t
    # The byte after an escape is always written; the next code overwrites it where there was none.
    while position + 8 <= end:
        memcpy(cython.address(word), data + position, 8)
        found = _match(index, word)
        out[at + 1] = cython.cast(uint8_t, word)
        out[at] = cython.cast(uint8_t, found)
        position += found >> 12
        at += 1 + ((found >> 8) & 1)
    while position < end:
        word = _tail(data, position, end, size, index.filler)
        found = _match(index, word)
        out[at + 1] = cython.cast(uint8_t, word)
        out[at] = cython.cast(uint8_t, found)
        position += found >> 12
        at += 1 + ((found >> 8) & 1)
    return at


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _survey(
    index: cython.pointer(Index),
    symbols: cython.pointer(Symbols),
    data: cython.pointer(cython.const[uint8_t]),
    ends: cython.pointer(cython.const[cython.longlong]),
    pieces: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    terminator: uint8_t,
    c: cython.pointer(Candidates),
) -> int64_t:
    """Count the symbols used in every ``step``-th piece, and the joins of each with its successor.

    Returns the size of those pieces, encoded.
    """
    piece: cython.Py_ssize_t
    position: int64_t
    made: int64_t = 0
    word = cython.declare(uint64_t)
    value: uint64_t
    before: uint64_t = 0
    length: cython.int
    before_length: cython.int
    found: uint32_t
    code: cython.int
    forget(c)
    piece = 0
    while piece < pieces:
        position = ends[piece - 1] if piece else 0
        before_length = 0
        while position < ends[piece]:
            word = _tail(data, position, ends[piece], ends[pieces - 1], index.filler)
            found = _match(index, word)
            length = cython.cast(cython.int, found >> 12)
            value = word & (~cython.cast(uint64_t, 0) >> (64 - 8 * length))
            made += 1 + ((found >> 8) & 1)
            c.codes[512 + value if found & 256 else found & 255] += 1
            if 0 < before_length < 8:
                _join(c, before, before_length, value, length, terminator)
                if length > 1:
                    _join(c, before, before_length, value & 255, 1, terminator)
            before, before_length = value, length
            position += length
        piece += step
    for code in range(symbols.count):
        if c.codes[code]:
            length = symbols.lengths[code]
            count(c, symbols.values[code], length, c.codes[code] * (_SINGLE_WEIGHT if length == 1 else 1))
    for code in range(256):
        if c.codes[512 + code]:
            count(c, code, 1, c.codes[512 + code] * _SINGLE_WEIGHT)
    return made


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _join(
    c: cython.pointer(Candidates),
    left: uint64_t,
    left_length: cython.int,
    right: uint64_t,
    right_length: cython.int,
    terminator: uint8_t,
) -> cython.void:
    length: cython.int = min(8, left_length + right_length)
    value: uint64_t = left | right << (8 * left_length)
    if not _holds(value, length, terminator):
        count(c, value, length, 1)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _choose(c: cython.pointer(Candidates), symbols: cython.pointer(Symbols), least: uint32_t) -> cython.void:
    """Take the best candidates, passing over those whose set in the index is full."""
    i: cython.int
    kept: cython.int = rank(c, least)
    best: cython.pointer(Candidate)
    taken = cython.declare(uint8_t[1024])
    memset(cython.address(taken[0]), 0, SETS)
    symbols.count = 0
    for i in range(kept):
        best = cython.address(c.slots[c.ranked[i]])
        if symbols.count == MOST_SYMBOLS:
            break
        if best.length > 2:
            if taken[_set_of(best.value)] == 2:
                continue
            taken[_set_of(best.value)] += 1
        symbols.values[symbols.count] = best.value
        symbols.lengths[symbols.count] = cython.cast(uint8_t, best.length)
        symbols.count += 1


def train(data: cython.const[uint8_t][::1], offsets: object) -> object:
    """See the twin."""
    buffer, piece_ends, stop = sample(np.asarray(data), offsets)
    if piece_ends.shape[0] == 0:
        return plain_table()
    view: cython.const[uint8_t][::1] = buffer
    ends: cython.const[cython.longlong][::1] = piece_ends
    terminator: uint8_t = stop
    symbols = cython.declare(Symbols)
    best = cython.declare(Symbols)
    least: int64_t = buffer.shape[0]
    usual: uint32_t = least_count(least)
    size: int64_t = 0
    turn: cython.int
    piece: cython.Py_ssize_t
    step: cython.Py_ssize_t = early_step(buffer.shape[0])
    idle: cython.int = 0
    for piece in range(0, ends.shape[0], step):
        size += ends[piece] - (ends[piece - 1] if piece else 0)
    seldom: uint32_t = least_count(size)
    memory: uint8_t[::1] = np.empty(cython.sizeof(Index), np.uint8)
    more: uint8_t[::1] = np.empty(cython.sizeof(Candidates), np.uint8)
    index: cython.pointer(Index) = cython.cast(cython.pointer(Index), cython.address(memory[0]))
    c: cython.pointer(Candidates) = cython.cast(cython.pointer(Candidates), cython.address(more[0]))
    pointer: cython.pointer(Symbols) = cython.address(symbols)
    with cython.nogil:
        symbols.count = best.count = 0
        reserve(c, least)
        for turn in range(_EARLY_ROUNDS + _ROUNDS):
            if turn == _EARLY_ROUNDS:
                seldom, step = usual, 1
            _build(index, pointer, terminator)
            size = _survey(
                index, pointer, cython.address(view[0]), cython.address(ends[0]), ends.shape[0], step, terminator, c
            )
            if step == 1:
                idle = 0 if size < least - (least >> 10) else idle + 1
                if size < least:
                    least, best = size, symbols
                if idle == _IDLE_ROUNDS:
                    break
            _choose(c, pointer, seldom)
    if best.count == 0:
        return plain_table()
    values = np.array([best.values[i] for i in range(best.count)], np.uint64)
    lengths = np.array([best.lengths[i] for i in range(best.count)], np.uint8)
    return write_table(values, lengths, stop)


def encode(
    table: cython.const[uint8_t][::1],
    data: cython.const[uint8_t][::1],
    offsets: object,
    out_offsets: object,
    out: uint8_t[::1],
) -> int:
    """See the twin."""
    values, lengths, stop, plain = symbols_of(bytes(table))
    as_is: cython.bint = plain
    inputs: cython.const[cython.longlong][::1] = np.ascontiguousarray(offsets, np.int64)
    count: cython.Py_ssize_t = inputs.shape[0] - 1
    wide: cython.longlong[::1] = out_offsets if out_offsets.dtype == np.int64 else np.empty(count + 1, np.int64)
    size: int64_t = data.shape[0]
    at: int64_t = 0
    i: cython.Py_ssize_t
    symbols = cython.declare(Symbols)
    nothing = cython.declare(uint8_t[8])
    source: cython.pointer(cython.const[uint8_t]) = cython.address(nothing[0])
    target: cython.pointer(uint8_t) = cython.address(nothing[0])
    terminator: uint8_t = stop
    check_encode(inputs, size, out_offsets, out.shape[0], plain)
    if size > 0:
        source = cython.address(data[0])
    if out.shape[0] > 0:
        target = cython.address(out[0])
    symbols.count = len(values)
    for i in range(symbols.count):
        symbols.values[i] = values[i]
        symbols.lengths[i] = lengths[i]
    memory: uint8_t[::1] = np.empty(cython.sizeof(Index), np.uint8)
    index: cython.pointer(Index) = cython.cast(cython.pointer(Index), cython.address(memory[0]))
    with cython.nogil:
        _build(index, cython.address(symbols), terminator)
        wide[0] = 0
        for i in range(count):
            if as_is:
                memcpy(target + at, source + inputs[i], inputs[i + 1] - inputs[i])
                at += inputs[i + 1] - inputs[i]
            else:
                at = _encode_string(index, source, inputs[i], inputs[i + 1], size, target, at)
            wide[i + 1] = at
    finish_offsets(np.asarray(wide), out_offsets)
    return at
