"""Levels to structure, compiled: definition levels to bitmaps in 64-bit words, lists peeled off from the inside out."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy, memset

from lancelet.kernels.layers import (
    NULL_AND_EMPTY_LIST,
    NULLABLE_ITEM,
    NULLABLE_LIST,
    Items,
    Lists,
    bad_levels,
    check_visible,
    levels_given,
    structure,
)

# One bit in each of the four 16-bit lanes of a word.
ONES = cython.declare(cython.ulonglong, 0x0001000100010001)
# Multiplying by this brings bit 16 * i + 4 * k to bit 48 + i + 4 * k, for i and k from 0 to 3, and no other bit there.
GATHER = cython.declare(cython.ulonglong, (1 << 48) | (1 << 33) | (1 << 18) | (1 << 3))
# Multiplying by this brings bit 8 * i to bit 56 + i, for i from 0 to 7, and no other bit there.
BYTES = cython.declare(cython.ulonglong, 0x0102040810204080)
BLOCK = cython.declare(cython.Py_ssize_t, 16384)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _above(word: cython.ulonglong, addend: cython.ulonglong) -> cython.ulonglong:
    """1 in each lane whose level is above a threshold; the addend is 0x7fff - threshold in each lane."""
    return ((word + addend) >> 15) & ONES


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pack(
    levels: cython.pointer(cython.const[cython.ushort]),
    count: cython.Py_ssize_t,
    below: cython.ulonglong,
    empties: cython.bint,
    highest: cython.ulonglong,
    out: cython.pointer(cython.uchar),
) -> cython.longlong:
    """Write the bitmap of levels that are not null; the number of nulls, or -1 for a level above the highest.

    Null is what is above ``below``, except for ``below + 2`` where that stands for an empty list. The thresholds nest,
    so that exception is an exclusive or.
    """
    first: cython.ulonglong = (0x7FFF - below) * ONES
    second: cython.ulonglong = first - ONES
    third: cython.ulonglong = second - ONES
    most: cython.ulonglong = (0x7FFF - highest) * ONES
    padded: cython.ushort[16]
    source: cython.pointer(cython.const[cython.ushort])
    a: cython.ulonglong = 0
    b: cython.ulonglong = 0
    c: cython.ulonglong = 0
    d: cython.ulonglong = 0
    seen: cython.ulonglong = 0
    bad: cython.ulonglong = 0
    lanes: cython.ulonglong
    bits: cython.ushort
    nulls: cython.longlong = 0
    done: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    k: cython.Py_ssize_t
    while done < count:
        # A lane counts up to 4 nulls a round, so 1024 rounds overflow neither it nor the sum of the four lanes.
        stop = min(done + 16 * 1024, count)
        lanes = 0
        while done < stop:
            source = levels + done
            if stop - done < 16:
                for k in range(16):
                    padded[k] = source[k] if k < stop - done else 0
                source = padded
            memcpy(cython.address(a), source, 8)
            memcpy(cython.address(b), source + 4, 8)
            memcpy(cython.address(c), source + 8, 8)
            memcpy(cython.address(d), source + 12, 8)
            seen |= a | b | c | d
            if highest > 1:
                bad |= (a + most) | (b + most) | (c + most) | (d + most)
            if highest == 1:
                pass  # the levels are the flags
            elif empties:
                a = _above(a, first) ^ _above(a, second) ^ _above(a, third)
                b = _above(b, first) ^ _above(b, second) ^ _above(b, third)
                c = _above(c, first) ^ _above(c, second) ^ _above(c, third)
                d = _above(d, first) ^ _above(d, second) ^ _above(d, third)
            else:
                a, b, c, d = _above(a, first), _above(b, first), _above(c, first), _above(d, first)
            lanes += a + b + c + d
            bits = cython.cast(cython.ushort, ~(((a | (b << 4) | (c << 8) | (d << 12)) * GATHER) >> 48))
            if stop - done >= 16:
                memcpy(out + (done >> 3), cython.address(bits), 2)
            else:
                bits = bits & ((1 << (stop - done)) - 1)
                memcpy(out + (done >> 3), cython.address(bits), (stop - done + 7) >> 3)
            done += 16
        nulls += cython.cast(cython.longlong, (lanes * ONES) >> 48)
    if highest == 1:
        return -1 if seen & ~ONES else nulls
    return -1 if (bad | seen) & (ONES << 15) else nulls


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count(
    rep: cython.pointer(cython.const[cython.ushort]),
    definition: cython.pointer(cython.const[cython.ushort]),
    count: cython.Py_ssize_t,
    level: cython.ushort,
    limit: cython.ushort,
) -> cython.Py_ssize_t:
    """How many entries have a repetition level of ``level`` or more and a definition level of ``limit`` or less.

    Either array may be NULL, and does not count then.
    """
    total: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    some: cython.ushort
    while start < count:
        # Counting in the levels' own width keeps the loops SIMD; a block cannot overflow it.
        stop = min(start + BLOCK, count)
        some = 0
        if rep == cython.NULL:
            for i in range(start, stop):
                some += definition[i] <= limit
        elif definition == cython.NULL:
            for i in range(start, stop):
                some += rep[i] >= level
        else:
            for i in range(start, stop):
                some += (rep[i] >= level) & (definition[i] <= limit)
        total += some
        start = stop
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _keep_visible(
    definition: cython.pointer(cython.const[cython.ushort]),
    count: cython.Py_ssize_t,
    limit: cython.ushort,
    out: cython.pointer(cython.ushort),
) -> cython.void:
    """Copy the levels up to the limit; out has room for one more than there are."""
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = 0
    for i in range(count):
        out[n] = definition[i]
        n += definition[i] <= limit


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _peel(
    rep: cython.pointer(cython.const[cython.ushort]),
    definition: cython.pointer(cython.const[cython.ushort]),
    count: cython.Py_ssize_t,
    depth: cython.ushort,
    seen: cython.ushort,
    shown: cython.ushort,
    offsets: cython.pointer(cython.longlong),
    rep_out: cython.pointer(cython.ushort),
    definition_out: cython.pointer(cython.ushort),
    shown_out: cython.pointer(cython.ushort),
) -> cython.bint:
    """One layer of lists that has more lists around it; false where a level cannot be.

    ``seen`` and ``shown`` are the highest levels visible inside the lists and among them. All outputs have a slot to
    spare: each is written always, and its index moves on only where the entry belongs.
    """
    i: cython.Py_ssize_t
    r: cython.ushort
    d: cython.ushort
    starts: cython.bint
    visible: cython.bint
    inside: cython.longlong = 0
    lists: cython.Py_ssize_t = 0
    kept: cython.Py_ssize_t = 0
    bad: cython.bint = False
    for i in range(count):
        r = rep[i]
        d = definition[i] if definition != cython.NULL else 0
        starts = r > depth
        visible = d <= seen
        offsets[lists] = inside
        shown_out[lists] = d
        lists += starts & (d <= shown)
        rep_out[kept] = r
        definition_out[kept] = d
        kept += starts
        inside += visible
        bad |= not (starts | visible)
    offsets[lists] = inside
    return not bad


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bits(flags: cython.pointer(cython.uchar)) -> cython.ulonglong:
    """64 flags of a byte each as the bits of a word."""
    word: cython.ulonglong = 0
    result: cython.ulonglong = 0
    i: cython.int
    for i in range(8):
        memcpy(cython.address(word), flags + 8 * i, 8)
        result |= ((word * BYTES) >> 56) << (8 * i)
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _peel_last(
    rep: cython.pointer(cython.const[cython.ushort]),
    definition: cython.pointer(cython.const[cython.ushort]),
    count: cython.Py_ssize_t,
    max_rep: cython.ushort,
    max_def: cython.ushort,
    seen: cython.ushort,
    offsets: cython.pointer(cython.longlong),
    shown_out: cython.pointer(cython.ushort),
) -> cython.bint:
    """The outermost lists: every one that starts is seen. Without ``definition`` (NULL), ``shown_out`` is not used.

    Each entry starts a list or is visible inside one, so a list's offset is its place less the hidden entries before.
    """
    starts: cython.uchar[64]
    hides: cython.uchar[64]
    many: cython.Py_ssize_t
    i: cython.Py_ssize_t
    first: cython.Py_ssize_t
    place: cython.Py_ssize_t
    some: cython.ulonglong
    hidden: cython.ulonglong = 0
    inside: cython.longlong = 0
    lists: cython.Py_ssize_t = 0
    bad: cython.ushort = 0
    for first in range(0, count, 64):
        many = min(64, count - first)
        if many < 64:
            memset(starts, 0, 64)
            memset(hides, 0, 64)
        for i in range(many):
            starts[i] = rep[first + i] >= max_rep
            bad |= rep[first + i] > max_rep
        if definition != cython.NULL:
            for i in range(many):
                hides[i] = definition[first + i] > seen
                bad |= definition[first + i] > max_def
            hidden = _bits(hides)
        some = _bits(starts)
        bad |= (hidden & ~some) != 0
        while some:
            place = trailing_zeros(some)
            some &= some - 1
            offsets[lists] = inside + place
            if definition != cython.NULL:
                shown_out[lists] = definition[first + place]
            inside -= (hidden >> place) & 1
            lists += 1
        inside += many
    offsets[lists] = inside
    return bad == 0


@cython.cfunc
def _pointer(levels: object) -> cython.pointer(cython.const[cython.ushort]):
    """Where an array of levels starts; NULL for None. The caller holds the array."""
    view: cython.const[cython.ushort][::1]
    if levels is None or len(levels) == 0:
        return cython.NULL
    view = levels
    return cython.address(view[0])


@cython.cfunc
def _validity(levels: object, count: cython.Py_ssize_t, below: object, code: object, shape: object) -> object:
    """Bitmap and number of nulls of one layer, from the levels of its entries; (None, 0) where nothing is null."""
    if code not in (NULLABLE_ITEM, NULLABLE_LIST, NULL_AND_EMPTY_LIST):
        return None, 0
    bitmap = np.empty((count + 7) // 8, dtype=np.uint8)
    out: cython.uchar[::1] = bitmap
    start: cython.pointer(cython.const[cython.ushort]) = _pointer(levels)
    base: cython.ulonglong = below
    empties: cython.bint = code == NULL_AND_EMPTY_LIST
    highest: cython.ulonglong = shape.max_def
    nulls: cython.longlong
    if count == 0:
        return None, 0
    with cython.nogil:
        nulls = _pack(start, count, base, empties, highest, cython.address(out[0]))
    if nulls < 0:
        raise bad_levels(shape)
    return (bitmap if nulls else None), nulls


@cython.cfunc
def _peeled(rep: object, definition: object, depth: object, shape: object) -> tuple:
    """Take one layer of lists off: their offsets, the levels of the lists, and of these the ones that are visible."""
    count: cython.Py_ssize_t = len(rep)
    r: cython.pointer(cython.const[cython.ushort]) = _pointer(rep)
    d: cython.pointer(cython.const[cython.ushort]) = _pointer(definition)
    last: cython.bint = depth + 1 == shape.max_rep
    level: cython.ushort = depth + 1
    max_def: cython.ushort = shape.max_def
    seen: cython.ushort = shape.visible[depth]
    limit: cython.ushort = shape.visible[depth + 1]
    lists: cython.Py_ssize_t
    kept: cython.Py_ssize_t
    good: cython.bint
    with cython.nogil:
        kept = _count(r, cython.NULL, count, level, 0)
        lists = kept if last or d == cython.NULL else _count(r, d, count, level, limit)
    offsets = np.empty(lists + 1, dtype=np.int64)
    shown = np.empty(lists + 1, dtype=np.uint16) if definition is not None or not last else None
    offsets_at: cython.longlong[::1] = offsets
    shown_at: cython.pointer(cython.ushort) = cython.cast(cython.pointer(cython.ushort), _pointer(shown))
    if last:
        with cython.nogil:
            good = _peel_last(r, d, count, level, max_def, seen, cython.address(offsets_at[0]), shown_at)
        outer_rep = outer_definition = None
    else:
        outer_rep, outer_definition = np.empty(kept + 1, dtype=np.uint16), np.empty(kept + 1, dtype=np.uint16)
        rep_at: cython.pointer(cython.ushort) = cython.cast(cython.pointer(cython.ushort), _pointer(outer_rep))
        def_at: cython.pointer(cython.ushort) = cython.cast(cython.pointer(cython.ushort), _pointer(outer_definition))
        with cython.nogil:
            good = _peel(r, d, count, level - 1, seen, limit, cython.address(offsets_at[0]), rep_at, def_at, shown_at)
        outer_rep, outer_definition = outer_rep[:kept], outer_definition[:kept]
    if not good:
        raise bad_levels(shape)
    return offsets, outer_rep, outer_definition, shown


@cython.cfunc
def _visible(definition: object, shape: object) -> tuple:
    """The definition levels of stored values, and how many there are."""
    count: cython.Py_ssize_t = len(definition)
    limit: cython.ushort = shape.visible[0]
    if limit == shape.max_def:
        return definition, count
    d: cython.pointer(cython.const[cython.ushort]) = _pointer(definition)
    n: cython.Py_ssize_t
    with cython.nogil:
        n = _count(cython.NULL, d, count, 0, limit)
    if limit == 0:  # all that are left are 0, and no layer at this depth can be null
        return None, n
    kept = np.empty(n + 1, dtype=np.uint16)
    out: cython.ushort[::1] = kept
    with cython.nogil:
        _keep_visible(d, count, limit, cython.address(out[0]))
    return kept, n


@cython.cfunc
def _all_zero(definition: object) -> cython.bint:
    count: cython.Py_ssize_t = len(definition)
    return _count(cython.NULL, _pointer(definition), count, 0, 0) == count


def unravel(rep, definition, codes, *, num_items=None) -> list:
    """See the twin."""
    shape = structure(codes)
    count = levels_given(shape, rep, definition, num_items)
    if rep is None and shape.max_rep:
        rep = np.empty(0, dtype=np.uint16)
    shown = definition
    if definition is not None:
        shown, count = _visible(definition, shape)
        if shape.max_def == 0 and not _all_zero(definition):
            raise bad_levels(shape)
    check_visible(count, num_items)
    result = []
    for code, below, depth in zip(shape.codes, shape.below, shape.depth, strict=True):
        if code in (1, 3):
            validity, nulls = _validity(shown, count, below, code, shape)
            result.append(Items(count, validity, nulls))
        else:
            if depth == 0 and shape.visible[0] == shape.max_def:
                definition = None  # they tell of items only, and have been read
            offsets, rep, definition, shown = _peeled(rep, definition, depth, shape)
            count = len(offsets) - 1
            validity, nulls = _validity(shown, count, below, code, shape)
            result.append(Lists(offsets, validity, nulls))
    return result
