# For jsonb_encode.py: the parser's state, numbers, escapes, the order of keys, and writing what was parsed.

from json_text cimport hexadecimal_digit, nearest_number, put_utf8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcmp, memcpy


# A part of a document. entry is the JSONB entry. info: a number's class, a container's header. bits: a number's value, a
# string's place, for a container the node behind it and, from bit 32 on, one more than where its keys stand in
# Parser.sorted, 0 if they are in order as they come. An object's items are pairs of nodes: key, value.
cdef struct Node:
    uint32_t entry
    uint32_t info
    uint64_t bits

# A container: while it is parsed, and, with `node` its next item and `place` the next entry's, while it is written.
cdef struct Frame:
    int32_t node
    int32_t key
    int64_t count
    int64_t size
    int64_t place
    bint disorder

# A key that is to be sorted: its first eight bytes as a number, filled up with zeros, and its node.
cdef struct Key:
    uint64_t prefix
    int32_t node

cdef struct Parser:
    const uint8_t* text
    int64_t size
    int64_t at
    Node* nodes
    int64_t used
    int64_t room
    Frame* frames
    int64_t depth
    Key* sorted
    int64_t sorted_used
    int64_t sorted_room
    # Strings whose escapes are resolved; bit 32 of a string's place says that it is here and not in the text.
    uint8_t* resolved
    int64_t resolved_used
    # From 10**-342 on, in 128 bits; from 1 on, in floating point.
    const uint64_t* powers
    const double* tens
    # Bytes of the document that was parsed last.
    int64_t total


cdef inline int _add(Parser* p, uint32_t entry, uint32_t info, uint64_t bits) noexcept nogil:
    """Add a node."""
    if p.used == p.room:
        grown = realloc(p.nodes, 2 * p.room * sizeof(Node))
        if grown == NULL:
            return -99  # NO_MEMORY
        p.nodes = <Node*> grown
        p.room *= 2
    p.nodes[p.used].entry = entry
    p.nodes[p.used].info = info
    p.nodes[p.used].bits = bits
    p.used += 1
    return 0


cdef inline int _literal(Parser* p, const char* word) noexcept nogil:
    """Take in a word, whatever its case."""
    cdef int i = 0
    while word[i]:
        if p.at == p.size:
            return -1  # CUT
        if p.text[p.at] | 32 != <uint8_t> word[i]:
            return -2  # BAD_CHARACTER
        p.at += 1
        i += 1
    return 0


cdef inline int _set(Node* node, uint32_t length, uint32_t kind, uint64_t bits) noexcept nogil:
    node.entry = 0x20000000 | length
    node.info = kind
    node.bits = bits
    return 0


cdef inline int _whole(Node* node, uint64_t value, bint negative) noexcept nogil:
    """A number of at most 64 bits, a negative one of at most 2**63."""
    cdef uint64_t reach = value * 2 - 1 if negative else value
    cdef uint32_t width = 1 if reach >> 8 == 0 else 2 if reach >> 16 == 0 else 4 if reach >> 32 == 0 else 8
    if value == 0:
        return _set(node, 1, 0, 0)
    if negative:
        return _set(node, width + 1, 0x40, 0 - value)
    return _set(node, width + 1, 0x50, value)


cdef inline int _number(Parser* p, Node* node) noexcept nogil:
    """Take in a number, which may have a plus sign, zeros in front, or nothing on one side of its point.

    Returns 1 for what is left to the caller: hexadecimal digits, behind which p.at is then, and numbers that take more
    than 128 bits to be rounded, such as those of 20 digits.
    """
    cdef bint negative = p.text[p.at] == b"-", point = False, inexact = False, real
    cdef uint64_t value = 0, bits = 0
    cdef double real_value
    cdef int64_t exponent = 0, given = 0, digits = 0
    cdef int status
    cdef uint8_t c = 0
    if negative or p.text[p.at] == b"+":
        p.at += 1
    while p.at < p.size:
        c = p.text[p.at]
        if 48 <= c <= 57:
            c -= 48
            # 2**64 - 1 is 18446744073709551615.
            if value > 1844674407370955161ULL or (value == 1844674407370955161ULL and c > 5):
                inexact = True
            if not inexact:
                value = value * 10 + c
            digits += 1
            exponent -= point
        elif c == b"." and not point:
            point = True
        else:
            break
        p.at += 1
    c = p.text[p.at] | 32 if p.at < p.size else 0
    if digits == 0 and not point and c == b"i":
        status = _literal(p, "infinity")
        return status if status < 0 else _set(node, 1, 0x30 if negative else 0x20, 0)
    if digits == 0 and not point and c == b"n" and not negative:
        status = _literal(p, "nan")
        return status if status < 0 else _set(node, 1, 0x10, 0)
    if digits == 1 and not point and value == 0 and c == b"x":
        p.at += 1
        while p.at < p.size and (p.text[p.at] == b"." or hexadecimal_digit(p.text[p.at]) >= 0):
            p.at += 1
        return 1
    if digits == 0:
        return -4  # BAD_NUMBER
    real = exponent != 0 or c == b"e"
    if c == b"e":
        p.at += 1
        c = p.text[p.at] if p.at < p.size else 0
        p.at += c == b"+" or c == b"-"
        digits = 0
        while p.at < p.size and 48 <= p.text[p.at] <= 57:
            given = min(given * 10 + p.text[p.at] - 48, 100000)
            digits += 1
            p.at += 1
        if digits == 0:
            return -4  # BAD_NUMBER
        exponent += -given if c == b"-" else given
    if not real and not inexact and (not negative or value <= <uint64_t> 1 << 63):
        return _whole(node, value, negative)
    if not inexact and value >> 53 == 0 and -22 <= exponent <= 22:
        # Both are exact, and their product or quotient is rounded once.
        real_value = <double> value * p.tens[exponent] if exponent > 0 else <double> value / p.tens[-exponent]
        memcpy(&bits, &real_value, 8)
    elif inexact or not nearest_number(value, exponent, p.powers, &bits):
        return 1
    return _set(node, 9, 0x60, bits | <uint64_t> negative << 63)


cdef inline int _unicode(Parser* p, uint32_t* point) noexcept nogil:
    """Take in four digits, which may stand in braces; p.at is behind the u."""
    cdef bint braces = p.at < p.size and p.text[p.at] == b"{"
    cdef int i, digit
    p.at += braces
    point[0] = 0
    for i in range(4 + braces):
        if p.at == p.size:
            return -1  # CUT
        if i == 4:
            digit = 0 if p.text[p.at] == b"}" else -1
        else:
            digit = hexadecimal_digit(p.text[p.at])
            point[0] = point[0] << 4 | <uint32_t> digit
        if digit < 0:
            return -3  # BAD_ESCAPE
        p.at += 1
    return 0


cdef inline int _escape(Parser* p, uint8_t* out) noexcept nogil:
    """Resolve an escape, p.at being behind the backslash; returns the bytes made, never more than it takes itself.

    Halves of a pair that stand alone cannot be said in UTF-8: their escape stays as text, without braces.
    """
    cdef uint32_t[2] points
    cdef int64_t place
    cdef int half, status
    cdef uint8_t c
    if p.at == p.size:
        return -1  # CUT
    c = p.text[p.at]
    if c != b"u":
        if c == b"b":
            c = 8
        elif c == b"f":
            c = 12
        elif c == b"n":
            c = 10
        elif c == b"r":
            c = 13
        elif c == b"t":
            c = 9
        elif c != 34 and c != 47 and c != 92:
            return -3  # BAD_ESCAPE
        p.at += 1
        out[0] = c
        return 1
    for half in range(2):
        p.at += 1
        place = p.at + (p.at < p.size and p.text[p.at] == b"{")
        status = _unicode(p, &points[half])
        if status < 0:
            return status
        memcpy(out + 6 * half, b"\\u", 2)
        memcpy(out + 6 * half + 2, p.text + place, 4)
        if half == 0:
            if points[0] >> 11 != 0x1B:
                return <int> (put_utf8(out, points[0]) - out)
            if points[0] >= 0xDC00 or p.at + 1 >= p.size or p.text[p.at] != 92 or p.text[p.at + 1] != b"u":
                return 6
            p.at += 1
    if points[1] >> 10 != 0x37:
        return 12
    return <int> (put_utf8(out, 0x10000 + ((points[0] & 0x3FF) << 10 | (points[1] & 0x3FF))) - out)


cdef inline const uint8_t* _bytes_of(Parser* p, Node* node) noexcept nogil:
    if node.bits >> 32:
        return p.resolved + <uint32_t> node.bits
    return p.text + node.bits


cdef inline int64_t _compare(Parser* p, int32_t a, int32_t b) noexcept nogil:
    """The order of two keys: that of their bytes."""
    cdef int64_t size = p.nodes[a].entry & 0x0FFFFFFF, other = p.nodes[b].entry & 0x0FFFFFFF
    cdef const uint8_t* left = _bytes_of(p, p.nodes + a)
    cdef const uint8_t* right = _bytes_of(p, p.nodes + b)
    cdef int order
    if size > 0 and other > 0 and left[0] != right[0]:
        return <int64_t> left[0] - right[0]
    order = memcmp(left, right, min(size, other))
    return order if order else size - other


cdef inline bint _precedes(Parser* p, Key a, Key b) noexcept nogil:
    return a.prefix < b.prefix or (a.prefix == b.prefix and _compare(p, a.node, b.node) < 0)


cdef inline void _set_key(Parser* p, Key* key, int32_t node) noexcept nogil:
    cdef const uint8_t* data = _bytes_of(p, p.nodes + node)
    cdef int size = min(p.nodes[node].entry & 0x0FFFFFFF, 8), i
    key.node = node
    key.prefix = 0
    for i in range(size):
        key.prefix |= <uint64_t> data[i] << (56 - 8 * i)


cdef inline void _insertion_sort(Parser* p, Key* keys, int64_t count) noexcept nogil:
    cdef int64_t i, at
    cdef Key key
    for i in range(1, count):
        key = keys[i]
        at = i
        while at > 0 and _precedes(p, key, keys[at - 1]):
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key


cdef inline void _heap_sort(Parser* p, Key* keys, int64_t count) noexcept nogil:
    """The largest key comes first, and goes to the end."""
    cdef int64_t first = count // 2, end = count, parent, child
    cdef Key key
    while True:
        if first > 0:
            first -= 1
        else:
            end -= 1
            if end < 1:
                return
            key = keys[0]
            keys[0] = keys[end]
            keys[end] = key
        parent = first
        key = keys[first]
        while True:
            child = 2 * parent + 1
            if child + 1 < end and _precedes(p, keys[child], keys[child + 1]):
                child += 1
            if child >= end or not _precedes(p, key, keys[child]):
                break
            keys[parent] = keys[child]
            parent = child
        keys[parent] = key


cdef inline int32_t _behind(Parser* p, int32_t node) noexcept nogil:
    """The node that follows a value and all that is in it."""
    if p.nodes[node].entry >> 28 == 5:
        return <int32_t> <uint32_t> p.nodes[node].bits
    return node + 1


cdef inline void _put_word(uint8_t* out, uint32_t word) noexcept nogil:
    out[0] = <uint8_t> (word >> 24)
    out[1] = <uint8_t> (word >> 16)
    out[2] = <uint8_t> (word >> 8)
    out[3] = <uint8_t> word


cdef inline uint8_t* _put_scalar(Parser* p, Node* node, uint8_t* out) noexcept nogil:
    """Write the payload of a string or number, if there is any."""
    cdef int64_t size = node.entry & 0x0FFFFFFF, i
    if node.entry >> 28 == 1:
        memcpy(out, _bytes_of(p, node), size)
    elif size == 9:
        out[0] = <uint8_t> node.info
        _put_word(out + 1, <uint32_t> (node.bits >> 32))
        _put_word(out + 5, <uint32_t> node.bits)
    elif size > 0:
        out[0] = <uint8_t> node.info
        for i in range(1, size):
            out[i] = <uint8_t> (node.bits >> (8 * (size - 1 - i)))
    return out + size


cdef inline uint8_t* _put_container(Parser* p, int32_t node, uint8_t* base, uint8_t* out) noexcept nogil:
    """Begin to write a container: its header, and an object's keys."""
    cdef Frame* f = p.frames + p.depth
    cdef uint8_t* entries = out + 4
    cdef int64_t order = p.nodes[node].bits >> 32, i
    cdef bint is_object = p.nodes[node].info >> 31 == 0
    p.depth += 1
    f.count = p.nodes[node].info & 0x1FFFFFFF
    f.size = is_object
    f.disorder = order > 0
    f.key = <int32_t> (order - 1)
    node += 1
    f.node = node
    _put_word(out, p.nodes[node - 1].info)
    out = entries + 4 * f.count
    if is_object:
        out += 4 * f.count
        for i in range(f.count):
            if order:
                node = p.sorted[order - 1 + i].node
            _put_word(entries, p.nodes[node].entry)
            entries += 4
            out = _put_scalar(p, p.nodes + node, out)
            node = _behind(p, node + 1)
    f.place = entries - base
    return out


cdef inline uint8_t* _put(Parser* p, uint8_t* base, uint8_t* out) noexcept nogil:
    """Write the document that was parsed."""
    cdef Frame* f
    cdef int32_t node
    if p.nodes[0].entry >> 28 != 5:
        _put_word(out, 0x20000000)
        _put_word(out + 4, p.nodes[0].entry)
        return _put_scalar(p, p.nodes, out + 8)
    out = _put_container(p, 0, base, out)
    while p.depth > 0:
        f = p.frames + p.depth - 1
        if f.count == 0:
            p.depth -= 1
            continue
        f.count -= 1
        if f.disorder:
            f.node = p.sorted[f.key].node
            f.key += 1
        # f.size is 1 in an object: its values follow their keys.
        node = f.node + <int32_t> f.size
        f.node = _behind(p, node)
        _put_word(base + f.place, p.nodes[node].entry)
        f.place += 4
        if p.nodes[node].entry >> 28 == 5:
            out = _put_container(p, node, base, out)
        else:
            out = _put_scalar(p, p.nodes + node, out)
    return out
