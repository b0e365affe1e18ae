"""JSON text to JSONB, compiled: each document is parsed to a list of nodes, whose sizes add up, and written from it."""

import cython
import numpy as np
from cython.cimports.json_text import utf8_sequence
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcmp, memcpy

from lancelet.kernels.json_numbers import number_of
from lancelet.kernels.jsonb_layout import bad_text, check_offsets
from lancelet.kernels.powers_of_ten import powers_of_ten

CUT = cython.declare(cython.int, -1)
BAD_CHARACTER = cython.declare(cython.int, -2)
BAD_NUMBER = cython.declare(cython.int, -4)
DUPLICATE = cython.declare(cython.int, -5)
TOO_DEEP = cython.declare(cython.int, -6)
BAD_UTF8 = cython.declare(cython.int, -7)
TOO_LARGE = cython.declare(cython.int, -8)
NO_MEMORY = cython.declare(cython.int, -99)
# What functions return that a Python exception goes through; only those which may take the GIL have it.
RAISED = cython.declare(cython.int, -100)
MOST_LEVELS = cython.declare(int64_t, 131072)
LARGEST = cython.declare(int64_t, 0x0FFFFFFF)
ARRAY = cython.declare(uint32_t, 0x80000000)
OBJECT = cython.declare(uint32_t, 0x40000000)
NULL = cython.declare(uint32_t, 0)
FALSE = cython.declare(uint32_t, 0x30000000)
TRUE = cython.declare(uint32_t, 0x40000000)
STRING = cython.declare(uint32_t, 0x10000000)
NUMBER = cython.declare(uint32_t, 0x20000000)
CONTAINER = cython.declare(uint32_t, 0x50000000)
Out = cython.typedef(cython.pointer(uint8_t))
Parsing = cython.typedef(cython.pointer(Parser))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def _skip(p: Parsing) -> cython.bint:
    """Pass by white space, and by its escapes, which count as such; False at the end of the document."""
    c: uint8_t
    while p.at < p.size:
        c = p.text[p.at]
        if c == 32 or c == 9 or c == 10 or c == 12 or c == 13:
            p.at += 1
            continue
        if c != 92 or p.at + 1 == p.size:
            return True
        c = p.text[p.at + 1]
        if c == 110 or c == 114 or c == 116:
            p.at += 2
        elif p.at + 3 < p.size and memcmp(p.text + p.at, b"\\x0C", 4) == 0:
            p.at += 4
        else:
            return True
    return False


@cython.cfunc
@cython.exceptval(-100, check=False)
@cython.with_gil
def _ask_python(p: Parsing, start: int64_t, node: cython.pointer(Node)) -> cython.int:
    """Read a number of which there are few."""
    found = number_of(p.text[start : p.at])
    if found is None:
        return BAD_NUMBER
    node.entry, node.info, node.bits = found
    return 0


@cython.cfunc
@cython.exceptval(-100, check=False)
@cython.nogil
def _take_number(p: Parsing) -> cython.int:
    node = cython.declare(Node)
    node.entry = node.info = node.bits = 0
    start: int64_t = p.at
    status: cython.int = _number(p, cython.address(node))
    if status == 1:
        status = _ask_python(p, start, cython.address(node))
    return _add(p, node.entry, node.info, node.bits) if status == 0 else status


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _take_string(p: Parsing, quote: uint8_t) -> cython.int:
    """Take in a string, p.at being behind the quote."""
    ones: uint64_t = 0x0101010101010101
    word = cython.declare(uint64_t)
    first: int64_t = p.resolved_used
    start: int64_t = p.at
    run: int64_t = p.at
    made: cython.int
    c: uint8_t
    while True:
        while p.at + 8 <= p.size:
            # Eight bytes none of which is a quote, a backslash or outside of ASCII.
            memcpy(cython.address(word), p.text + p.at, 8)
            if (word | ((word ^ ones * quote) - ones) | ((word ^ ones * 92) - ones)) & (ones << 7):
                break
            p.at += 8
        if p.at == p.size:
            return CUT
        c = p.text[p.at]
        if c == quote:
            break
        if c == 92:
            memcpy(p.resolved + p.resolved_used, p.text + run, p.at - run)
            p.resolved_used += p.at - run
            p.at += 1
            made = _escape(p, p.resolved + p.resolved_used)
            if made < 0:
                return made
            p.resolved_used += made
            run = p.at
        elif c >= 128:
            made = utf8_sequence(p.text + p.at, p.size - p.at)
            if made == 0:
                return BAD_UTF8
            p.at += made
        else:
            p.at += 1
    p.at += 1
    if run == start:
        return _add(p, STRING | cython.cast(uint32_t, p.at - 1 - start), 0, start)
    memcpy(p.resolved + p.resolved_used, p.text + run, p.at - 1 - run)
    p.resolved_used += p.at - 1 - run
    return _add(p, STRING | cython.cast(uint32_t, p.resolved_used - first), 0, cython.cast(uint64_t, 1) << 32 | first)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _take_key(p: Parsing) -> cython.int:
    """Take in a key, which needs no quotes if it looks like a name, and the colon behind it."""
    f: cython.pointer(Frame) = p.frames + p.depth - 1
    start: int64_t = p.at
    key: int32_t = cython.cast(int32_t, p.used)
    status: cython.int = 0
    c: uint8_t = p.text[p.at] if p.at < p.size else 0
    if c == 34 or c == 39:
        p.at += 1
        status = _take_string(p, c)
    else:
        while p.at < p.size:
            c = p.text[p.at]
            if c >= 128:
                status = utf8_sequence(p.text + p.at, p.size - p.at)
                if status == 0:
                    return BAD_UTF8
                p.at += status
            elif 97 <= c | 32 <= 122 or c == 95 or c == 36 or (48 <= c <= 57 and p.at > start):
                p.at += 1
            else:
                break
        if p.at == p.size:
            return CUT
        if p.at == start:
            return BAD_CHARACTER
        status = _add(p, STRING | cython.cast(uint32_t, p.at - start), 0, start)
    if status < 0:
        return status
    f.size += 4 + (p.nodes[key].entry & LARGEST)
    f.disorder |= f.count > 0 and _compare(p, f.key, key) >= 0
    f.key = key
    if not _skip(p):
        return CUT
    if p.text[p.at] != 58:
        return BAD_CHARACTER
    p.at += 1
    return 0 if _skip(p) else CUT


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _put_in_order(p: Parsing, f: cython.pointer(Frame)) -> cython.int:
    """Sort the keys of an object; refuse it if one occurs twice."""
    keys: cython.pointer(Key)
    i: int64_t
    node: int32_t = f.node + 1
    needed: int64_t = p.sorted_used + f.count
    if needed > p.sorted_room:
        keys = cython.cast(cython.pointer(Key), realloc(p.sorted, 2 * needed * cython.sizeof(Key)))
        if keys == cython.NULL:
            return NO_MEMORY
        p.sorted, p.sorted_room = keys, 2 * needed
    keys = p.sorted + p.sorted_used
    for i in range(f.count):
        _set_key(p, keys + i, node)
        node = _behind(p, node + 1)
    if f.count <= 16:
        _insertion_sort(p, keys, f.count)
    else:
        _heap_sort(p, keys, f.count)
    for i in range(1, f.count):
        if keys[i - 1].prefix == keys[i].prefix and _compare(p, keys[i - 1].node, keys[i].node) == 0:
            return DUPLICATE
    p.nodes[f.node].bits = cython.cast(uint64_t, p.sorted_used + 1) << 32
    p.sorted_used = needed
    return 0


@cython.cfunc
@cython.exceptval(-100, check=False)
@cython.nogil
def _take_value(p: Parsing) -> cython.int:
    """Take in a scalar, or begin a container: 1 for that."""
    f: cython.pointer(Frame)
    c: uint8_t = p.text[p.at]
    status: cython.int
    if c == 34 or c == 39:
        p.at += 1
        return _take_string(p, c)
    if c == 45 or c == 43 or c == 46 or 48 <= c <= 57:
        return _take_number(p)
    if c == 91 or c == 123:
        if p.depth == MOST_LEVELS:
            return TOO_DEEP
        f = p.frames + p.depth
        f.node, f.count, f.size, f.disorder = cython.cast(int32_t, p.used), 0, 4, False
        p.depth += 1
        p.at += 1
        status = _add(p, CONTAINER, ARRAY if c == 91 else OBJECT, 0)
        return 1 if status == 0 else status
    c |= 32
    if c == 110:
        if p.at + 1 < p.size and p.text[p.at + 1] | 32 == 97:
            status = _literal(p, b"nan")
            return status if status < 0 else _add(p, NUMBER | 1, 0x10, 0)
        status = _literal(p, b"null")
        return status if status < 0 else _add(p, NULL, 0, 0)
    if c == 105:
        status = _literal(p, b"infinity")
        return status if status < 0 else _add(p, NUMBER | 1, 0x20, 0)
    if c == 116 or c == 102:
        status = _literal(p, b"true" if c == 116 else b"false")
        return status if status < 0 else _add(p, TRUE if c == 116 else FALSE, 0, 0)
    return BAD_CHARACTER


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _close(p: Parsing, f: cython.pointer(Frame)) -> cython.int:
    """End a container."""
    status: cython.int = _put_in_order(p, f) if f.disorder else 0
    p.nodes[f.node].info |= cython.cast(uint32_t, f.count)
    p.nodes[f.node].bits |= cython.cast(uint64_t, p.used)
    p.depth -= 1
    if p.depth == 0:
        p.total = f.size
    elif f.size > LARGEST:
        return TOO_LARGE
    else:
        p.nodes[f.node].entry |= cython.cast(uint32_t, f.size)
        p.frames[p.depth - 1].size += 4 + f.size
    return status


@cython.cfunc
@cython.exceptval(-100, check=False)
@cython.nogil
def _parse(p: Parsing) -> cython.int:
    """Parse the document; nothing at all is null."""
    f: cython.pointer(Frame)
    status: cython.int
    c: uint8_t
    p.at = p.depth = p.used = p.sorted_used = p.resolved_used = 0
    if p.size > LARGEST:
        return TOO_LARGE
    status = _take_value(p) if _skip(p) else _add(p, NULL, 0, 0)
    p.total = 8 + (p.nodes[0].entry & LARGEST)
    while p.depth > 0 and status >= 0:
        f = p.frames + p.depth - 1
        if not _skip(p):
            return CUT
        c = p.text[p.at]
        if c == (93 if p.nodes[f.node].info >> 31 else 125):
            status = _close(p, f)
            p.at += status == 0
            continue
        if f.count > 0:
            if c != 44:
                return BAD_CHARACTER
            p.at += 1
            _skip(p)
        if p.nodes[f.node].info >> 31 == 0:
            status = _take_key(p)
            if status < 0:
                return status
        elif p.at == p.size:
            return CUT
        f.count += 1
        c = p.text[p.at]
        # In an array, no value before a comma or at the end is null.
        if p.nodes[f.node].info >> 31 and (c == 44 or c == 93):
            status = _add(p, NULL, 0, 0)
        else:
            status = _take_value(p)
        if status == 0:
            f.size += 4 + (p.nodes[p.used - 1].entry & LARGEST)
    if status >= 0 and _skip(p):
        return BAD_CHARACTER
    return min(status, 0)


@cython.cfunc
@cython.exceptval(-100, check=False)
@cython.nogil
def _documents(
    p: Parsing,
    offsets: cython.const[cython.longlong][::1],
    valid: cython.const[uint8_t][::1],
    row: cython.pointer(cython.Py_ssize_t),
    text: cython.pointer(cython.const[uint8_t]),
    out_offsets: cython.longlong[::1],
    out: uint8_t[::1],
) -> cython.int:
    """Encode documents from `row` on until the room does not do or one is wrong."""
    at: int64_t = out_offsets[row[0]]
    status: cython.int
    while row[0] < offsets.shape[0] - 1:
        if valid[row[0]]:
            p.text, p.size = text + offsets[row[0]], offsets[row[0] + 1] - offsets[row[0]]
            status = _parse(p)
            if status < 0:
                return status
            if p.total > out.shape[0] - at:
                break
            _put(p, cython.address(out[0]), cython.address(out[0]) + at)
            at += p.total
        row[0] += 1
        out_offsets[row[0]] = at
    return 0


def encode(
    offsets: cython.const[cython.longlong][::1],
    text: cython.const[uint8_t][::1],
    validity: cython.const[uint8_t][::1],
) -> tuple:
    """See the twin."""
    p = cython.declare(Parser)
    count: cython.Py_ssize_t = offsets.shape[0] - 1
    row: cython.Py_ssize_t = 0
    nothing: uint8_t = 0
    status: cython.int
    check_offsets(np.asarray(offsets), text.shape[0], validity.shape[0])
    powers: cython.const[uint64_t][:, ::1] = powers_of_ten(round_up=False)
    tens: cython.const[cython.double][::1] = np.array([float(10**exponent) for exponent in range(23)])
    source: cython.pointer(cython.const[uint8_t]) = (
        cython.address(text[0]) if text.shape[0] else cython.address(nothing)
    )
    result_offsets = np.zeros(count + 1, np.int64)
    out_offsets: cython.longlong[::1] = result_offsets
    total: int64_t = offsets[count] - offsets[0]
    result = np.empty(total + total // 4 + 16 * count + 16, np.uint8)
    out: uint8_t[::1] = result
    p.powers, p.tens = cython.address(powers[0, 0]), cython.address(tens[0])
    p.room, p.sorted_room, p.sorted = 256, 0, cython.NULL
    p.nodes = cython.cast(cython.pointer(Node), malloc(p.room * cython.sizeof(Node)))
    p.frames = cython.cast(cython.pointer(Frame), malloc(MOST_LEVELS * cython.sizeof(Frame)))
    p.resolved = cython.cast(Out, malloc(int(np.diff(offsets).max(initial=0)) + 8))
    try:
        if p.nodes == cython.NULL or p.frames == cython.NULL or p.resolved == cython.NULL:
            raise MemoryError
        while True:
            with cython.nogil:
                status = _documents(cython.address(p), offsets, validity, cython.address(row), source, out_offsets, out)
            if status == NO_MEMORY:
                raise MemoryError
            if status < 0:
                raise bad_text(status, row, p.at)
            if row == count:
                return result_offsets, result[: out_offsets[count]]
            grown = np.empty(2 * out.shape[0] + p.total, np.uint8)
            grown[: out_offsets[row]] = result[: out_offsets[row]]
            result = out = grown
    finally:
        free(p.nodes)
        free(p.frames)
        free(p.sorted)
        free(p.resolved)
