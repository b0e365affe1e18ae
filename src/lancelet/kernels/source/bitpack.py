"""Bit packing in FastLanes order, compiled.

A block holds 1024 values of T bits (T = 8, 16, 32 or 64) in 128 * width bytes. It is worked on as LANES = 1024 / T
independent lanes side by side: lane L owns every LANES-th word, and the T values of a lane ("rows") follow each
other in those words without gaps. Row r of lane L is value 128 * (r % 8) + 16 * reverse(r / 8) + L of the block,
where reverse mirrors three bits. So one row of all lanes is a run of consecutive values: the inner loops are SIMD.
"""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy, memset

from lancelet.kernels import refuse

Word = cython.fused_type(cython.uchar, cython.ushort, cython.uint, cython.ulonglong)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _row_start(row: cython.Py_ssize_t) -> cython.Py_ssize_t:
    eighth: cython.Py_ssize_t = row >> 3
    mirrored: cython.Py_ssize_t = ((eighth & 1) << 2) | (eighth & 2) | (eighth >> 2)
    return ((row & 7) << 7) + (mirrored << 4)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _unpack(source: cython.pointer(Word), width: cython.int, target: cython.pointer(Word)) -> cython.void:
    """One whole block; both sides aligned. Rows go in the order of their values, since memory likes to be filled so."""
    probe: Word = 0
    lanes: cython.Py_ssize_t = 128 // cython.sizeof(probe)
    bits: cython.int = 8 * cython.sizeof(probe)
    row: cython.Py_ssize_t
    group: cython.Py_ssize_t
    start: cython.Py_ssize_t
    lane: cython.Py_ssize_t
    shift: cython.int
    low: cython.pointer(Word)
    high: cython.pointer(Word)
    to: cython.pointer(Word)
    if width == 0:
        memset(target, 0, 1024 * cython.sizeof(probe))
        return
    mask: Word = probe - 1
    mask = mask >> (bits - width)
    for group in range(bits):
        start = group * lanes
        row = (start >> 7) | (_row_start((start & 127) >> 4 << 3) >> 4 << 3)
        shift = (row * width) & (bits - 1)
        low = source + (row * width) // bits * lanes
        high = low + lanes
        to = target + start
        if shift + width <= bits:
            for lane in range(lanes):
                to[lane] = (low[lane] >> shift) & mask
        else:
            for lane in range(lanes):
                to[lane] = ((low[lane] >> shift) | (high[lane] << (bits - shift))) & mask


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pack(source: cython.pointer(Word), width: cython.int, target: cython.pointer(Word)) -> cython.void:
    """One whole block of values that fit the width; both sides aligned."""
    probe: Word = 0
    lanes: cython.Py_ssize_t = 128 // cython.sizeof(probe)
    bits: cython.int = 8 * cython.sizeof(probe)
    row: cython.Py_ssize_t
    lane: cython.Py_ssize_t
    shift: cython.int
    low: cython.pointer(Word)
    high: cython.pointer(Word)
    values: cython.pointer(Word)
    if width == 0:
        return
    for row in range(bits):
        shift = (row * width) & (bits - 1)
        low = target + (row * width) // bits * lanes
        high = low + lanes
        values = source + _row_start(row)
        if shift == 0:
            for lane in range(lanes):
                low[lane] = values[lane]
        else:
            for lane in range(lanes):
                low[lane] = low[lane] | (values[lane] << shift)
        if shift + width > bits:
            for lane in range(lanes):
                high[lane] = values[lane] >> (bits - shift)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _unpack_any(
    source: cython.pointer(cython.uchar),
    width: cython.int,
    count: cython.Py_ssize_t,
    target: cython.pointer(Word),
) -> cython.void:
    """The first ``count`` values of a block that may lie anywhere."""
    probe: Word = 0
    packed: Word[1024]
    values: Word[1024]
    # A copy makes the block aligned, and is read in order: memory likes that better than rows here and there.
    memcpy(packed, source, 128 * width)
    if count == 1024:
        _unpack(packed, width, target)
    else:
        _unpack(packed, width, values)
        memcpy(target, values, count * cython.sizeof(probe))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _get(
    source: cython.pointer(cython.uchar), width: cython.int, index: cython.Py_ssize_t, target: cython.pointer(Word)
) -> cython.void:
    """One value of a block that may lie anywhere, without unpacking the block."""
    probe: Word = 0
    lanes: cython.Py_ssize_t = 128 // cython.sizeof(probe)
    bits: cython.int = 8 * cython.sizeof(probe)
    # The inverse of _row_start: the mirrored bits are its own inverse.
    mirrored: cython.Py_ssize_t = (index & 127) >> 4 & ~((lanes >> 4) - 1)
    row: cython.Py_ssize_t = index >> 7 | ((mirrored & 1) << 2 | mirrored & 2 | mirrored >> 2) << 3
    lane: cython.Py_ssize_t = index & (lanes - 1)
    shift: cython.int = (row * width) & (bits - 1)
    word: cython.Py_ssize_t = (row * width) // bits * lanes + lane
    low: Word = 0
    high: Word = 0
    mask: Word = probe - 1
    if width == 0:
        target[0] = 0
        return
    memcpy(cython.address(low), source + word * cython.sizeof(probe), cython.sizeof(probe))
    low = low >> shift
    if shift + width > bits:
        memcpy(cython.address(high), source + (word + lanes) * cython.sizeof(probe), cython.sizeof(probe))
        low = low | (high << (bits - shift))
    mask = mask >> (bits - width)
    target[0] = low & mask


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _width_of(values: cython.pointer(Word), count: cython.Py_ssize_t) -> cython.int:
    """Bits that the largest of the values needs."""
    seen: Word = 0
    i: cython.Py_ssize_t
    for i in range(count):
        seen = seen | values[i]
    wide: cython.ulonglong = seen
    width: cython.int = 0
    while wide:
        wide >>= 1
        width += 1
    return width


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _checked_width(
    data: cython.pointer(cython.uchar),
    have: cython.longlong,
    start: cython.longlong,
    width: cython.int,
    size: cython.longlong,
    probe: Word,
) -> cython.int:
    """The width of a block that lies within the data, or -1. A size of 0 or more says that the width is in a header."""
    bits: cython.int = 8 * cython.sizeof(probe)
    word: cython.int = cython.sizeof(probe)
    header: Word = 0
    if start < 0:
        return -1
    if width >= 0:
        return width if width <= bits and start <= have - 128 * width else -1
    if size < word or start > have - size:
        return -1
    memcpy(cython.address(header), data + start, word)
    if header > bits or size < word + 128 * cython.cast(cython.longlong, header):
        return -1
    return cython.cast(cython.int, header)


def _unpack_all(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    widths: cython.const[cython.uchar][::1],
    sizes: cython.const[cython.longlong][::1],
    inline: cython.bint,
    counts: cython.const[cython.longlong][::1],
    out: Word[::1],
) -> object:
    probe: Word = 0
    base: cython.p_uchar = cython.cast(cython.p_uchar, cython.address(data[0]))
    header: cython.int = cython.sizeof(probe) if inline else 0
    have: cython.longlong = data.shape[0]
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    width: cython.int
    total: cython.longlong = 0
    at: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(starts.shape[0]):
            width = _checked_width(base, have, starts[i], -1 if inline else widths[i], sizes[i] if inline else 0, probe)
            if width < 0 or counts[i] < 0 or counts[i] > 1024:
                bad = i
                break
            total += counts[i]
        if bad < 0 and total == out.shape[0]:
            for i in range(starts.shape[0]):
                width = _checked_width(
                    base, have, starts[i], -1 if inline else widths[i], sizes[i] if inline else 0, probe
                )
                if counts[i] > 0:
                    _unpack_any(base + starts[i] + header, width, counts[i], cython.address(out[at]))
                at += counts[i]
    if bad >= 0:
        stated, size = (None, sizes[bad]) if inline else (widths[bad], None)
        raise refuse.bad_block(bad, np.asarray(data), starts[bad], stated, size, cython.sizeof(probe), counts[bad])
    if total != out.shape[0]:
        raise refuse.wrong_total("the blocks' counts", found=total, expected=out.shape[0])


def _get_all(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    widths: cython.const[cython.uchar][::1],
    sizes: cython.const[cython.longlong][::1],
    inline: cython.bint,
    blocks: cython.const[cython.longlong][::1],
    indices: cython.const[cython.longlong][::1],
    out: Word[::1],
) -> object:
    probe: Word = 0
    base: cython.p_uchar = cython.cast(cython.p_uchar, cython.address(data[0]))
    header: cython.int = cython.sizeof(probe) if inline else 0
    have: cython.longlong = data.shape[0]
    i: cython.Py_ssize_t
    block: cython.longlong = 0
    bad: cython.Py_ssize_t = -1
    width: cython.int = 0
    with cython.nogil:
        for i in range(blocks.shape[0]):
            block = blocks[i]
            if block < 0 or block >= starts.shape[0] or indices[i] < 0 or indices[i] >= 1024:
                bad = i
                break
            width = _checked_width(
                base, have, starts[block], -1 if inline else widths[block], sizes[block] if inline else 0, probe
            )
            if width < 0:
                bad = i
                break
            _get(base + starts[block] + header, width, indices[i], cython.address(out[i]))
    if bad >= 0:
        if width >= 0:
            raise refuse.bad_lookup(bad, "block", block, starts.shape[0], indices[bad], 1024)
        stated, size = (None, sizes[block]) if inline else (widths[block], None)
        raise refuse.bad_block(block, np.asarray(data), starts[block], stated, size, cython.sizeof(probe), 0)


def _pack_all(
    values: cython.const[Word][::1],
    widths: cython.const[cython.uchar][::1],
    out: cython.uchar[::1],
    starts: cython.longlong[::1],
    inline: cython.bint,
) -> object:
    probe: Word = 0
    padded: Word[1024]
    packed: Word[1024]
    bits: cython.int = 8 * cython.sizeof(probe)
    header: cython.int = cython.sizeof(probe) if inline else 0
    word: Word
    total: cython.Py_ssize_t = values.shape[0]
    source: cython.pointer(Word)
    target: cython.p_uchar = cython.address(out[0])
    i: cython.Py_ssize_t
    count: cython.Py_ssize_t
    needed: cython.int = 0
    width: cython.int = 0
    at: cython.longlong = 0
    bad: cython.Py_ssize_t = -1
    with cython.nogil:
        for i in range((total + 1023) >> 10):
            count = min(1024, total - (i << 10))
            source = cython.cast("Word *", cython.address(values[i << 10]))
            needed = _width_of(source, count)
            width = needed if inline else widths[i]
            if needed > width or width > bits or at + header + 128 * width > out.shape[0]:
                bad = i
                break
            if inline:
                starts[i] = at
                word = width
                memcpy(target + at, cython.address(word), header)
                at += header
            if count < 1024:
                memset(padded, 0, cython.sizeof(padded))
                memcpy(padded, source, count * cython.sizeof(probe))
                source = padded
            if cython.cast(cython.size_t, target + at) & (cython.sizeof(probe) - 1):
                _pack(source, width, packed)
                memcpy(target + at, packed, 128 * width)
            else:
                _pack(source, width, cython.cast("Word *", target + at))
            at += 128 * width
    if bad >= 0:
        raise refuse.cannot_pack(bad, needed, width, bits, at + header + 128 * width, out.shape[0])
    return at


def _widths_of(values: cython.const[Word][::1], widths: cython.uchar[::1]) -> object:
    i: cython.Py_ssize_t
    total: cython.Py_ssize_t = values.shape[0]
    with cython.nogil:
        for i in range(widths.shape[0]):
            widths[i] = _width_of(cython.cast("Word *", cython.address(values[i << 10])), min(1024, total - (i << 10)))


def _by_item_size(kernel) -> dict:
    """The kernel's version for each size of values, chosen by hand because Cython's own choice takes microseconds."""
    names = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
    return {size: kernel[name] for size, name in names.items()}


_UNPACK = _by_item_size(_unpack_all)
_GET = _by_item_size(_get_all)
_PACK = _by_item_size(_pack_all)
_WIDTHS_OF = _by_item_size(_widths_of)
# Stand in for what a kind of block does not have.
_NO_WIDTHS, _NO_SIZES, _NO_STARTS = np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)


def _version(versions: dict, array) -> object:
    try:
        return versions[array.itemsize]
    except KeyError:
        raise refuse.wrong_item_size(array.itemsize, "1, 2, 4 or 8") from None


def block_widths(values):
    """See the twin."""
    widths = np.empty((len(values) + 1023) // 1024, np.uint8)
    _version(_WIDTHS_OF, values)(values, widths)
    return widths


def pack_blocks(values, widths, out):
    """See the twin."""
    refuse.other_length("widths", len(widths), (len(values) + 1023) // 1024)
    return _version(_PACK, values)(values, widths, out, _NO_STARTS, False)


def pack_inline(values, out, starts):
    """See the twin."""
    refuse.other_length("starts", len(starts), (len(values) + 1023) // 1024)
    return _version(_PACK, values)(values, _NO_WIDTHS, out, starts, True)


def unpack_blocks(data, starts, widths, counts, out) -> None:
    """See the twin."""
    refuse.other_length("widths", len(widths), len(starts))
    refuse.other_length("counts", len(counts), len(starts))
    _version(_UNPACK, out)(data, starts, widths, _NO_SIZES, False, counts, out)


def unpack_inline(data, starts, sizes, counts, out) -> None:
    """See the twin."""
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("counts", len(counts), len(starts))
    _version(_UNPACK, out)(data, starts, _NO_WIDTHS, sizes, True, counts, out)


def unpack_at(data, starts, widths, blocks, indices, out) -> None:
    """See the twin."""
    refuse.other_length("widths", len(widths), len(starts))
    refuse.other_length("indices", len(indices), len(blocks))
    refuse.other_length("out", len(out), len(blocks))
    _version(_GET, out)(data, starts, widths, _NO_SIZES, False, blocks, indices, out)


def unpack_inline_at(data, starts, sizes, blocks, indices, out) -> None:
    """See the twin."""
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("indices", len(indices), len(blocks))
    refuse.other_length("out", len(out), len(blocks))
    _version(_GET, out)(data, starts, _NO_WIDTHS, sizes, True, blocks, indices, out)
