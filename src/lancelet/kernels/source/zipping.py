"""Full-zip pages written, compiled: sizes and checks first, then one walk that writes."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy

from lancelet.kernels.refuse_pages import check_control, check_zip, control_width, needs_bits, too_large, wrong_values

Offset = cython.fused_type(cython.int, cython.longlong)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(to: cython.pointer(cython.uchar), value: cython.ulonglong, width: cython.longlong) -> cython.void:
    """Write a little-endian number of 0, 1, 2, 4 or 8 bytes."""
    if width == 1:
        to[0] = cython.cast(cython.uchar, value)
    elif width == 2:
        memcpy(to, cython.address(value), 2)
    elif width == 4:
        memcpy(to, cython.address(value), 4)
    elif width == 8:
        memcpy(to, cython.address(value), 8)


@cython.cfunc
def _pointer(levels: object) -> cython.pointer(cython.const[cython.ushort]):
    view: cython.const[cython.ushort][::1]
    if levels is None or len(levels) == 0:
        return cython.NULL
    view = levels
    return cython.address(view[0])


@cython.cfunc
def _check_bits(bits: object, what: object) -> object:
    if bits not in (32, 64):
        raise needs_bits(what, bits, "32 or 64")
    return None


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _visible(
    definition: cython.pointer(cython.const[cython.ushort]), items: cython.longlong, limit: cython.longlong
) -> cython.longlong:
    i: cython.longlong
    total: cython.longlong = 0
    if definition == cython.NULL:
        return items if limit >= 0 else 0
    for i in range(items):
        total += definition[i] <= limit
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rows(
    rep: cython.pointer(cython.const[cython.ushort]), items: cython.longlong, max_rep: cython.longlong
) -> cython.longlong:
    i: cython.longlong
    total: cython.longlong = 0
    if rep == cython.NULL:
        return items
    for i in range(items):
        total += rep[i] == max_rep
    return total


def zip_fixed(
    rep,
    definition,
    values: cython.const[cython.uchar][::1],
    *,
    bits_rep: object,
    bits_def: object,
    max_rep: cython.longlong,
    max_visible: cython.longlong,
    value_bytes: cython.longlong,
) -> tuple:
    """See the twin."""
    control: cython.longlong = control_width(bits_rep, bits_def)
    items: cython.longlong = check_zip(
        rep, definition, bits_rep, bits_def, values.shape[0] // value_bytes if value_bytes else 0
    )
    check_control(control, value_bytes)
    r: cython.pointer(cython.const[cython.ushort]) = _pointer(rep)
    d: cython.pointer(cython.const[cython.ushort]) = _pointer(definition)
    shift: cython.int = bits_def
    visible: cython.longlong = _visible(d, items, max_visible)
    if visible * value_bytes != values.shape[0]:
        raise wrong_values(f"{visible} visible items of {value_bytes} bytes, {values.shape[0]} bytes of values")
    zipped = np.empty(items * control + values.shape[0], dtype=np.uint8)
    rows = np.empty(_rows(r, items, max_rep) + 1, dtype=np.int64)
    out: cython.uchar[::1] = zipped
    places: cython.longlong[::1] = rows
    i: cython.longlong
    high: cython.ulonglong
    low: cython.ulonglong
    at: cython.longlong = 0
    row: cython.longlong = 0
    value: cython.longlong = 0
    with cython.nogil:
        for i in range(items):
            high = r[i] if r != cython.NULL else 0
            low = d[i] if d != cython.NULL else 0
            if r == cython.NULL or r[i] == max_rep:
                places[row] = at
                row += 1
            _put(cython.address(out[0]) + at, high << shift | low, control)
            at += control
            if cython.cast(cython.longlong, low) <= max_visible:
                memcpy(cython.address(out[0]) + at, cython.address(values[0]) + value, value_bytes)
                at += value_bytes
                value += value_bytes
        places[row] = at
    return zipped, rows


@cython.cfunc
def _zip_variable(
    r: cython.pointer(cython.const[cython.ushort]),
    d: cython.pointer(cython.const[cython.ushort]),
    items: cython.longlong,
    offsets: cython.const[Offset][::1],
    values: cython.const[cython.uchar][::1],
    control: cython.longlong,
    shift: cython.int,
    max_rep: cython.longlong,
    max_visible: cython.longlong,
    width: cython.longlong,
) -> tuple:
    have: cython.longlong = values.shape[0]
    i: cython.longlong
    high: cython.ulonglong
    low: cython.ulonglong
    first: cython.longlong = 0
    end: cython.longlong = 0
    at: cython.longlong = 0
    row: cython.longlong = 0
    value: cython.longlong = 0
    total: cython.longlong = 0
    wrong: cython.bint = False
    long: cython.bint = False
    with cython.nogil:
        for i in range(items):
            low = d[i] if d != cython.NULL else 0
            total += control
            if cython.cast(cython.longlong, low) <= max_visible:
                first = offsets[value]
                end = offsets[value + 1]
                wrong = first < 0 or end < first or end > have
                long = low == 0 and width == 4 and (end - first) >> 32 != 0
                if wrong or long:
                    break
                if low == 0:
                    total += width + end - first
                value += 1
    if wrong:
        raise wrong_values(f"value {value} has offsets {first} and {end} in {have} bytes")
    if long:
        raise too_large(end - first)
    zipped = np.empty(total, dtype=np.uint8)
    rows = np.empty(_rows(r, items, max_rep) + 1, dtype=np.int64)
    out: cython.uchar[::1] = zipped
    places: cython.longlong[::1] = rows
    value = 0
    with cython.nogil:
        for i in range(items):
            high = r[i] if r != cython.NULL else 0
            low = d[i] if d != cython.NULL else 0
            if r == cython.NULL or r[i] == max_rep:
                places[row] = at
                row += 1
            _put(cython.address(out[0]) + at, high << shift | low, control)
            at += control
            if cython.cast(cython.longlong, low) <= max_visible:
                if low == 0:
                    first = offsets[value]
                    end = offsets[value + 1]
                    _put(cython.address(out[0]) + at, end - first, width)
                    at += width
                    memcpy(cython.address(out[0]) + at, cython.address(values[0]) + first, end - first)
                    at += end - first
                value += 1
        places[row] = at
    return zipped, rows


def zip_variable(
    rep,
    definition,
    offsets,
    values,
    *,
    bits_rep: object,
    bits_def: object,
    max_rep: cython.longlong,
    max_visible: cython.longlong,
    length_bits: object,
) -> tuple:
    """See the twin."""
    control: cython.longlong = control_width(bits_rep, bits_def)
    _check_bits(length_bits, "lengths")
    items: cython.longlong = check_zip(rep, definition, bits_rep, bits_def, len(offsets) - 1)
    r: cython.pointer(cython.const[cython.ushort]) = _pointer(rep)
    d: cython.pointer(cython.const[cython.ushort]) = _pointer(definition)
    shift: cython.int = bits_def
    width: cython.longlong = length_bits // 8
    visible: cython.longlong = _visible(d, items, max_visible)
    if visible != len(offsets) - 1:
        raise wrong_values(f"{visible} visible items, {len(offsets) - 1} values")
    if offsets.itemsize == 4:
        return _zip_variable[cython.int](r, d, items, offsets, values, control, shift, max_rep, max_visible, width)
    return _zip_variable[cython.longlong](r, d, items, offsets, values, control, shift, max_rep, max_visible, width)
