"""Variable-width values in mini-block chunks, compiled."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy, memset

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import (
    bad_value,
    bad_variable,
    check_bounds,
    check_offsets,
    needs_bits,
    too_large,
)

Offset = cython.fused_type(cython.int, cython.longlong)
FILL = cython.declare(cython.int, 0x48)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _offset(source: cython.pointer(cython.const[cython.uchar]), wide: cython.bint) -> cython.ulonglong:
    """A little-endian number of 4 or 8 bytes at any address."""
    short: cython.uint = 0
    long: cython.ulonglong = 0
    if wide:
        memcpy(cython.address(long), source, 8)
        return long
    memcpy(cython.address(short), source, 4)
    return short


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    to: cython.pointer(cython.uchar), source: cython.pointer(cython.const[cython.uchar]), size: cython.longlong
) -> cython.void:
    """Copy; a few bytes without the call, which costs more than the bytes do."""
    i: cython.longlong
    if size >= 16:
        memcpy(to, source, size)
    else:
        for i in range(size):
            to[i] = source[i]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _ends(
    chunk: cython.pointer(cython.const[cython.uchar]),
    size: cython.longlong,
    count: cython.longlong,
    wide: cython.bint,
    first: cython.longlong,
    last: cython.longlong,
    bytes_out: cython.pointer(cython.longlong),
    from_out: cython.pointer(cython.longlong),
) -> cython.bint:
    """Where the values ``first`` to ``last`` of a chunk lie in it; false if that cannot be."""
    width: cython.longlong = 8 if wide else 4
    start: cython.ulonglong
    end: cython.ulonglong
    if count < 0 or count >= size // width:
        return False
    start = _offset(chunk + width * first, wide)
    end = _offset(chunk + width * last, wide)
    if start < cython.cast(cython.ulonglong, width * (count + 1)):
        return False
    if end < start or end > cython.cast(cython.ulonglong, size):
        return False
    from_out[0] = start
    bytes_out[0] = end - start
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _shift(
    table: cython.pointer(cython.const[cython.uchar]),
    count: cython.longlong,
    wide: cython.bint,
    addend: cython.longlong,
    out: cython.pointer(Offset),
) -> cython.bint:
    """Write the offsets after the first, moved by ``addend``; false if they fall."""
    i: cython.longlong
    now: cython.ulonglong
    then: cython.ulonglong = 0
    bad: cython.bint = False
    a: cython.uint = 0
    b: cython.uint = 0
    if wide:
        for i in range(count + 1):
            now = _offset(table + 8 * i, True)
            bad |= now < then
            then = now
            if i:
                out[i - 1] = now + addend
    else:
        for i in range(count):
            memcpy(cython.address(a), table + 4 * i, 4)
            memcpy(cython.address(b), table + 4 * i + 4, 4)
            bad |= b < a
            out[i] = b + addend
    return not bad


@cython.cfunc
def _check(starts: object, sizes: object, counts: object, offset_bits: object) -> cython.bint:
    """Whether offsets are wide."""
    if offset_bits not in (32, 64):
        raise needs_bits("offsets", offset_bits, "32 or 64")
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("counts", len(counts), len(starts))
    return offset_bits == 64


@cython.cfunc
def _measure(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    wide: cython.bint,
    lengths: cython.longlong[::1],
    firsts: cython.longlong[::1],
) -> object:
    """For each chunk the bytes of its values, and where in the chunk they start."""
    have: cython.longlong = data.shape[0]
    i: cython.Py_ssize_t
    outside: cython.Py_ssize_t = -1
    bad: cython.Py_ssize_t = -1
    with cython.nogil:
        for i in range(starts.shape[0]):
            if sizes[i] < 0 or starts[i] < 0 or starts[i] > have - sizes[i]:
                outside = i
                break
            if not _ends(
                cython.address(data[0]) + starts[i],
                sizes[i],
                counts[i],
                wide,
                0,
                counts[i],
                cython.address(lengths[i]),
                cython.address(firsts[i]),
            ):
                bad = i
                break
    if outside >= 0:
        raise refuse.range_outside("chunk", outside, start=starts[outside], size=sizes[outside], have=have)
    if bad >= 0:
        raise bad_variable(bad)
    return None


def variable_sizes(data, starts, sizes, counts, offset_bits) -> object:
    """See the twin."""
    wide: cython.bint = _check(starts, sizes, counts, offset_bits)
    lengths = np.zeros(len(starts), dtype=np.int64)
    _measure(data, starts, sizes, counts, wide, lengths, np.empty_like(lengths))
    return lengths


@cython.cfunc
def _join(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    wide: cython.bint,
    lengths: cython.const[cython.longlong][::1],
    firsts: cython.const[cython.longlong][::1],
    out_offsets: Offset[::1],
    out: cython.uchar[::1],
) -> object:
    i: cython.Py_ssize_t
    at: cython.longlong = 1
    base: cython.longlong = 0
    bad: cython.Py_ssize_t = -1
    chunk: cython.pointer(cython.const[cython.uchar])
    out_offsets[0] = 0
    with cython.nogil:
        for i in range(starts.shape[0]):
            chunk = cython.address(data[0]) + starts[i]
            if not _shift(chunk, counts[i], wide, base - firsts[i], cython.address(out_offsets[0]) + at):
                bad = i
                break
            memcpy(cython.address(out[0]) + base, chunk + firsts[i], lengths[i])
            at += counts[i]
            base += lengths[i]
    if bad >= 0:
        raise bad_variable(bad)
    return None


def variable_chunks(data, starts, sizes, counts, offset_bits, out_offsets, out) -> None:
    """See the twin."""
    wide: cython.bint = _check(starts, sizes, counts, offset_bits)
    lengths = np.zeros(len(starts), dtype=np.int64)
    firsts = np.empty_like(lengths)
    _measure(data, starts, sizes, counts, wide, lengths, firsts)
    # Each chunk has been found to hold its values, so the sums below stay far from overflow.
    values, total = int(counts.sum()), int(lengths.sum())
    if values + 1 != len(out_offsets):
        raise refuse.wrong_total("values and one", found=values + 1, expected=len(out_offsets))
    if total != len(out):
        raise refuse.wrong_total("the values' bytes", found=total, expected=len(out))
    if out_offsets.itemsize == 4 and total > 2**31 - 1:
        raise too_large(total)
    if out_offsets.itemsize == 4:
        _join[cython.int](data, starts, counts, wide, lengths, firsts, out_offsets, out)
    else:
        _join[cython.longlong](data, starts, counts, wide, lengths, firsts, out_offsets, out)


def variable_at(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    offset_bits: object,
    chunks: cython.const[cython.longlong][::1],
    values: cython.const[cython.longlong][::1],
) -> tuple:
    """See the twin."""
    wide: cython.bint = _check(starts, sizes, counts, offset_bits)
    refuse.other_length("values", values.shape[0], chunks.shape[0])
    lookups: cython.Py_ssize_t = chunks.shape[0]
    have: cython.longlong = data.shape[0]
    offset_array = np.zeros(lookups + 1, dtype=np.int64)
    from_array = np.empty(lookups + 1, dtype=np.int64)
    offsets: cython.longlong[::1] = offset_array
    firsts: cython.longlong[::1] = from_array
    i: cython.Py_ssize_t
    c: cython.longlong = 0
    missing: cython.Py_ssize_t = -1
    outside: cython.bint = False
    bad: cython.bint = False
    length: cython.longlong = 0
    with cython.nogil:
        for i in range(lookups):
            c = chunks[i]
            if c < 0 or c >= counts.shape[0] or values[i] < 0 or values[i] >= counts[c]:
                missing = i
                break
            outside = sizes[c] < 0 or starts[c] < 0 or starts[c] > have - sizes[c]
            if outside:
                break
            bad = not _ends(
                cython.address(data[0]) + starts[c],
                sizes[c],
                counts[c],
                wide,
                values[i],
                values[i] + 1,
                cython.address(length),
                cython.address(firsts[i]),
            )
            if bad:
                break
            firsts[i] += starts[c]
            offsets[i + 1] = offsets[i] + length
    if missing >= 0:
        raise bad_value(missing, chunks[missing], values[missing])
    if outside:
        raise refuse.range_outside("chunk", c, start=starts[c], size=sizes[c], have=have)
    if bad:
        raise bad_variable(c)
    taken = np.empty(offsets[lookups], dtype=np.uint8)
    out: cython.uchar[::1] = taken
    with cython.nogil:
        for i in range(lookups):
            _copy(cython.address(out[0]) + offsets[i], cython.address(data[0]) + firsts[i], offsets[i + 1] - offsets[i])
    return offset_array, taken


@cython.cfunc
def _split(
    offsets: cython.const[Offset][::1],
    data: cython.const[cython.uchar][::1],
    bounds: cython.const[cython.longlong][::1],
    wide: cython.bint,
    starts: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> object:
    width: cython.longlong = 8 if wide else 4
    i: cython.Py_ssize_t
    k: cython.longlong
    first: cython.longlong
    table: cython.longlong
    length: cython.longlong
    long: cython.ulonglong = 0
    short: cython.uint = 0
    to: cython.pointer(cython.uchar)
    with cython.nogil:
        for i in range(starts.shape[0]):
            to = cython.address(out[0]) + starts[i]
            first = offsets[bounds[i]]
            table = width * (bounds[i + 1] - bounds[i] + 1)
            if wide:
                for k in range(bounds[i + 1] - bounds[i] + 1):
                    long = offsets[bounds[i] + k] - first + table
                    memcpy(to + 8 * k, cython.address(long), 8)
            else:
                for k in range(bounds[i + 1] - bounds[i] + 1):
                    short = cython.cast(cython.uint, offsets[bounds[i] + k] - first + table)
                    memcpy(to + 4 * k, cython.address(short), 4)
            length = offsets[bounds[i + 1]] - first
            memcpy(to + table, cython.address(data[0]) + first, length)
            memset(to + table + length, FILL, -length & (width - 1))
    return None


def split_variable(offsets, data, bounds, offset_bits) -> tuple:
    """See the twin."""
    if offset_bits not in (32, 64):
        raise needs_bits("offsets", offset_bits, "32 or 64")
    check_offsets(offsets, len(data))
    check_bounds(bounds, len(offsets) - 1)
    wide: cython.bint = offset_bits == 64
    width = offset_bits // 8
    ends = offsets[bounds].astype(np.int64)
    tables = width * (bounds[1:] - bounds[: max(len(bounds) - 1, 0)] + 1)
    lengths = ends[1:] - ends[: max(len(ends) - 1, 0)]
    if not wide and len(lengths) and int((tables + lengths).max()) > 2**32 - 1:
        raise too_large(int(lengths[np.argmax(tables + lengths)]))
    sizes = tables + (lengths + width - 1) // width * width
    starts = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), dtype=np.uint8)
    if offsets.itemsize == 4:
        _split[cython.int](offsets, data, bounds, wide, starts, out)
    else:
        _split[cython.longlong](offsets, data, bounds, wide, starts, out)
    return out, starts, sizes
