"""Trigrams of text, compiled."""

import cython

from lancelet.kernels import refuse
from lancelet.kernels.reference import trigrams as twin
from lancelet.kernels.refuse_pages import check_offsets

LARGEST = twin.LARGEST
POSITIONS = twin.POSITIONS


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find(
    characters: cython.pointer(cython.const[cython.uint]), count: cython.Py_ssize_t, wanted: cython.uint
) -> cython.Py_ssize_t:
    """The place of a character in the table, or -1."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = count
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if characters[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < count and characters[low] == wanted else -1


@cython.cfunc
def _trigrams(
    data: cython.const[cython.uchar][::1],
    offsets: cython.const[cython.longlong][::1],
    characters: cython.const[cython.uint][::1],
    ends: cython.const[cython.longlong][::1],
    folded: cython.const[cython.uchar][::1],
    positions: cython.const[cython.uchar][::1],
    seen: cython.longlong[::1],
    numbers: cython.uint[::1],
    rows: cython.uint[::1],
) -> cython.Py_ssize_t:
    row: cython.Py_ssize_t
    at: cython.longlong
    stop: cython.longlong
    k: cython.Py_ssize_t
    _k: cython.Py_ssize_t
    place: cython.Py_ssize_t
    start: cython.longlong
    end: cython.longlong
    count: cython.Py_ssize_t = 0
    p: cython.pointer(cython.const[cython.uint]) = cython.address(characters[0])
    code: cython.uint
    more: cython.int
    letter: cython.uint
    before: cython.uint
    second: cython.uint
    third: cython.uint
    number: cython.uint
    with cython.nogil:
        for row in range(offsets.shape[0] - 1):
            at = offsets[row]
            stop = offsets[row + 1]
            before = 0
            second = 0
            while at < stop:
                code = data[at]
                at += 1
                if code < 0x80:
                    if 65 <= code <= 90:
                        code += 32
                    start = 0
                    end = 1
                    place = -1
                else:
                    more = 1 if code < 0xE0 else 2 if code < 0xF0 else 3
                    code &= 0x3F >> more
                    for _k in range(more):
                        if at < stop and (data[at] & 0xC0) == 0x80:
                            code = (code << 6) | (data[at] & 0x3F)
                            at += 1
                    place = _find(p, characters.shape[0], code)
                    if place < 0:
                        before = 0
                        second = 0
                        continue
                    start = ends[place - 1] if place > 0 else 0
                    end = ends[place]
                for k in range(start, end):
                    letter = code if place < 0 else folded[k]
                    third = positions[letter & 0x7F]
                    if before and second and third:
                        number = before * 1369 + second * 37 + third
                        if seen[number] != row:
                            seen[number] = row
                            numbers[count] = number
                            rows[count] = row
                            count += 1
                    before = second
                    second = third
    return count


def trigrams(data, offsets, characters, ends, folded, seen, numbers, rows) -> int:
    """See the twin."""
    check_offsets(offsets, len(data))
    refuse.other_length("ends", len(ends), len(characters))
    check_offsets(ends, len(folded)) if len(ends) else None
    refuse.other_length("seen", len(seen), LARGEST)
    room = 5 * (int(offsets[len(offsets) - 1]) - int(offsets[0]))
    refuse.too_little_room(len(numbers), room)
    refuse.too_little_room(len(rows), room)
    return _trigrams(data, offsets, characters, ends, folded, POSITIONS, seen, numbers, rows)


@cython.cfunc
def _group(
    numbers: cython.const[cython.uint][::1],
    rows: cython.const[cython.uint][::1],
    places: cython.longlong[::1],
    grouped: cython.uint[::1],
) -> cython.Py_ssize_t:
    i: cython.Py_ssize_t
    place: cython.longlong
    number: cython.uint
    room: cython.longlong = grouped.shape[0]
    with cython.nogil:
        for i in range(numbers.shape[0]):
            number = numbers[i]
            if number >= places.shape[0]:
                return i
            place = places[number]
            if place < 0 or place >= room:
                return i
            grouped[place] = rows[i]
            places[number] = place + 1
    return -1


def group_by_number(numbers, rows, places, grouped) -> None:
    """See the twin."""
    refuse.other_length("rows", len(rows), len(numbers))
    refuse.other_length("places", len(places), LARGEST)
    refuse.other_length("grouped", len(grouped), len(numbers))
    at = _group(numbers, rows, places, grouped)
    if at >= 0:
        raise refuse.wrong_total("the groups' rows", found=at, expected=len(numbers))
