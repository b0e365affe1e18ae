"""Structure to levels, compiled: from the outermost layer in, each list layer spreads what is known so far."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy

from lancelet.errors import InvalidInput
from lancelet.kernels.layers import Lists, bad_lists, layer_code, structure, wrong_length

# One bit in each of the four 16-bit lanes of a word; SPREAD brings bit i of a nibble (among others) to lane i.
ONES = cython.declare(cython.ulonglong, 0x0001000100010001)
SPREAD = cython.declare(cython.ulonglong, 1 | (1 << 15) | (1 << 30) | (1 << 45))
Offset = cython.fused_type(cython.int, cython.longlong)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _merge_bits(
    bits: cython.pointer(cython.const[cython.uchar]),
    bit_offset: cython.Py_ssize_t,
    around: cython.pointer(cython.const[cython.uchar]),
    count: cython.Py_ssize_t,
    out: cython.pointer(cython.uchar),
) -> cython.longlong:
    """Move bits to the start of a byte, clear those clear in ``around`` (unless NULL); the number of clear ones."""
    shift: cython.int = bit_offset & 7
    size: cython.Py_ssize_t = (count + 7) >> 3
    last: cython.Py_ssize_t = (bit_offset + count - 1) >> 3
    from_: cython.Py_ssize_t = bit_offset >> 3
    i: cython.Py_ssize_t
    byte: cython.uint
    ones: cython.longlong = 0
    for i in range(size):
        byte = bits[from_ + i]
        if shift:
            byte >>= shift
            if from_ + i < last:
                byte |= cython.cast(cython.uint, bits[from_ + i + 1]) << (8 - shift)
        if around != cython.NULL:
            byte &= around[i]
        byte &= 0xFF
        if i == size - 1 and count & 7:
            byte &= (1 << (count & 7)) - 1
        out[i] = byte
        # Population count of a byte without the instruction that baseline processors lack.
        byte = byte - ((byte >> 1) & 0x55)
        byte = (byte & 0x33) + ((byte >> 2) & 0x33)
        ones += (byte + (byte >> 4)) & 0x0F
    return count - ones


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _first_levels(
    bits: cython.pointer(cython.const[cython.uchar]),
    count: cython.Py_ssize_t,
    level: cython.ulonglong,
    out: cython.pointer(cython.ushort),
) -> cython.void:
    """``level`` where a bit is clear, 0 where it is set: four lanes of a word at a time."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    low: cython.ulonglong
    high: cython.ulonglong
    for i in range(count >> 3):
        low = ((((~bits[i]) & 15) * SPREAD) & ONES) * level
        high = (((((~bits[i]) >> 4) & 15) * SPREAD) & ONES) * level
        memcpy(out + 8 * i, cython.address(low), 8)
        memcpy(out + 8 * i + 4, cython.address(high), 8)
    for k in range(count & ~7, count):
        out[k] = 0 if (bits[k >> 3] >> (k & 7)) & 1 else cython.cast(cython.ushort, level)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_nulls(
    bits: cython.pointer(cython.const[cython.uchar]),
    total: cython.Py_ssize_t,
    level: cython.ushort,
    limit: cython.ushort,
    out: cython.pointer(cython.ushort),
) -> cython.void:
    """Set the level of entries that are valid so far and null in this layer; levels above the limit are no entries."""
    p: cython.Py_ssize_t
    e: cython.Py_ssize_t = 0
    for p in range(total):
        if out[p] > limit:
            continue
        if out[p] == 0 and not (bits[e >> 3] >> (e & 7)) & 1:
            out[p] = level
        e += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_lists(offsets: cython.pointer(cython.const[Offset]), count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The number of lists without entries, or -1 if the offsets do not start at 0 and rise."""
    i: cython.Py_ssize_t
    short: cython.Py_ssize_t = 0
    bad: cython.bint = offsets[0] != 0
    for i in range(count):
        short += offsets[i + 1] == offsets[i]
        bad |= offsets[i + 1] < offsets[i]
    return -1 if bad else short


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _spread(
    rep: cython.pointer(cython.const[cython.ushort]),
    definition: cython.pointer(cython.const[cython.ushort]),
    total: cython.Py_ssize_t,
    offsets: cython.pointer(cython.const[Offset]),
    limit: cython.ushort,
    level: cython.ushort,
    empty: cython.ushort,
    rep_out: cython.pointer(cython.ushort),
    definition_out: cython.pointer(cython.ushort),
) -> cython.bint:
    """Make room for the entries of lists; the outputs are zero already. False if a null list has entries.

    ``rep`` and ``definition`` may be NULL, meaning all zero; ``definition_out`` too while nothing is null or empty.
    """
    p: cython.Py_ssize_t
    e: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    length: cython.Py_ssize_t
    r: cython.ushort
    d: cython.ushort
    good: cython.bint = True
    for p in range(total):
        r = rep[p] if rep != cython.NULL else 0
        d = definition[p] if definition != cython.NULL else 0
        if d > limit:
            rep_out[at] = r
            definition_out[at] = d
            at += 1
            continue
        length = offsets[e + 1] - offsets[e]
        e += 1
        rep_out[at] = r or level
        if length == 0:
            definition_out[at] = d or empty
            at += 1
        else:
            good &= d == 0
            at += length
            if not good:
                break
    return good


@cython.cfunc
def _bits(layer: object, around: object) -> tuple:
    """The layer's validity with that of the struct around it: a bitmap that starts at bit 0, or None, and its nulls."""
    count: cython.Py_ssize_t = layer.length
    bit_offset: cython.Py_ssize_t = layer.bit_offset
    outer: cython.pointer(cython.const[cython.uchar]) = cython.NULL
    outer_view: cython.const[cython.uchar][::1]
    out: cython.uchar[::1]
    nulls: cython.longlong
    if layer.validity is None or layer.null_count == 0 or count == 0:
        return around
    bits: cython.const[cython.uchar][::1] = layer.validity
    if bit_offset < 0 or bit_offset + count > 8 * bits.shape[0]:
        raise InvalidInput(f"validity has {8 * bits.shape[0]} bits, expected {bit_offset + count}")
    if around[0] is not None:
        outer_view = around[0]
        outer = cython.address(outer_view[0])
    merged = np.empty((count + 7) // 8, dtype=np.uint8)
    out = merged
    with cython.nogil:
        nulls = _merge_bits(cython.address(bits[0]), bit_offset, outer, count, cython.address(out[0]))
    return (merged if nulls else None), nulls


@cython.cfunc
def _short_lists(offsets: cython.const[Offset][::1]) -> cython.Py_ssize_t:
    short: cython.Py_ssize_t
    with cython.nogil:
        short = _count_lists(cython.address(offsets[0]), offsets.shape[0] - 1)
    if short < 0:
        raise bad_lists()
    return short


@cython.cfunc
def _spread_lists(
    rep: object,
    definition: object,
    total: cython.Py_ssize_t,
    offsets: cython.const[Offset][::1],
    limit: cython.ushort,
    level: cython.ushort,
    empty: cython.ushort,
    rep_out: object,
    definition_out: object,
) -> cython.bint:
    r: cython.pointer(cython.ushort) = _pointer(rep)
    d: cython.pointer(cython.ushort) = _pointer(definition)
    ro: cython.pointer(cython.ushort) = _pointer(rep_out)
    do: cython.pointer(cython.ushort) = _pointer(definition_out)
    good: cython.bint
    with cython.nogil:
        good = _spread(r, d, total, cython.address(offsets[0]), limit, level, empty, ro, do)
    return good


@cython.cfunc
def _pointer(levels: object) -> cython.pointer(cython.ushort):
    """Where an array of levels starts; NULL for None. The caller holds the array."""
    view: cython.ushort[::1]
    if levels is None or len(levels) == 0:
        return cython.NULL
    view = levels
    return cython.address(view[0])


@cython.cfunc
def _survey(layers: object) -> list:
    """Bitmaps, numbers of lists without entries, and codes of all layers, outermost first."""
    facts = []
    around = None, 0
    expected = None
    for layer in reversed(layers):
        if expected is not None and layer.length != expected:
            raise wrong_length(layer.length, expected)
        bits, nulls = _bits(layer, around)
        short = 0
        if isinstance(layer, Lists):
            offsets = layer.offsets
            if layer.length:
                short = (
                    _short_lists[cython.int](offsets)
                    if offsets.itemsize == 4
                    else _short_lists[cython.longlong](offsets)
                )
            if short < nulls:
                raise bad_lists()
            code = layer_code(lists=True, null=nulls > 0, empty=short > nulls)
            expected = int(offsets[len(offsets) - 1]) if len(offsets) else 0
            around = None, 0
        else:
            code = layer_code(lists=False, null=nulls > 0, empty=False)
            expected = layer.length
            around = bits, nulls
        facts.append((layer, bits, short, code))
    return facts


@cython.cfunc
def _with_nulls(
    definition: object, bits: object, level: object, limit: cython.ushort, total: cython.Py_ssize_t
) -> object:
    view: cython.const[cython.uchar][::1] = bits
    out: cython.ushort[::1]
    own: cython.ulonglong = level
    if definition is None:
        definition = np.empty(total, dtype=np.uint16)
        out = definition
        with cython.nogil:
            _first_levels(cython.address(view[0]), total, own, cython.address(out[0]))
    else:
        out = definition
        with cython.nogil:
            _add_nulls(cython.address(view[0]), total, own, limit, cython.address(out[0]))
    return definition


def ravel(layers) -> tuple:
    """See the twin."""
    facts = _survey(layers)
    codes = tuple(fact[3] for fact in reversed(facts))
    shape = structure(codes)
    rep = definition = None
    total = facts[0][0].length
    hidden = 0
    for k, (layer, bits, short, code) in zip(range(len(layers) - 1, -1, -1), facts, strict=True):
        lists = isinstance(layer, Lists)
        limit = shape.visible[shape.depth[k] + lists]
        if bits is not None:
            definition = _with_nulls(definition, bits, shape.below[k] + 1, limit, total)
        if lists:
            inside = int(layer.offsets[layer.length]) if layer.length else 0
            length = hidden + short + inside
            rep_out = np.zeros(length, dtype=np.uint16)
            # Without definition levels all are 0, which the next layer with nulls can fill in faster.
            def_out = np.zeros(length, dtype=np.uint16) if definition is not None or short else None
            empty = shape.below[k] + 1 + (code == 6)
            good = True
            if total and layer.offsets.itemsize == 4:
                good = _spread_lists[cython.int](
                    rep, definition, total, layer.offsets, limit, shape.depth[k] + 1, empty, rep_out, def_out
                )
            elif total:
                good = _spread_lists[cython.longlong](
                    rep, definition, total, layer.offsets, limit, shape.depth[k] + 1, empty, rep_out, def_out
                )
            if not good:
                raise bad_lists()
            rep, definition, total = rep_out, def_out, length
            hidden += short
    if definition is None and shape.max_def:
        definition = np.zeros(total, dtype=np.uint16)
    return rep, definition, codes
