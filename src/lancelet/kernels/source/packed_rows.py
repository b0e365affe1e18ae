"""Rows of packed structs, compiled: one pass finds all fields, another fills one of them."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_offsets
from lancelet.kernels.refuse_rows import bad_row, check_widths


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _length(source: cython.pointer(cython.const[cython.uchar]), width: cython.longlong) -> cython.ulonglong:
    """A little-endian number of 4 or 8 bytes."""
    short: cython.uint = 0
    long: cython.ulonglong = 0
    if width == 4:
        memcpy(cython.address(short), source, 4)
        return short
    memcpy(cython.address(long), source, 8)
    return long


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _row(
    data: cython.pointer(cython.const[cython.uchar]),
    at: cython.longlong,
    end: cython.longlong,
    widths: cython.const[cython.longlong][::1],
    starts: cython.longlong[:, ::1],
    sizes: cython.longlong[:, ::1],
    row: cython.Py_ssize_t,
) -> cython.bint:
    """Find the fields of one row; false if they do not fill it."""
    field: cython.Py_ssize_t
    width: cython.longlong
    size: cython.ulonglong
    if at == end:
        for field in range(widths.shape[0]):
            starts[field, row] = at
            sizes[field, row] = 0
        return True
    for field in range(widths.shape[0]):
        width = widths[field]
        if width < 0:
            if -width > end - at:
                return False
            size = _length(data + at, -width)
            at -= width
        else:
            size = cython.cast(cython.ulonglong, width)
        if size > cython.cast(cython.ulonglong, end - at):
            return False
        starts[field, row] = at
        sizes[field, row] = cython.cast(cython.longlong, size)
        at += cython.cast(cython.longlong, size)
    return at == end


def field_places(
    data: cython.const[cython.uchar][::1],
    offsets: cython.const[cython.longlong][::1],
    widths: cython.const[cython.longlong][::1],
) -> tuple:
    """See the twin."""
    check_offsets(np.asarray(offsets), data.shape[0])
    check_widths(np.asarray(widths))
    rows: cython.Py_ssize_t = offsets.shape[0] - 1
    row: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    all_starts = np.empty((widths.shape[0], rows), dtype=np.int64)
    all_sizes = np.empty((widths.shape[0], rows), dtype=np.int64)
    starts: cython.longlong[:, ::1] = all_starts
    sizes: cython.longlong[:, ::1] = all_sizes
    if rows == 0 or widths.shape[0] == 0:
        for row in range(rows):
            if offsets[row] != offsets[row + 1]:
                raise bad_row(row)
        return all_starts, all_sizes
    # Without bytes there is no address to take; nor does any row look at one then.
    base: cython.pointer(cython.const[cython.uchar]) = cython.NULL
    if data.shape[0]:
        base = cython.address(data[0])
    with cython.nogil:
        for row in range(rows):
            if not _row(base, offsets[row], offsets[row + 1], widths, starts, sizes, row):
                bad = row
                break
    if bad >= 0:
        raise bad_row(bad)
    return all_starts, all_sizes


def scatter_pieces(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
    places: cython.const[cython.longlong][::1],
) -> None:
    """See the twin."""
    have: cython.longlong = data.shape[0]
    room: cython.longlong = out.shape[0]
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    refuse.other_length("sizes", sizes.shape[0], starts.shape[0])
    refuse.other_length("places", places.shape[0], starts.shape[0])
    with cython.nogil:
        for i in range(starts.shape[0]):
            if sizes[i] < 0 or starts[i] < 0 or starts[i] > have - sizes[i]:
                bad = i
                break
            if places[i] < 0 or places[i] > room - sizes[i]:
                bad = i
                break
            if sizes[i]:
                memcpy(cython.address(out[0]) + places[i], cython.address(data[0]) + starts[i], sizes[i])
    if bad >= 0:
        start, size = starts[bad], sizes[bad]
        if size < 0 or start < 0 or start > have - size:
            raise refuse.range_outside("piece", bad, start=start, size=size, have=have)
        raise refuse.range_outside("target", bad, start=places[bad], size=size, have=room)
