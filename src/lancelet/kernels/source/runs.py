"""Run lengths, compiled: values and how often each repeats, at most 255 times a run."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy

from lancelet.kernels import refuse

Word = cython.fused_type(cython.uchar, cython.ushort, cython.uint, cython.ulonglong)

_LONGEST = cython.declare(cython.Py_ssize_t, 255)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _count(values: cython.pointer(Word), words: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.longlong:
    """Number of runs of any length among values of so many words each; without branches, so that it becomes SIMD."""
    i: cython.Py_ssize_t
    found: cython.longlong = count > 0
    for i in range(1, count):
        if words == 2:
            found += (values[2 * i] != values[2 * i - 2]) | (values[2 * i + 1] != values[2 * i - 1])
        else:
            found += values[i] != values[i - 1]
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _find(
    values: cython.pointer(Word),
    words: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    runs: cython.pointer(Word),
    lengths: cython.p_uchar,
) -> cython.longlong:
    """Number of runs among values of so many words each; writes them too, unless ``lengths`` is NULL."""
    i: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t
    found: cython.longlong = 0
    while i < count:
        first = i
        i += 1
        while i < count and i - first < _LONGEST and values[i * words] == values[first * words]:
            if words == 2 and values[2 * i + 1] != values[2 * first + 1]:
                break
            i += 1
        if lengths != cython.NULL:
            runs[found * words] = values[first * words]
            if words == 2:
                runs[2 * found + 1] = values[2 * first + 1]
            lengths[found] = i - first
        found += 1
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_sized(
    values: cython.p_uchar,
    item_size: cython.int,
    count: cython.Py_ssize_t,
    runs: cython.p_uchar,
    lengths: cython.p_uchar,
) -> cython.longlong:
    if item_size == 1:
        return _find(values, 1, count, runs, lengths)
    if item_size == 2:
        return _find(cython.cast(cython.p_ushort, values), 1, count, cython.cast(cython.p_ushort, runs), lengths)
    if item_size == 4:
        return _find(cython.cast(cython.p_uint, values), 1, count, cython.cast(cython.p_uint, runs), lengths)
    return _find(
        cython.cast(cython.p_ulonglong, values),
        item_size // 8,
        count,
        cython.cast(cython.p_ulonglong, runs),
        lengths,
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _expand(
    runs: cython.p_uchar,
    words: cython.Py_ssize_t,
    lengths: cython.p_uchar,
    count: cython.Py_ssize_t,
    target: cython.pointer(Word),
    end: cython.pointer(Word),
) -> cython.void:
    """Repeat each run. Stores 32 bytes at a time, past the run's end where there is room: the next run writes over."""
    probe: Word[2]
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    done: cython.Py_ssize_t
    step: cython.Py_ssize_t = 32 // cython.sizeof(target[0])
    length: cython.Py_ssize_t
    low: Word
    high: Word
    for i in range(count):
        memcpy(probe, runs + i * words * cython.sizeof(target[0]), words * cython.sizeof(target[0]))
        low = probe[0]
        high = probe[words - 1]
        length = lengths[i] * words
        if end - target >= length + step:
            done = 0
            while done < length:
                for k in range(0, step, 2):
                    target[done + k] = low
                    target[done + k + 1] = high
                done += step
        else:
            for k in range(length):
                target[k] = low if k % words == 0 else high
        target += length


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _expand_sized(
    runs: cython.p_uchar,
    item_size: cython.int,
    lengths: cython.p_uchar,
    count: cython.Py_ssize_t,
    target: cython.p_uchar,
    end: cython.p_uchar,
) -> cython.void:
    if item_size == 1:
        _expand(runs, 1, lengths, count, target, end)
    elif item_size == 2:
        _expand(runs, 1, lengths, count, cython.cast(cython.p_ushort, target), cython.cast(cython.p_ushort, end))
    elif item_size == 4:
        _expand(runs, 1, lengths, count, cython.cast(cython.p_uint, target), cython.cast(cython.p_uint, end))
    elif item_size == 8:
        _expand(runs, 1, lengths, count, cython.cast(cython.p_ulonglong, target), cython.cast(cython.p_ulonglong, end))
    else:
        _expand(runs, 2, lengths, count, cython.cast(cython.p_ulonglong, target), cython.cast(cython.p_ulonglong, end))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _chunk_fits(
    have: cython.longlong,
    item_size: cython.int,
    value_start: cython.longlong,
    value_size: cython.longlong,
    length_start: cython.longlong,
    length_size: cython.longlong,
) -> cython.bint:
    """Whether both parts lie within the data and speak of equally many runs."""
    if value_start < 0 or length_start < 0 or value_size < 0 or length_size < 0:
        return False
    if value_start > have - value_size or length_start > have - length_size:
        return False
    return length_size * item_size == value_size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sum(lengths: cython.p_uchar, count: cython.Py_ssize_t) -> cython.longlong:
    total: cython.longlong = 0
    i: cython.Py_ssize_t
    for i in range(count):
        total += lengths[i]
    return total


def _aligned(array, item_size: cython.int):
    """The array, or a copy where its first byte is not aligned for values of this size."""
    refuse.item_size_of_runs(item_size)
    if len(array) % item_size:
        raise refuse.not_whole_items(len(array), item_size)
    return array if array.ctypes.data % min(item_size, 8) == 0 else array.copy()


def count_runs(values, item_size: cython.int):
    """See the twin."""
    view: cython.const[cython.uchar][::1] = _aligned(values, item_size)
    count: cython.Py_ssize_t = view.shape[0] // item_size
    source: cython.p_uchar = cython.cast(cython.p_uchar, cython.address(view[0]))
    found: cython.longlong
    with cython.nogil:
        if item_size == 1:
            found = _count(source, 1, count)
        elif item_size == 2:
            found = _count(cython.cast(cython.p_ushort, source), 1, count)
        elif item_size == 4:
            found = _count(cython.cast(cython.p_uint, source), 1, count)
        elif item_size == 8:
            found = _count(cython.cast(cython.p_ulonglong, source), 1, count)
        else:
            found = _count(cython.cast(cython.p_ulonglong, source), 2, count)
    return found


def find_runs(values, item_size: cython.int, bounds):
    """See the twin."""
    view: cython.const[cython.uchar][::1] = _aligned(values, item_size)
    refuse.wrong_bounds(bounds, len(values) // item_size)
    edges: cython.const[cython.longlong][::1] = bounds
    run_counts = np.empty(len(bounds) - 1, np.int64)
    counts: cython.longlong[::1] = run_counts
    source: cython.p_uchar = cython.cast(cython.p_uchar, cython.address(view[0]))
    i: cython.Py_ssize_t
    total: cython.longlong = 0
    with cython.nogil:
        for i in range(counts.shape[0]):
            counts[i] = _find_sized(
                source + edges[i] * item_size, item_size, edges[i + 1] - edges[i], cython.NULL, cython.NULL
            )
            total += counts[i]
    run_values, lengths = np.empty(total * item_size, np.uint8), np.empty(total, np.uint8)
    runs_view: cython.uchar[::1] = run_values
    lengths_view: cython.uchar[::1] = lengths
    total = 0
    with cython.nogil:
        for i in range(counts.shape[0]):
            total += _find_sized(
                source + edges[i] * item_size,
                item_size,
                edges[i + 1] - edges[i],
                cython.address(runs_view[0]) + total * item_size,
                cython.address(lengths_view[0]) + total,
            )
    return run_values, lengths, run_counts


def expand_runs(
    data: cython.const[cython.uchar][::1],
    value_starts: cython.const[cython.longlong][::1],
    value_sizes: cython.const[cython.longlong][::1],
    length_starts: cython.const[cython.longlong][::1],
    length_sizes: cython.const[cython.longlong][::1],
    counts: cython.const[cython.longlong][::1],
    item_size: cython.int,
    out,
) -> None:
    """See the twin."""
    refuse.item_size_of_runs(item_size)
    refuse.unequal_chunks(value_starts, value_sizes, length_starts, length_sizes, counts)
    if out.ctypes.data % min(item_size, 8):
        raise refuse.not_aligned(item_size)
    view: cython.uchar[::1] = out
    have: cython.longlong = data.shape[0]
    source: cython.p_uchar = cython.cast(cython.p_uchar, cython.address(data[0]))
    target: cython.p_uchar = cython.address(view[0])
    end: cython.p_uchar = target + view.shape[0]
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    total: cython.longlong = 0
    with cython.nogil:
        for i in range(counts.shape[0]):
            if not _chunk_fits(have, item_size, value_starts[i], value_sizes[i], length_starts[i], length_sizes[i]):
                bad = i
                break
            if _sum(source + length_starts[i], length_sizes[i]) != counts[i]:
                bad = i
                break
            total += counts[i]
        if bad < 0 and total * item_size == view.shape[0]:
            for i in range(counts.shape[0]):
                _expand_sized(
                    source + value_starts[i], item_size, source + length_starts[i], length_sizes[i], target, end
                )
                target += counts[i] * item_size
    if bad >= 0:
        raise refuse.bad_runs(
            bad, np.asarray(data), value_starts, value_sizes, length_starts, length_sizes, counts[bad], item_size
        )
    if total * item_size != view.shape[0]:
        raise refuse.wrong_total("the chunks' bytes", found=total * item_size, expected=view.shape[0])


def runs_at(
    data: cython.const[cython.uchar][::1],
    value_starts: cython.const[cython.longlong][::1],
    value_sizes: cython.const[cython.longlong][::1],
    length_starts: cython.const[cython.longlong][::1],
    length_sizes: cython.const[cython.longlong][::1],
    chunks: cython.const[cython.longlong][::1],
    indices: cython.const[cython.longlong][::1],
    item_size: cython.int,
    out: cython.uchar[::1],
) -> None:
    """See the twin. Lookups that go forward within a chunk continue where the one before ended."""
    refuse.item_size_of_runs(item_size)
    refuse.unequal_chunks(value_starts, value_sizes, length_starts, length_sizes, value_starts)
    refuse.other_length("indices", indices.shape[0], chunks.shape[0])
    refuse.other_length("out", out.shape[0], chunks.shape[0] * item_size)
    have: cython.longlong = data.shape[0]
    source: cython.p_uchar = cython.cast(cython.p_uchar, cython.address(data[0]))
    i: cython.Py_ssize_t
    bad: cython.Py_ssize_t = -1
    chunk: cython.longlong = -1
    run: cython.longlong = 0
    # Values before the run.
    passed: cython.longlong = 0
    fits: cython.bint = True
    with cython.nogil:
        for i in range(chunks.shape[0]):
            if chunks[i] < 0 or chunks[i] >= value_starts.shape[0]:
                bad = i
                break
            if chunks[i] != chunk or indices[i] < passed:
                chunk, run, passed = chunks[i], 0, 0
                fits = _chunk_fits(
                    have,
                    item_size,
                    value_starts[chunk],
                    value_sizes[chunk],
                    length_starts[chunk],
                    length_sizes[chunk],
                )
            if not fits or indices[i] < 0:
                bad = i
                break
            while run < length_sizes[chunk] and indices[i] - passed >= source[length_starts[chunk] + run]:
                passed += source[length_starts[chunk] + run]
                run += 1
            if run == length_sizes[chunk]:
                bad = i
                break
            memcpy(cython.address(out[0]) + i * item_size, source + value_starts[chunk] + run * item_size, item_size)
    if bad >= 0:
        if not fits:
            raise refuse.bad_runs(
                chunk, np.asarray(data), value_starts, value_sizes, length_starts, length_sizes, -1, item_size
            )
        known = 0 <= chunks[bad] < value_starts.shape[0]
        total = _sum(source + length_starts[chunks[bad]], length_sizes[chunks[bad]]) if known else 0
        raise refuse.bad_lookup(bad, "chunk", chunks[bad], value_starts.shape[0], indices[bad], total)
