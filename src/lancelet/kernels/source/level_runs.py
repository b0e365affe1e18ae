"""Run lengths as the codec of levels, compiled."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import bad_runs, check_bounds


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _decode(
    chunk: cython.pointer(cython.const[cython.uchar]),
    size: cython.longlong,
    count: cython.longlong,
    out: cython.pointer(cython.ushort),
) -> cython.bint:
    used: cython.ulonglong = 0
    runs: cython.longlong
    i: cython.longlong
    k: cython.longlong
    length: cython.longlong
    value: cython.ushort = 0
    at: cython.longlong = 0
    if size < 8:
        return False
    memcpy(cython.address(used), chunk, 8)
    if (
        used & 1
        or used > cython.cast(cython.ulonglong, size)
        or 8 + cython.cast(cython.longlong, used >> 1) * 3 != size
    ):
        return False
    runs = used >> 1
    for i in range(runs):
        length = chunk[8 + used + i]
        if length > count - at:
            return False
        memcpy(cython.address(value), chunk + 8 + 2 * i, 2)
        for k in range(length):
            out[at + k] = value
        at += length
    return at == count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _runs(levels: cython.pointer(cython.const[cython.ushort]), count: cython.longlong) -> cython.longlong:
    """The number of runs of at most 255 levels."""
    i: cython.longlong
    runs: cython.longlong = 0
    length: cython.longlong = 0
    for i in range(count):
        if i == 0 or levels[i] != levels[i - 1] or length == 255:
            runs += 1
            length = 0
        length += 1
    return runs


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _encode(
    levels: cython.pointer(cython.const[cython.ushort]),
    count: cython.longlong,
    runs: cython.longlong,
    out: cython.pointer(cython.uchar),
) -> cython.void:
    used: cython.ulonglong = 2 * runs
    i: cython.longlong
    run: cython.longlong = -1
    length: cython.longlong = 0
    memcpy(out, cython.address(used), 8)
    for i in range(count):
        if i == 0 or levels[i] != levels[i - 1] or length == 255:
            run += 1
            length = 0
            memcpy(out + 8 + 2 * run, levels + i, 2)
        length += 1
        out[8 + used + run] = cython.cast(cython.uchar, length)


def decode_rle_levels(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    out: cython.ushort[::1],
) -> None:
    """See the twin."""
    chunks: cython.Py_ssize_t = starts.shape[0]
    have: cython.longlong = data.shape[0]
    room: cython.longlong = out.shape[0]
    i: cython.Py_ssize_t
    at: cython.longlong = 0
    outside: cython.Py_ssize_t = -1
    bad: cython.Py_ssize_t = -1
    refuse.other_length("sizes", sizes.shape[0], chunks)
    refuse.other_length("counts", counts.shape[0], chunks)
    for i in range(chunks):
        if counts[i] < 0 or counts[i] > room - at:
            at = -1
            break
        at += counts[i]
    if at != room:
        raise refuse.wrong_total("the chunks' counts", found=sum(np.asarray(counts).tolist()), expected=room)
    at = 0
    with cython.nogil:
        for i in range(chunks):
            if sizes[i] < 0 or starts[i] < 0 or starts[i] > have - sizes[i]:
                outside = i
                break
            if not _decode(cython.address(data[0]) + starts[i], sizes[i], counts[i], cython.address(out[0]) + at):
                bad = i
                break
            at += counts[i]
    if outside >= 0:
        raise refuse.range_outside("chunk", outside, start=starts[outside], size=sizes[outside], have=have)
    if bad >= 0:
        raise bad_runs(bad)


def encode_rle_levels(levels: cython.const[cython.ushort][::1], bounds: cython.const[cython.longlong][::1]) -> tuple:
    """See the twin."""
    check_bounds(np.asarray(bounds), levels.shape[0])
    chunks: cython.Py_ssize_t = max(bounds.shape[0] - 1, 0)
    i: cython.Py_ssize_t
    all_sizes = np.empty(chunks, dtype=np.int64)
    sizes: cython.longlong[::1] = all_sizes
    total: cython.longlong = 0
    with cython.nogil:
        for i in range(chunks):
            sizes[i] = 8 + 3 * _runs(cython.address(levels[0]) + bounds[i], bounds[i + 1] - bounds[i])
            total += sizes[i]
    data = np.empty(total, dtype=np.uint8)
    out: cython.uchar[::1] = data
    total = 0
    with cython.nogil:
        for i in range(chunks):
            _encode(
                cython.address(levels[0]) + bounds[i],
                bounds[i + 1] - bounds[i],
                (sizes[i] - 8) // 3,
                cython.address(out[0]) + total,
            )
            total += sizes[i]
    return data, np.cumsum(all_sizes) - all_sizes, all_sizes
