"""Stored row sets of many groups of rows at once, compiled. The layout is drawn in the twin."""

import cython

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_bounds

LARGEST_ARRAY = cython.declare(cython.longlong, 4096)
BITS = cython.declare(cython.longlong, 8192)
PLACES_FROM = cython.declare(cython.longlong, 4)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put16(out: cython.p_uchar, value: cython.ulonglong) -> cython.void:
    out[0] = value & 0xFF
    out[1] = (value >> 8) & 0xFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put32(out: cython.p_uchar, value: cython.ulonglong) -> cython.void:
    _put16(out, value)
    _put16(out + 2, value >> 16)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _end(
    rows: cython.pointer(cython.const[cython.ulonglong]),
    start: cython.longlong,
    stop: cython.longlong,
    bits: cython.int,
) -> cython.longlong:
    """Behind the last row whose upper part is that of the first."""
    upper: cython.ulonglong = rows[start] >> bits
    start += 1
    while start < stop and rows[start] >> bits == upper:
        start += 1
    return start


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _runs(
    rows: cython.pointer(cython.const[cython.ulonglong]), start: cython.longlong, stop: cython.longlong
) -> cython.longlong:
    """Runs of consecutive rows if a container of runs is the smallest, else -1."""
    i: cython.longlong
    runs: cython.longlong = 1
    count: cython.longlong = stop - start
    for i in range(start + 1, stop):
        runs += rows[i] - rows[i - 1] != 1
    if 2 + 4 * runs < (2 * count if count <= LARGEST_ARRAY else BITS):
        return runs
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size(count: cython.longlong, runs: cython.longlong) -> cython.longlong:
    if runs >= 0:
        return 2 + 4 * runs
    return 2 * count if count <= LARGEST_ARRAY else BITS


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _container(
    rows: cython.pointer(cython.const[cython.ulonglong]),
    start: cython.longlong,
    stop: cython.longlong,
    runs: cython.longlong,
    out: cython.p_uchar,
) -> cython.void:
    i: cython.longlong
    first: cython.longlong
    value: cython.ulonglong
    if runs >= 0:
        _put16(out, runs)
        out += 2
        first = start
        for i in range(start + 1, stop + 1):
            if i == stop or rows[i] - rows[i - 1] != 1:
                _put16(out, rows[first] & 0xFFFF)
                _put16(out + 2, i - first - 1)
                out += 4
                first = i
    elif stop - start <= LARGEST_ARRAY:
        for i in range(start, stop):
            _put16(out, rows[i] & 0xFFFF)
            out += 2
    else:
        for i in range(BITS):
            out[i] = 0
        for i in range(start, stop):
            value = rows[i] & 0xFFFF
            out[value >> 3] |= 1 << (value & 7)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bitmap(
    rows: cython.pointer(cython.const[cython.ulonglong]),
    start: cython.longlong,
    stop: cython.longlong,
    out: cython.p_uchar,
    write: cython.bint,
) -> cython.longlong:
    """The bytes of one bitmap; written only if ``write`` is set."""
    at: cython.longlong
    end: cython.longlong
    runs: cython.longlong
    count: cython.longlong = 0
    body: cython.longlong = 0
    any_runs: cython.bint = False
    at = start
    while at < stop:
        end = _end(rows, at, stop, 16)
        runs = _runs(rows, at, end)
        any_runs |= runs >= 0
        body += _size(end - at, runs)
        count += 1
        at = end
    marks: cython.longlong = (count + 7) // 8 if any_runs else 0
    head: cython.longlong = (4 + marks if any_runs else 8) + 4 * count
    places: cython.longlong = head
    if not any_runs or count >= PLACES_FROM:
        head += 4 * count
    if not write:
        return head + body
    heads: cython.p_uchar = out + (4 + marks if any_runs else 8)
    if any_runs:
        _put16(out, 12347)
        _put16(out + 2, count - 1)
        for at in range(marks):
            out[4 + at] = 0
    else:
        _put32(out, 12346)
        _put32(out + 4, count)
    number: cython.longlong = 0
    body = head
    at = start
    while at < stop:
        end = _end(rows, at, stop, 16)
        runs = _runs(rows, at, end)
        if runs >= 0:
            out[4 + (number >> 3)] |= 1 << (number & 7)
        _put16(heads + 4 * number, (rows[at] >> 16) & 0xFFFF)
        _put16(heads + 4 * number + 2, end - at - 1)
        if places < head:
            _put32(out + places + 4 * number, body)
        _container(rows, at, end, runs, out + body)
        body += _size(end - at, runs)
        number += 1
        at = end
    return body


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _row_set(
    rows: cython.pointer(cython.const[cython.ulonglong]),
    start: cython.longlong,
    stop: cython.longlong,
    treemap: cython.bint,
    out: cython.p_uchar,
    write: cython.bint,
) -> cython.longlong:
    at: cython.longlong = start
    end: cython.longlong
    size: cython.longlong
    count: cython.longlong = 0
    total: cython.longlong = 8 if treemap else 4
    head: cython.longlong = 4 if treemap else 8
    while at < stop:
        end = _end(rows, at, stop, 32)
        size = _bitmap(rows, at, end, out + total + head if write else out, write)
        if write:
            _put32(out + total, rows[at] >> 32)
            if not treemap:
                _put32(out + total + 4, size)
        total += head + size
        count += 1
        at = end
    if write:
        _put32(out, count)
        if treemap:
            _put32(out + 4, count >> 32)
    return total


@cython.cfunc
def _check_rising(rows: cython.const[cython.ulonglong][::1], bounds: cython.const[cython.longlong][::1]):
    group: cython.Py_ssize_t
    i: cython.longlong
    bad: cython.longlong = -1
    with cython.nogil:
        for group in range(bounds.shape[0] - 1):
            for i in range(bounds[group] + 1, bounds[group + 1]):
                if rows[i] <= rows[i - 1]:
                    bad = i
                    break
            if bad >= 0:
                break
    if bad >= 0:
        raise refuse.not_rising("row", bad, rows[bad], rows[bad - 1])


@cython.cfunc
def _measure(
    rows: cython.const[cython.ulonglong][::1],
    bounds: cython.const[cython.longlong][::1],
    treemap: cython.bint,
    ends: cython.longlong[::1],
):
    group: cython.Py_ssize_t
    total: cython.longlong = 0
    p: cython.pointer(cython.const[cython.ulonglong]) = cython.address(rows[0])
    with cython.nogil:
        for group in range(ends.shape[0]):
            total += _row_set(p, bounds[group], bounds[group + 1], treemap, cython.NULL, False)
            ends[group] = total


@cython.cfunc
def _write(
    rows: cython.const[cython.ulonglong][::1],
    bounds: cython.const[cython.longlong][::1],
    treemap: cython.bint,
    ends: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> cython.longlong:
    """The bytes written; where they would be more than there is room for, what they come to."""
    group: cython.Py_ssize_t
    at: cython.longlong = 0
    size: cython.longlong
    room: cython.longlong = out.shape[0]
    p: cython.pointer(cython.const[cython.ulonglong]) = cython.address(rows[0])
    with cython.nogil:
        for group in range(ends.shape[0]):
            size = _row_set(p, bounds[group], bounds[group + 1], treemap, cython.NULL, False)
            if at + size <= room:
                _row_set(p, bounds[group], bounds[group + 1], treemap, cython.address(out[at]), True)
            at += size
    return at


def _check(rows, bounds, ends):
    check_bounds(bounds, len(rows))
    refuse.other_length("ends", len(ends), len(bounds) - 1)
    _check_rising(rows, bounds)


def measure_row_sets(rows, bounds, treemap: cython.bint, ends) -> None:
    """See the twin."""
    _check(rows, bounds, ends)
    _measure(rows, bounds, treemap, ends)


def write_row_sets(rows, bounds, treemap: cython.bint, ends, out) -> None:
    """See the twin."""
    _check(rows, bounds, ends)
    refuse.other_length("out", len(out), int(ends[len(ends) - 1]) if len(ends) else 0)
    found = _write(rows, bounds, treemap, ends, out)
    if found != len(out):
        raise refuse.wrong_total("the row sets' bytes", found=found, expected=len(out))
