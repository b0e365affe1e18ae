"""Values at a path of JSONB documents in Python: where each lies, and of which kind it is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels.jsonb_layout import (
    ARRAY,
    BAD_ENTRY,
    BAD_HEADER,
    BAD_KEY,
    CONTAINER,
    OBJECT,
    SCALAR,
    STRING,
    bad_document,
    check_offsets,
)

__all__ = ["find"]

_TAGS, _SIZES = 0x70000000, 0x0FFFFFFF


class _Refused(Exception):
    """What is wrong, and where."""

    def __init__(self, reason: int, position: int) -> None:
        super().__init__(reason, position)
        self.reason, self.position = reason, position


def find(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    validity: NDArray[np.uint8],
    names: NDArray[np.uint8],
    ends: NDArray[np.int64],
    named: NDArray[np.uint8],
    numbers: NDArray[np.int64],
) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]]:
    """Of each document the value at a path: its tag (0 null, 1 string, 2 number, 3 false, 4 true, 5 container), its
    first byte in ``data``, and how many bytes it has. The tag is -1 where there is none, or ``validity`` is 0.

    The path has a step for each of ``numbers``. Of an object it goes to the field of the name that ends at ``ends``
    in ``names``, if ``named`` is not 0; of an array to the item of the number, if that is not negative.
    What is not JSONB, as far as it is looked at, is Corrupt.

    >>> document = np.frombuffer(bytes.fromhex("80000001200000025001"), np.uint8)
    >>> none = np.zeros(0, np.uint8)
    >>> path = none, np.zeros(1, np.int64), np.zeros(1, np.uint8), np.zeros(1, np.int64)
    >>> [found.tolist() for found in find(np.array([0, 10]), document, np.ones(1, np.uint8), *path)]
    [[2], [8], [2]]
    """
    check_offsets(offsets, len(data), len(validity))
    count = len(offsets) - 1
    kinds, starts, sizes = np.full(count, -1, np.int8), np.zeros(count, np.int64), np.zeros(count, np.int64)
    bounds = pairwise([0, *ends.tolist()])
    wanted = [names[begin:end].tobytes() if use else None for (begin, end), use in zip(bounds, named, strict=True)]
    steps = list(zip(wanted, numbers.tolist(), strict=True))
    for row, (start, end) in enumerate(pairwise(offsets.tolist())):
        if not validity[row]:
            continue
        try:
            found = _found(data[start:end].tobytes(), steps)
        except _Refused as refused:
            raise bad_document(refused.reason, row, refused.position) from None
        if found is not None:
            kinds[row], starts[row], sizes[row] = found[0] >> 28, start + found[1], found[2] - found[1]
    return kinds, starts, sizes


def _found(document: bytes, steps: list[tuple[bytes | None, int]]) -> tuple[int, int, int] | None:
    """Tag, begin and end of the value at a path."""
    at = (CONTAINER if document else 0, 0, len(document))
    for name, number in steps:
        found = _stepped(document, at, name, number)
        if found is None:
            return None
        at = found
    tag, start, end = at
    if tag != CONTAINER or _header(document, start, end)[0] != SCALAR:
        return at
    if end - start < 8:
        raise _Refused(BAD_ENTRY, start)
    return _item(document, start + 4, start + 8, 0, end)


def _word(document: bytes, place: int) -> int:
    return int.from_bytes(document[place : place + 4], "big")


def _header(document: bytes, start: int, end: int) -> tuple[int, int]:
    if end - start < 4:
        raise _Refused(BAD_HEADER, start)
    header = _word(document, start)
    return header & 0xE0000000, header & 0x1FFFFFFF


def _item(document: bytes, entries: int, payload: int, number: int, end: int) -> tuple[int, int, int]:
    for place in range(number):
        payload += _word(document, entries + 4 * place) & _SIZES
    entry = _word(document, entries + 4 * number)
    if payload + (entry & _SIZES) > end:
        raise _Refused(BAD_ENTRY, entries + 4 * number)
    return entry & _TAGS, payload, payload + (entry & _SIZES)


def _stepped(document: bytes, at: tuple[int, int, int], name: bytes | None, number: int) -> tuple[int, int, int] | None:
    tag, start, end = at
    if tag != CONTAINER:
        return None
    kind, count = _header(document, start, end)
    if kind == SCALAR:
        return None
    if kind == ARRAY:
        if start + 4 + 4 * count > end:
            raise _Refused(BAD_ENTRY, start)
        inside = 0 <= number < count
        return _item(document, start + 4, start + 4 + 4 * count, number, end) if inside else None
    if kind != OBJECT:
        raise _Refused(BAD_HEADER, start)
    key = start + 4 + 8 * count
    if key > end:
        raise _Refused(BAD_ENTRY, start)
    if name is None:
        return None
    found = None
    for place in range(count):
        entry = _word(document, start + 4 + 4 * place)
        if entry & _TAGS != STRING:
            raise _Refused(BAD_KEY, start + 4 + 4 * place)
        if key + (entry & _SIZES) > end:
            raise _Refused(BAD_ENTRY, start)
        if found is None and document[key : key + (entry & _SIZES)] == name:
            found = place
        key += entry & _SIZES
    return None if found is None else _item(document, start + 4 + 4 * count, key, found, end)
