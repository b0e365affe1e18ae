"""Full-zip pages read, compiled: one walk to count, one to copy."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy

from lancelet.kernels.refuse_pages import bad_item, check_control, control_width, needs_bits, too_large

Offset = cython.fused_type(cython.int, cython.longlong)
# What a walk over items found: levels and visible items so far, bytes of values, and where it got stuck if it did.
Walk = cython.struct(
    items=cython.longlong, visible=cython.longlong, size=cython.longlong, at=cython.longlong, need=cython.longlong
)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _number(source: cython.pointer(cython.const[cython.uchar]), width: cython.longlong) -> cython.ulonglong:
    """A little-endian number of 0, 1, 2, 4 or 8 bytes."""
    short: cython.ushort = 0
    word: cython.uint = 0
    long: cython.ulonglong = 0
    if width == 0:
        return 0
    if width == 1:
        return source[0]
    if width == 2:
        memcpy(cython.address(short), source, 2)
        return short
    if width == 4:
        memcpy(cython.address(word), source, 4)
        return word
    memcpy(cython.address(long), source, 8)
    return long


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count(
    data: cython.pointer(cython.const[cython.uchar]),
    have: cython.longlong,
    control: cython.longlong,
    mask: cython.ulonglong,
    max_visible: cython.ulonglong,
    value_bytes: cython.longlong,
    width: cython.longlong,
) -> Walk:
    """Walk over all items; ``width`` is that of lengths, 0 for values of fixed width. Stuck if ``need`` is not 0."""
    walk: Walk
    level: cython.ulonglong
    length: cython.ulonglong
    walk.items = walk.visible = walk.size = walk.at = walk.need = 0
    while walk.at < have:
        if walk.at > have - control:
            walk.need = control
            break
        level = _number(data + walk.at, control) & mask
        walk.at += control
        if width == 0:
            if level <= max_visible:
                if walk.at > have - value_bytes:
                    walk.need = value_bytes
                    break
                walk.at += value_bytes
                walk.size += value_bytes
        elif level == 0:
            if walk.at > have - width:
                walk.need = width
                break
            length = _number(data + walk.at, width)
            walk.at += width
            if length > cython.cast(cython.ulonglong, have - walk.at):
                walk.need = -1
                break
            walk.at += length
            walk.size += length
        walk.visible += level <= max_visible
        walk.items += 1
    return walk


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_fixed(
    data: cython.pointer(cython.const[cython.uchar]),
    items: cython.longlong,
    control: cython.longlong,
    bits_def: cython.int,
    mask: cython.ulonglong,
    max_visible: cython.ulonglong,
    value_bytes: cython.longlong,
    rep: cython.pointer(cython.ushort),
    definition: cython.pointer(cython.ushort),
    out: cython.pointer(cython.uchar),
) -> cython.void:
    """Copy items that were counted before; ``rep`` and ``definition`` may be NULL."""
    i: cython.longlong
    word: cython.ulonglong
    for i in range(items):
        word = _number(data, control)
        data += control
        if rep != cython.NULL:
            rep[i] = cython.cast(cython.ushort, word >> bits_def)
        if definition != cython.NULL:
            definition[i] = cython.cast(cython.ushort, word & mask)
        if (word & mask) <= max_visible:
            memcpy(out, data, value_bytes)
            out += value_bytes
            data += value_bytes


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_variable(
    data: cython.pointer(cython.const[cython.uchar]),
    items: cython.longlong,
    control: cython.longlong,
    bits_def: cython.int,
    mask: cython.ulonglong,
    max_visible: cython.ulonglong,
    width: cython.longlong,
    rep: cython.pointer(cython.ushort),
    definition: cython.pointer(cython.ushort),
    offsets: cython.pointer(Offset),
    out: cython.pointer(cython.uchar),
) -> cython.void:
    """Copy items that were counted before; ``rep`` and ``definition`` may be NULL."""
    i: cython.longlong
    word: cython.ulonglong
    length: cython.ulonglong
    total: cython.longlong = 0
    visible: cython.longlong = 0
    for i in range(items):
        word = _number(data, control)
        data += control
        if rep != cython.NULL:
            rep[i] = cython.cast(cython.ushort, word >> bits_def)
        if definition != cython.NULL:
            definition[i] = cython.cast(cython.ushort, word & mask)
        if (word & mask) == 0:
            length = _number(data, width)
            data += width
            memcpy(out + total, data, length)
            data += length
            total += length
        if (word & mask) <= max_visible:
            visible += 1
            offsets[visible] = total


@cython.cfunc
def _levels(bits: object, items: object) -> object:
    return np.empty(items, dtype=np.uint16) if bits else None


@cython.cfunc
def _pointer(levels: object) -> cython.pointer(cython.ushort):
    """Where an array of levels starts; NULL for None or an empty one. The caller holds the array."""
    view: cython.ushort[::1]
    if levels is None or len(levels) == 0:
        return cython.NULL
    view = levels
    return cython.address(view[0])


@cython.cfunc
def _walk(
    data: cython.const[cython.uchar][::1],
    control: cython.longlong,
    bits_def: cython.int,
    max_visible: cython.longlong,
    value_bytes: cython.longlong,
    width: cython.longlong,
) -> Walk:
    have: cython.longlong = data.shape[0]
    mask: cython.ulonglong = (cython.cast(cython.ulonglong, 1) << bits_def) - 1
    walk: Walk
    with cython.nogil:
        walk = _count(cython.address(data[0]), have, control, mask, max_visible, value_bytes, width)
    if walk.need == -1:
        raise bad_item(walk.items, walk.at, _number(cython.address(data[0]) + walk.at - width, width), have)
    if walk.need:
        raise bad_item(walk.items, walk.at, walk.need, have)
    return walk


def unzip_fixed(
    data: cython.const[cython.uchar][::1],
    *,
    bits_rep: object,
    bits_def: object,
    max_visible: cython.longlong,
    value_bytes: cython.longlong,
) -> tuple:
    """See the twin."""
    control: cython.longlong = control_width(bits_rep, bits_def)
    check_control(control, value_bytes)
    shift: cython.int = bits_def
    walk: Walk = _walk(data, control, shift, max_visible, value_bytes, 0)
    rep, definition = _levels(bits_rep, walk.items), _levels(bits_def, walk.items)
    values = np.empty(walk.size, dtype=np.uint8)
    out: cython.uchar[::1] = values
    r: cython.pointer(cython.ushort) = _pointer(rep)
    d: cython.pointer(cython.ushort) = _pointer(definition)
    mask: cython.ulonglong = (cython.cast(cython.ulonglong, 1) << shift) - 1
    with cython.nogil:
        if control == 0:
            memcpy(cython.address(out[0]), cython.address(data[0]), walk.size)
        else:
            _copy_fixed(
                cython.address(data[0]),
                walk.items,
                control,
                shift,
                mask,
                max_visible,
                value_bytes,
                r,
                d,
                cython.address(out[0]),
            )
    return rep, definition, values


@cython.cfunc
def _unzip_into(
    data: cython.const[cython.uchar][::1],
    items: cython.longlong,
    control: cython.longlong,
    shift: cython.int,
    max_visible: cython.longlong,
    width: cython.longlong,
    rep: object,
    definition: object,
    offsets: Offset[::1],
    values: cython.uchar[::1],
) -> object:
    r: cython.pointer(cython.ushort) = _pointer(rep)
    d: cython.pointer(cython.ushort) = _pointer(definition)
    mask: cython.ulonglong = (cython.cast(cython.ulonglong, 1) << shift) - 1
    offsets[0] = 0
    with cython.nogil:
        _copy_variable(
            cython.address(data[0]),
            items,
            control,
            shift,
            mask,
            max_visible,
            width,
            r,
            d,
            cython.address(offsets[0]),
            cython.address(values[0]),
        )
    return None


def unzip_variable(
    data: cython.const[cython.uchar][::1],
    *,
    bits_rep: object,
    bits_def: object,
    max_visible: cython.longlong,
    length_bits: object,
    offset_bits: object,
) -> tuple:
    """See the twin."""
    control: cython.longlong = control_width(bits_rep, bits_def)
    _check_bits(length_bits, "lengths")
    _check_bits(offset_bits, "offsets")
    shift: cython.int = bits_def
    width: cython.longlong = length_bits // 8
    walk: Walk = _walk(data, control, shift, max_visible, 0, width)
    if offset_bits == 32 and walk.size > 2**31 - 1:
        raise too_large(walk.size)
    rep, definition = _levels(bits_rep, walk.items), _levels(bits_def, walk.items)
    values = np.empty(walk.size, dtype=np.uint8)
    if offset_bits == 32:
        offsets = np.empty(walk.visible + 1, dtype=np.int32)
        _unzip_into[cython.int](data, walk.items, control, shift, max_visible, width, rep, definition, offsets, values)
    else:
        offsets = np.empty(walk.visible + 1, dtype=np.int64)
        _unzip_into[cython.longlong](
            data, walk.items, control, shift, max_visible, width, rep, definition, offsets, values
        )
    return rep, definition, offsets, values


@cython.cfunc
def _check_bits(bits: object, what: object) -> object:
    if bits not in (32, 64):
        raise needs_bits(what, bits, "32 or 64")
    return None
