"""JSONB to JSON text in Python: the documents of a column, as pylance renders them."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels.jsonb_layout import (
    ARRAY,
    BAD_BYTES,
    BAD_ENTRY,
    BAD_HEADER,
    BAD_KEY,
    BAD_UTF8,
    CONTAINER,
    DECIMAL,
    EXTENSION,
    FALSE,
    FLOAT,
    INFINITY,
    INTEGER,
    MINUS_INFINITY,
    MOST_LEVELS,
    NAN,
    NULL,
    NUMBER,
    OBJECT,
    SCALAR,
    STRING,
    TOO_DEEP,
    TRUE,
    UNKNOWN_KIND,
    UNSIGNED,
    ZERO,
    bad_document,
    check_offsets,
)

__all__ = ["decode"]

_TAGS, _SIZES = 0x70000000, 0x0FFFFFFF
_BRACKETS = {ARRAY: ("[", "]"), OBJECT: ("{", "}"), SCALAR: ("", "")}
_WORDS = {NULL: "null", FALSE: "false", TRUE: "true"}


def decode(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], validity: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Render the documents ``data[offsets[i]:offsets[i + 1]]``; returns offsets and UTF-8 of the texts.

    Where ``validity``, a byte for each document, is 0, nothing is looked at and nothing is made.

    No bytes at all are null, and so are NaN and the infinities. Order and repetition of keys stay as they are stored.
    What is not JSONB is Corrupt; decimal numbers and extension values, which no text becomes, are Unsupported.

    >>> stored = np.frombuffer(bytes.fromhex("80000001200000025001"), np.uint8)
    >>> decode(np.array([0, 10]), stored, np.ones(1, np.uint8))[1].tobytes()
    b'[1]'
    """
    check_offsets(offsets, len(data), len(validity))
    made: list[bytes] = []
    for row, (start, end) in enumerate(pairwise(offsets.tolist())):
        if not validity[row]:
            made.append(b"")
            continue
        document = data[start:end].tobytes()
        try:
            made.append(_document(document).encode() if document else b"null")
        except _Refused as refused:
            raise bad_document(refused.reason, row, refused.position) from None
    ends = np.cumsum([0, *map(len, made)], dtype=np.int64)
    return ends, np.frombuffer(b"".join(made), np.uint8)


class _Refused(Exception):
    """What is wrong, and where."""

    def __init__(self, reason: int, position: int) -> None:
        super().__init__(reason, position)
        self.reason, self.position = reason, position


@dataclass(slots=True)
class _Container:
    """A container whose items are being written; all places are in the document."""

    kind: int
    left: int
    end: int
    key_entry: int
    key: int
    entry: int
    payload: int
    first: bool = True


def _document(data: bytes) -> str:
    open_ones = [_opened(data, 0, len(data))]
    text = [_BRACKETS[open_ones[0].kind][0]]
    while open_ones:
        container = open_ones[-1]
        if not container.left:
            text.append(_BRACKETS[container.kind][1])
            open_ones.pop()
            continue
        start, tag = _next_item(data, container, text)
        if tag != CONTAINER:
            text.append(_scalar(data, tag, start, container.payload, container.entry - 4))
            continue
        if container.kind == SCALAR:
            raise _Refused(BAD_BYTES, container.entry - 4)
        inside = _opened(data, start, container.payload, depth=len(open_ones))
        text.append(_BRACKETS[inside.kind][0])
        open_ones.append(inside)
    return "".join(text)


def _opened(data: bytes, start: int, end: int, *, depth: int = 0) -> _Container:
    if end - start < 4:
        raise _Refused(BAD_HEADER, start)
    if depth == MOST_LEVELS:
        raise _Refused(TOO_DEEP, start)
    header = _word(data, start)
    kind, count = header & 0xE0000000, header & 0x1FFFFFFF
    if kind not in _BRACKETS:
        raise _Refused(BAD_HEADER, start)
    if kind == SCALAR:
        count = 1
    keys = count if kind == OBJECT else 0
    entry = start + 4 + 4 * keys
    payload = entry + 4 * count
    if payload > end:
        raise _Refused(BAD_ENTRY, start)
    key = payload
    for place in range(start + 4, entry, 4):
        word = _word(data, place)
        if word & _TAGS != STRING:
            raise _Refused(BAD_KEY, place)
        payload += word & _SIZES
    if payload > end:
        raise _Refused(BAD_ENTRY, start)
    return _Container(kind, count, end, start + 4, key, entry, payload)


def _next_item(data: bytes, container: _Container, text: list[str]) -> tuple[int, int]:
    """Write what precedes the next item, its key included, and move on; returns where its payload begins, its tag."""
    if not container.first:
        text.append(",")
    container.first = False
    container.left -= 1
    if container.kind == OBJECT:
        size = _word(data, container.key_entry) & _SIZES
        text.append(_string(data, container.key, container.key + size) + ":")
        container.key_entry, container.key = container.key_entry + 4, container.key + size
    entry = _word(data, container.entry)
    start = container.payload
    container.entry, container.payload = container.entry + 4, start + (entry & _SIZES)
    if container.payload > container.end:
        raise _Refused(BAD_ENTRY, container.entry - 4)
    return start, entry & _TAGS


def _scalar(data: bytes, tag: int, start: int, end: int, entry: int) -> str:
    if tag in _WORDS:
        return _WORDS[tag]
    if tag == STRING:
        return _string(data, start, end)
    if tag == NUMBER:
        return _number(data[start:end], start)
    raise _Refused(UNKNOWN_KIND if tag == EXTENSION else BAD_BYTES, entry)


def _number(payload: bytes, start: int) -> str:
    kind = payload[0] if payload else None
    if kind == ZERO:
        return "0"
    if kind in (NAN, INFINITY, MINUS_INFINITY):
        return "null"
    if kind == DECIMAL:
        raise _Refused(UNKNOWN_KIND, start)
    if kind == FLOAT and len(payload) == 9:
        return _real(struct.unpack(">d", payload[1:])[0])
    if kind in (INTEGER, UNSIGNED) and len(payload) in (2, 3, 5, 9):
        return str(int.from_bytes(payload[1:], "big", signed=kind == INTEGER))
    raise _Refused(BAD_BYTES, start)


def _real(value: float) -> str:
    """Plainly from 0.00001 to 1e16, with an exponent outside of that, both with as few digits as Python."""
    if value - value != 0:
        return "null"
    digits, mark, power = repr(value).partition("e")
    exponent = int(power or 0)
    if not mark:
        return digits
    if exponent != -5:
        return f"{digits}e{exponent:+}"
    sign = "-" if value < 0 else ""
    return f"{sign}0.0000{digits.lstrip('-').replace('.', '')}"


def _string(data: bytes, start: int, end: int) -> str:
    try:
        text = data[start:end].decode()
    except UnicodeDecodeError as error:
        raise _Refused(BAD_UTF8, start + error.start) from None
    return json.dumps(text, ensure_ascii=False)


def _word(data: bytes, place: int) -> int:
    return int.from_bytes(data[place : place + 4], "big")
