"""Mini-block pages, compiled: chunk words, chunk headers and assembly, one pass over the chunks each."""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy, memset

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import bad_chunk, check_buffer_count, chunk_too_large, wrong_counts


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
def _put(to: cython.pointer(cython.uchar), value: cython.longlong, width: cython.int) -> cython.void:
    memcpy(to, cython.address(value), width)


def chunk_table(
    words: cython.const[cython.uchar][::1], large: cython.bint, num_items: object, data_size: object
) -> tuple:
    """See the twin."""
    width: cython.int = 4 if large else 2
    chunks: cython.Py_ssize_t = words.shape[0] // width
    i: cython.Py_ssize_t
    word: cython.longlong = 0
    at: cython.longlong = 0
    values: cython.longlong = 0
    if words.shape[0] % width or (chunks == 0) != (num_items == 0):
        raise Corrupt(f"page of {num_items} values has {words.shape[0]} bytes of chunk words of {width} bytes each")
    all_starts, all_sizes, all_counts = (np.empty(chunks, dtype=np.int64) for _ in range(3))
    starts: cython.longlong[::1] = all_starts
    sizes: cython.longlong[::1] = all_sizes
    counts: cython.longlong[::1] = all_counts
    with cython.nogil:
        for i in range(chunks):
            word = _number(cython.address(words[0]) + i * width, width)
            starts[i] = at
            sizes[i] = ((word >> 4) + 1) * 8
            at += sizes[i]
            counts[i] = cython.cast(cython.longlong, 1) << (word & 15)
            values += counts[i]
    if chunks:
        rest = num_items - (values - counts[chunks - 1])
        if not 0 < rest <= 32768 or (word & 15 and counts[chunks - 1] != rest):
            raise wrong_counts(chunks, num_items)
        counts[chunks - 1] = rest
    if at != data_size:
        raise refuse.wrong_total("the chunks' sizes", found=at, expected=data_size)
    return all_starts, all_sizes, all_counts


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_header(
    data: cython.pointer(cython.const[cython.uchar]),
    start: cython.longlong,
    size: cython.longlong,
    header: cython.longlong,
    levels: cython.int,
    buffers: cython.int,
    width: cython.int,
    buffer_starts: cython.pointer(cython.longlong),
    buffer_sizes: cython.pointer(cython.longlong),
) -> cython.bint:
    k: cython.int
    step: cython.int
    length: cython.longlong
    at: cython.longlong = 2
    place: cython.longlong = header
    if size < header:
        return False
    for k in range(buffers):
        step = 2 if k < levels else width
        length = _number(data + start + at, step)
        if length > size - place:
            return False
        buffer_starts[k] = start + place
        buffer_sizes[k] = length
        at += step
        place += (length + 7) & ~7
    return True


def chunk_headers(
    data: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    sizes: cython.const[cython.longlong][::1],
    has_rep: cython.bint,
    has_def: cython.bint,
    num_buffers: object,
    large: cython.bint,
) -> tuple:
    """See the twin."""
    check_buffer_count(num_buffers)
    chunks: cython.Py_ssize_t = starts.shape[0]
    have: cython.longlong = data.shape[0]
    levels: cython.int = has_rep + has_def
    buffers: cython.int = levels + num_buffers
    width: cython.int = 4 if large else 2
    header: cython.longlong = (2 + 2 * levels + cython.cast(cython.longlong, width) * (buffers - levels) + 7) // 8 * 8
    i: cython.Py_ssize_t
    outside: cython.Py_ssize_t = -1
    bad: cython.Py_ssize_t = -1
    refuse.other_length("sizes", sizes.shape[0], chunks)
    num_levels = np.zeros(chunks, dtype=np.int64)
    # One to spare keeps the addresses below valid without chunks or buffers.
    buffer_starts = np.zeros(chunks * buffers + 1, dtype=np.int64)
    buffer_sizes = np.zeros(chunks * buffers + 1, dtype=np.int64)
    numbers: cython.longlong[::1] = num_levels
    places: cython.longlong[::1] = buffer_starts
    lengths: cython.longlong[::1] = buffer_sizes
    with cython.nogil:
        for i in range(chunks):
            if sizes[i] < 0 or starts[i] < 0 or starts[i] > have - sizes[i]:
                outside = i
                break
            if not _read_header(
                cython.address(data[0]),
                starts[i],
                sizes[i],
                header,
                levels,
                buffers,
                width,
                cython.address(places[0]) + i * buffers,
                cython.address(lengths[0]) + i * buffers,
            ):
                bad = i
                break
            numbers[i] = _number(cython.address(data[0]) + starts[i], 2)
    if outside >= 0:
        raise refuse.range_outside("chunk", outside, start=starts[outside], size=sizes[outside], have=have)
    if bad >= 0:
        raise bad_chunk(bad, sizes[bad])
    shape = (chunks, buffers)
    return (
        num_levels,
        buffer_starts[: chunks * buffers].reshape(shape),
        buffer_sizes[: chunks * buffers].reshape(shape),
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _place_buffer(
    sizes: cython.pointer(cython.const[cython.longlong]),
    places: cython.pointer(cython.longlong),
    ends: cython.pointer(cython.longlong),
    chunks: cython.Py_ssize_t,
) -> cython.void:
    """Give one buffer of each chunk its place after what the chunk holds so far."""
    i: cython.Py_ssize_t
    for i in range(chunks):
        places[i] = ends[i]
        ends[i] += (sizes[i] + 7) & ~7


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write_buffer(
    data: cython.pointer(cython.const[cython.uchar]),
    starts: cython.pointer(cython.const[cython.longlong]),
    sizes: cython.pointer(cython.const[cython.longlong]),
    places: cython.pointer(cython.const[cython.longlong]),
    bases: cython.pointer(cython.const[cython.longlong]),
    chunks: cython.Py_ssize_t,
    field: cython.longlong,
    width: cython.int,
    out: cython.pointer(cython.uchar),
) -> cython.void:
    """Copy one buffer of each chunk, pad it, and put its size at byte ``field`` of the chunk's header."""
    i: cython.Py_ssize_t
    to: cython.pointer(cython.uchar)
    for i in range(chunks):
        to = out + bases[i]
        _put(to + field, sizes[i], width)
        to += places[i]
        memcpy(to, data + starts[i], sizes[i])
        memset(to + sizes[i], 0xFE, -sizes[i] & 7)


@cython.cfunc
def _check_buffer(
    data: object, starts: object, sizes: object, chunks: cython.Py_ssize_t, most: cython.longlong
) -> object:
    have: cython.longlong = len(data)
    first: cython.const[cython.longlong][::1] = starts
    length: cython.const[cython.longlong][::1] = sizes
    i: cython.Py_ssize_t
    refuse.other_length("starts", len(starts), chunks)
    refuse.other_length("sizes", len(sizes), chunks)
    for i in range(chunks):
        if length[i] < 0 or first[i] < 0 or first[i] > have - length[i]:
            raise refuse.range_outside("buffer of chunk", i, start=first[i], size=length[i], have=have)
        if length[i] > most:
            raise chunk_too_large(i, length[i], most)
    return None


def assemble(levels, values, num_levels, logs, large: cython.bint) -> tuple:
    """See the twin."""
    chunks: cython.Py_ssize_t = len(logs)
    width: cython.int = 4 if large else 2
    counts: cython.const[cython.longlong][::1] = num_levels
    powers: cython.const[cython.uchar][::1] = logs
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    step: cython.int
    most: cython.longlong = (cython.cast(cython.longlong, 1) << 31) if large else 32768
    field: cython.longlong = 2
    refuse.other_length("num_levels", counts.shape[0], chunks)
    for i in range(chunks):
        if powers[i] > 15 or counts[i] < 0 or counts[i] > 0xFFFF:
            raise InvalidInput(
                f"chunk {i} has {counts[i]} levels and 2**{powers[i]} values, expected at most 65535 and 2**15"
            )
    pieces = [(*piece, 2) for piece in levels] + [(*piece, width) for piece in values]
    for data, starts, sizes, step in pieces:
        _check_buffer(data, starts, sizes, chunks, (cython.cast(cython.longlong, 1) << (8 * step)) - 1)
        field += step
    words = np.empty(chunks * width, dtype=np.uint8)
    if chunks == 0:
        return words, np.empty(0, dtype=np.uint8)
    header: cython.longlong = (field + 7) & ~7
    end_array = np.full(chunks, header, dtype=np.int64)
    place_array = np.empty((len(pieces) + 1, chunks), dtype=np.int64)
    ends: cython.longlong[::1] = end_array
    places: cython.longlong[:, ::1] = place_array
    lengths: cython.const[cython.longlong][::1]
    for k in range(len(pieces)):
        lengths = pieces[k][2]
        _place_buffer(cython.address(lengths[0]), cython.address(places[k, 0]), cython.address(ends[0]), chunks)
    base_array = np.cumsum(end_array) - end_array
    bases: cython.longlong[::1] = base_array
    for i in range(chunks):
        if ends[i] > most:
            raise chunk_too_large(i, ends[i], most)
    chunk_array = np.empty(int(base_array[chunks - 1]) + int(end_array[chunks - 1]), dtype=np.uint8)
    out: cython.uchar[::1] = chunk_array
    words_out: cython.uchar[::1] = words
    with cython.nogil:
        for i in range(chunks):
            _put(cython.address(words_out[0]) + i * width, ((ends[i] >> 3) - 1) << 4 | powers[i], width)
            memset(cython.address(out[0]) + bases[i], 0xFE, header)
            _put(cython.address(out[0]) + bases[i], counts[i], 2)
    field = 2
    for k in range(len(pieces)):
        _write_piece(pieces[k], place_array[k], base_array, chunks, field, chunk_array)
        field += pieces[k][3]
    return words, chunk_array


@cython.cfunc
def _write_piece(
    piece: tuple,
    place_array: object,
    base_array: object,
    chunks: cython.Py_ssize_t,
    field: cython.longlong,
    chunk_array: object,
) -> object:
    data: cython.const[cython.uchar][::1] = piece[0]
    starts: cython.const[cython.longlong][::1] = piece[1]
    sizes: cython.const[cython.longlong][::1] = piece[2]
    width: cython.int = piece[3]
    places: cython.const[cython.longlong][::1] = place_array
    bases: cython.const[cython.longlong][::1] = base_array
    out: cython.uchar[::1] = chunk_array
    with cython.nogil:
        _write_buffer(
            cython.address(data[0]),
            cython.address(starts[0]),
            cython.address(sizes[0]),
            cython.address(places[0]),
            cython.address(bases[0]),
            chunks,
            field,
            width,
            cython.address(out[0]),
        )
    return None
