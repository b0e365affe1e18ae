"""Levels of chunks packed to one width, compiled: blocks of 16-bit words have 64 lanes of 16 rows (see ``bitpack``)."""

import cython
from cython.cimports.libc.string import memcpy, memset

from lancelet.errors import Corrupt
from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import bad_packed_levels


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _unpack(
    source: cython.pointer(cython.const[cython.ushort]), width: cython.int, target: cython.pointer(cython.ushort)
) -> cython.void:
    """One whole block; row ``r`` holds 64 levels from 128 * (r % 8) on, the upper eight rows 64 further."""
    row: cython.int
    lane: cython.int
    shift: cython.int
    low: cython.pointer(cython.const[cython.ushort])
    to: cython.pointer(cython.ushort)
    mask: cython.ushort = cython.cast(cython.ushort, (cython.cast(cython.uint, 1) << width) - 1)
    if width == 0:
        memset(target, 0, 2048)
        return
    for row in range(16):
        shift = (row * width) & 15
        low = source + ((row * width) >> 4) * 64
        to = target + ((row & 7) << 7) + ((row >> 3) << 6)
        if shift + width <= 16:
            for lane in range(64):
                to[lane] = (low[lane] >> shift) & mask
        else:
            for lane in range(64):
                to[lane] = ((low[lane] >> shift) | (low[lane + 64] << (16 - shift))) & mask


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _unpack_some(
    source: cython.pointer(cython.const[cython.uchar]),
    width: cython.int,
    count: cython.longlong,
    target: cython.pointer(cython.ushort),
) -> cython.void:
    """The first ``count`` levels of a block that may lie anywhere."""
    packed: cython.ushort[1024]
    levels: cython.ushort[1024]
    words: cython.pointer(cython.const[cython.ushort]) = cython.cast("const unsigned short *", source)
    if cython.cast(cython.size_t, source) & 1:
        memcpy(packed, source, 128 * width)
        words = packed
    if count == 1024:
        _unpack(words, width, target)
    else:
        _unpack(words, width, levels)
        memcpy(target, levels, 2 * count)


def unpack(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    width: cython.int,
    out: cython.ushort[::1],
) -> None:
    """See the twin."""
    have: cython.longlong = data.shape[0]
    room: cython.longlong = out.shape[0]
    packed: cython.longlong = 128 * cython.cast(cython.longlong, width)
    i: cython.Py_ssize_t
    at: cython.longlong = 0
    bad: cython.Py_ssize_t = -1
    left: cython.longlong
    coded: cython.longlong
    expected: cython.longlong
    done: cython.longlong
    is_raw: cython.bint
    refuse.other_length("sizes", sizes.shape[0], starts.shape[0])
    refuse.other_length("counts", counts.shape[0], starts.shape[0])
    if not 0 <= width <= 16:
        raise Corrupt(f"levels are {width} bits wide, expected at most 16")
    with cython.nogil:
        for i in range(starts.shape[0]):
            left = counts[i] & 1023
            is_raw = left > 0 and sizes[i] == (counts[i] >> 10) * packed + 2 * left
            coded = counts[i] - left if is_raw else counts[i]
            expected = ((coded + 1023) >> 10) * packed + 2 * (counts[i] - coded)
            if counts[i] < 0 or counts[i] > room - at or sizes[i] != expected:
                bad = i
                break
            if starts[i] < 0 or starts[i] > have - sizes[i]:
                bad = i
                break
            done = 0
            while done < coded:
                _unpack_some(
                    cython.address(data[0]) + starts[i] + (done >> 10) * packed,
                    width,
                    min(coded - done, 1024),
                    cython.address(out[0]) + at + done,
                )
                done += 1024
            if is_raw:
                memcpy(
                    cython.address(out[0]) + at + coded,
                    cython.address(data[0]) + starts[i] + sizes[i] - 2 * left,
                    2 * left,
                )
            at += counts[i]
    if bad >= 0:
        raise bad_packed_levels(bad, sizes[bad], counts[bad], width)
    if at != room:
        raise refuse.wrong_total("the buffers' counts", found=at, expected=room)
