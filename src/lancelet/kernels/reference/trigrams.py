"""Trigrams of text, in Python loops over characters: every three letters or digits in a row, as a number.

Letters are small ones: text is folded first. ASCII capitals become small letters; a character beyond ASCII becomes what
a table says, or nothing that counts. A letter or digit has a position from 1 to 36, digits first; the number is

    position of the first * 37 * 37  +  position of the second * 37  +  position of the third

The table may hold capitals. Their positions are what wraps around a byte, as the reference has it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_offsets

__all__ = ["LARGEST", "POSITIONS", "group_by_number", "trigrams"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Numbers = NDArray[np.uint32]

SPAN = 37
#: Every number is smaller.
LARGEST = 255 * SPAN * SPAN + 255 * SPAN + 255 + 1


def _positions() -> NDArray[np.uint8]:
    found = np.zeros(128, np.uint8)
    for letter in range(128):
        if 48 <= letter <= 57:
            found[letter] = letter - 48 + 1
        elif 97 <= letter <= 122 or 65 <= letter <= 90:
            found[letter] = (((letter - 97) & 0xFF) + 11) & 0xFF
    return found


#: The position of each ASCII character, 0 for those that are no letter or digit.
POSITIONS = _positions()


def trigrams(
    data: Bytes,
    offsets: Places,
    characters: Numbers,
    ends: Places,
    folded: Bytes,
    seen: NDArray[np.int64],
    numbers: Numbers,
    rows: Numbers,
) -> int:
    """The trigrams of each value, each once, and the number of the value; returns how many there are.

    Values are UTF-8, ``data[offsets[i]:offsets[i + 1]]``. ``characters[k]``, ascending, becomes the ASCII text
    ``folded[ends[k - 1]:ends[k]]``. ``seen`` has LARGEST entries, -1 at first; ``numbers`` and ``rows`` have room for
    five times as many entries as there are bytes.

    >>> numbers, rows = np.zeros(25, np.uint32), np.zeros(25, np.uint32)
    >>> nothing = np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    >>> text = np.frombuffer(b"aBc-1", np.uint8)
    >>> trigrams(text, np.array([0, 5]), *nothing, np.full(LARGEST, -1), numbers, rows), int(numbers[0])
    (1, 15516)
    """
    check_offsets(offsets, len(data))
    refuse.other_length("ends", len(ends), len(characters))
    refuse.other_length("seen", len(seen), LARGEST)
    room = 5 * (int(offsets[-1]) - int(offsets[0]))
    refuse.too_little_room(len(numbers), room)
    refuse.too_little_room(len(rows), room)
    text = folded.tobytes()
    table = {
        int(one): text[int(ends[at - 1]) if at else 0 : int(ends[at])] for at, one in enumerate(characters.tolist())
    }
    count = 0
    for row in range(len(offsets) - 1):
        value = data[offsets[row] : offsets[row + 1]].tobytes().decode("utf-8", "replace")
        letters = b"".join(one.encode().lower() if one < "\x80" else table.get(ord(one), b" ") for one in value)
        held = POSITIONS[np.frombuffer(letters, np.uint8)].astype(np.int64)
        whole = (held[:-2] > 0) & (held[1:-1] > 0) & (held[2:] > 0)
        for number in (held[:-2] * SPAN * SPAN + held[1:-1] * SPAN + held[2:])[whole].tolist():
            if seen[number] != row:
                seen[number] = row
                numbers[count], rows[count] = number, row
                count += 1
    return count


def group_by_number(numbers: Numbers, rows: Numbers, places: Places, grouped: Numbers) -> None:
    """Put rows into groups by their numbers, in the order in which they come.

    ``places`` says for each number below LARGEST where the first of its rows goes; it holds the ends afterwards.

    >>> places = np.zeros(LARGEST, np.int64)
    >>> places[6:], grouped = 2, np.zeros(3, np.uint32)
    >>> group_by_number(np.array([6, 5, 5], np.uint32), np.array([1, 2, 3], np.uint32), places, grouped)
    >>> grouped.tolist()
    [2, 3, 1]
    """
    _check_groups(numbers, rows, places, grouped)
    order = np.argsort(numbers, kind="stable")
    begins = np.concatenate(([True], numbers[order][1:] != numbers[order][:-1])) if len(order) else order
    first = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    into = places[numbers[order]] + np.arange(len(order)) - first
    if len(into) and (into.min() < 0 or into.max() >= len(grouped)):
        raise refuse.wrong_total("the groups' rows", found=int(into.max()) + 1, expected=len(grouped))
    grouped[into] = rows[order]
    np.add.at(places, numbers, 1)


def _check_groups(numbers: Numbers, rows: Numbers, places: Places, grouped: Numbers) -> None:
    refuse.other_length("rows", len(rows), len(numbers))
    refuse.other_length("places", len(places), LARGEST)
    refuse.other_length("grouped", len(grouped), len(numbers))
    if len(numbers) and int(numbers.max()) >= LARGEST:
        raise refuse.wrong_total("a number", found=int(numbers.max()), expected=LARGEST - 1)
