"""Single rows of mini-block pages without lists, compiled."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy

from lancelet.errors import Corrupt
from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import bad_chunk, check_buffer_count, short_buffer, unequal_levels


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _number(source: cython.pointer(cython.const[cython.uchar]), width: cython.int) -> cython.longlong:
    """A little-endian number of 2 or 4 bytes."""
    short: cython.ushort = 0
    long: cython.uint = 0
    if width == 2:
        memcpy(cython.address(short), source, 2)
        return short
    memcpy(cython.address(long), source, 4)
    return long


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _chunk_of(
    first_rows: cython.pointer(cython.const[cython.longlong]),
    chunks: cython.Py_ssize_t,
    row: cython.longlong,
    hint: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The last chunk whose first row is not behind ``row``; rows mostly ascend, so the last answer is tried first."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = chunks
    middle: cython.Py_ssize_t
    if first_rows[hint] <= row:
        if row < first_rows[hint + 1]:
            return hint
        low = hint
    while high - low > 1:
        middle = (low + high) >> 1
        if first_rows[middle] <= row:
            low = middle
        else:
            high = middle
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_header(
    data: cython.pointer(cython.const[cython.uchar]),
    start: cython.longlong,
    size: cython.longlong,
    levels: cython.int,
    buffers: cython.int,
    width: cython.int,
    stride: cython.Py_ssize_t,
    places: cython.pointer(cython.longlong),
    lengths: cython.pointer(cython.longlong),
) -> cython.bint:
    """Places and sizes of a chunk's buffers, ``stride`` entries apart; false where they do not fit."""
    k: cython.int
    step: cython.int
    length: cython.longlong
    at: cython.longlong = 2
    place: cython.longlong = (
        2 + 2 * levels + cython.cast(cython.longlong, width) * (buffers - levels) + 7
    ) & ~cython.cast(cython.longlong, 7)
    if size < place:
        return False
    for k in range(buffers):
        step = 2 if k < levels else width
        length = _number(data + start + at, step)
        if length > size - place:
            return False
        places[k * stride] = start + place
        lengths[k * stride] = length
        at += step
        place += (length + 7) & ~cython.cast(cython.longlong, 7)
    return True


def find(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    first_rows: cython.const[cython.longlong][::1],
    rows: cython.const[cython.longlong][::1],
    has_def: cython.bint,
    num_buffers: object,
    large: cython.bint,
) -> tuple:
    """See the twin."""
    check_buffer_count(num_buffers)
    count: cython.Py_ssize_t = rows.shape[0]
    chunks: cython.Py_ssize_t = starts.shape[0]
    levels: cython.int = has_def
    buffers: cython.int = levels + num_buffers
    width: cython.int = 4 if large else 2
    i: cython.Py_ssize_t
    chunk: cython.Py_ssize_t = 0
    total: cython.longlong
    outside: cython.Py_ssize_t = -1
    away: cython.Py_ssize_t = -1
    bad: cython.Py_ssize_t = -1
    unequal: cython.Py_ssize_t = -1
    refuse.other_length("sizes", sizes.shape[0], chunks)
    refuse.other_length("first_rows", first_rows.shape[0], chunks + 1)
    total = first_rows[chunks] if chunks else 0
    all_counts, all_within = np.zeros((2, count), dtype=np.int64)
    all_places, all_lengths = np.zeros((2, buffers, count), dtype=np.int64)
    counts: cython.longlong[::1] = all_counts
    within: cython.longlong[::1] = all_within
    places: cython.longlong[:, ::1] = all_places
    lengths: cython.longlong[:, ::1] = all_lengths
    if count and buffers:
        with cython.nogil:
            for i in range(count):
                if rows[i] < 0 or rows[i] >= total:
                    outside = i
                    break
                chunk = _chunk_of(cython.address(first_rows[0]), chunks, rows[i], chunk)
                counts[i] = first_rows[chunk + 1] - first_rows[chunk]
                within[i] = rows[i] - first_rows[chunk]
                if sizes[chunk] < 0 or starts[chunk] < 0 or starts[chunk] > data.shape[0] - sizes[chunk]:
                    away = chunk
                    break
                if not _read_header(
                    cython.address(data[0]),
                    starts[chunk],
                    sizes[chunk],
                    levels,
                    buffers,
                    width,
                    count,
                    cython.address(places[0, i]),
                    cython.address(lengths[0, i]),
                ):
                    bad = chunk
                    break
                if levels and _number(cython.address(data[0]) + starts[chunk], 2) != counts[i]:
                    unequal = chunk
                    break
    if outside >= 0:
        raise refuse.bad_lookup(outside, "page", 0, 1, rows[outside], total)
    if away >= 0:
        raise refuse.range_outside("chunk", away, start=starts[away], size=sizes[away], have=data.shape[0])
    if bad >= 0:
        raise bad_chunk(bad, sizes[bad])
    if unequal >= 0:
        raise unequal_levels(unequal, _number(cython.address(data[0]) + starts[unequal], 2), counts[i])
    return all_counts, all_within, all_places, all_lengths


def values_at(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    item_size: cython.longlong,
    blocks: cython.const[cython.longlong][::1],
    indices: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> None:
    """See the twin."""
    count: cython.Py_ssize_t = blocks.shape[0]
    have: cython.longlong = data.shape[0]
    i: cython.Py_ssize_t
    block: cython.longlong = 0
    unknown: cython.Py_ssize_t = -1
    away: cython.Py_ssize_t = -1
    short: cython.Py_ssize_t = -1
    if item_size < 1:
        raise refuse.wrong_item_size(item_size, "at least 1")
    refuse.other_length("sizes", sizes.shape[0], starts.shape[0])
    refuse.other_length("indices", indices.shape[0], count)
    refuse.other_length("out", out.shape[0], count * item_size)
    if count == 0:
        return
    source: cython.pointer(cython.const[cython.uchar]) = cython.address(data[0])
    to: cython.pointer(cython.uchar) = cython.address(out[0])
    with cython.nogil:
        for i in range(count):
            block = blocks[i]
            if block < 0 or block >= starts.shape[0] or indices[i] < 0:
                unknown = i
                break
            if sizes[block] < 0 or starts[block] < 0 or starts[block] > have - sizes[block]:
                away = i
                break
            if indices[i] >= sizes[block] // item_size:
                short = i
                break
            # A constant size makes a plain load and store of the copy.
            if item_size == 8:
                memcpy(to + 8 * i, source + starts[block] + 8 * indices[i], 8)
            elif item_size == 4:
                memcpy(to + 4 * i, source + starts[block] + 4 * indices[i], 4)
            elif item_size == 2:
                memcpy(to + 2 * i, source + starts[block] + 2 * indices[i], 2)
            else:
                memcpy(to + item_size * i, source + starts[block] + item_size * indices[i], item_size)
    if unknown >= 0:
        raise refuse.bad_lookup(unknown, "buffer", block, starts.shape[0], indices[unknown], 0)
    if away >= 0:
        raise refuse.range_outside("buffer", block, start=starts[block], size=sizes[block], have=have)
    if short >= 0:
        raise short_buffer(block, sizes[block], indices[short], item_size)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _level(
    source: cython.pointer(cython.const[cython.uchar]), width: cython.int, index: cython.Py_ssize_t
) -> cython.ushort:
    """One value of a block of 16-bit words: 64 lanes, 16 values each (see ``bitpack``)."""
    mirrored: cython.Py_ssize_t = ((index & 127) >> 4) & 4
    row: cython.Py_ssize_t = (index >> 7) | ((mirrored >> 2) << 3)
    lane: cython.Py_ssize_t = index & 63
    bit: cython.Py_ssize_t = row * width
    low: cython.ushort = 0
    high: cython.ushort = 0
    both: cython.uint
    if width == 0:
        return 0
    memcpy(cython.address(low), source + ((bit >> 4) * 64 + lane) * 2, 2)
    both = low
    if (bit & 15) + width > 16:
        memcpy(cython.address(high), source + (((bit >> 4) + 1) * 64 + lane) * 2, 2)
        both |= cython.cast(cython.uint, high) << 16
    return cython.cast(cython.ushort, (both >> (bit & 15)) & ((cython.cast(cython.uint, 1) << width) - 1))


def levels_at(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    width: cython.int,
    indices: cython.const[cython.longlong][::1],
    out: cython.ushort[::1],
) -> None:
    """See the twin."""
    count: cython.Py_ssize_t = starts.shape[0]
    have: cython.longlong = data.shape[0]
    packed: cython.longlong = 128 * cython.cast(cython.longlong, width)
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    whole: cython.longlong
    left: cython.longlong
    raw: cython.bint
    for name, length in (
        ("sizes", sizes.shape[0]),
        ("counts", counts.shape[0]),
        ("indices", indices.shape[0]),
        ("out", out.shape[0]),
    ):
        refuse.other_length(name, length, count)
    if not 0 <= width <= 16:
        raise Corrupt(f"levels are {width} bits wide, expected at most 16")
    if count == 0:
        return
    source: cython.pointer(cython.const[cython.uchar]) = cython.address(data[0]) if have else cython.NULL
    with cython.nogil:
        for i in range(count):
            whole = counts[i] >> 10
            left = counts[i] & 1023
            raw = left > 0 and sizes[i] == whole * packed + 2 * left
            if starts[i] < 0 or starts[i] > have - sizes[i] or indices[i] < 0 or indices[i] >= counts[i]:
                bad = i
                break
            if not raw and sizes[i] != (whole + (left > 0)) * packed:
                bad = i
                break
            if raw and indices[i] >= whole << 10:
                memcpy(
                    cython.address(out[i]),
                    source + starts[i] + whole * packed + 2 * (indices[i] - (whole << 10)),
                    2,
                )
            else:
                out[i] = _level(source + starts[i] + (indices[i] >> 10) * packed, width, indices[i] & 1023)
    if bad >= 0:
        raise short_buffer(bad, sizes[bad], indices[bad], 2)
