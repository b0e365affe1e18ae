"""JSON text to JSONB in Python: the documents of a column, as pylance writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels.json_numbers import number_of, number_payload
from lancelet.kernels.jsonb_layout import (
    ARRAY,
    BAD_CHARACTER,
    BAD_ESCAPE,
    BAD_NUMBER,
    BAD_UTF8,
    CONTAINER,
    CUT,
    DUPLICATE,
    FALSE,
    LARGEST,
    MOST_LEVELS,
    NULL,
    NUMBER,
    OBJECT,
    SCALAR,
    STRING,
    TOO_DEEP,
    TOO_LARGE,
    TRUE,
    bad_text,
    check_offsets,
)

__all__ = ["encode"]

_SPACE = b" \t\n\f\r"
_SPACE_ESCAPES = (b"\\n", b"\\r", b"\\t", b"\\x0C")
_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b'"': b'"', b"/": b"/", b"\\": b"\\"}
_DIGITS = b"0123456789"
_HEXADECIMAL = b"0123456789abcdefABCDEF"
_NAME = b"_$abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def encode(
    offsets: NDArray[np.int64], text: NDArray[np.uint8], validity: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Encode the documents ``text[offsets[i]:offsets[i + 1]]``; returns offsets and bytes of the results.

    Where ``validity``, a byte for each document, is 0, nothing is looked at and nothing is made.

    Beside JSON this takes what the reference implementation does: names as keys without quotes, single quotes, numbers
    with a plus sign or in hexadecimal digits, NaN and Infinity, missing items of arrays, words in capitals, and no text
    at all, which is null. What is neither, or has a key twice, is InvalidInput that names row and byte.

    >>> offsets, data = encode(np.array([0, 3]), np.frombuffer(b"[1]", np.uint8), np.ones(1, np.uint8))
    >>> data.tobytes().hex()
    '80000001200000025001'
    """
    check_offsets(offsets, len(text), len(validity))
    made: list[bytes] = []
    for row, (start, end) in enumerate(pairwise(offsets.tolist())):
        if not validity[row]:
            made.append(b"")
            continue
        parser = _Parser(text[start:end].tobytes())
        try:
            made.append(parser.document())
        except _Refused as refused:
            raise bad_text(refused.args[0], row, parser.at) from None
    ends = np.cumsum([0, *map(len, made)], dtype=np.int64)
    return ends, np.frombuffer(b"".join(made), np.uint8)


class _Refused(Exception):
    """What is wrong; where is the parser's place."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A tag and a payload; a container's payload is not put together until its document is complete."""

    tag: int
    payload: bytes | list[_Value] = b""
    size: int = 0


@dataclass(slots=True)
class _Container:
    is_object: bool
    keys: list[bytes] = field(default_factory=list)
    values: list[_Value] = field(default_factory=list)

    def close(self) -> _Value:
        order = list(range(len(self.values)))
        keys: list[bytes] = []
        if self.is_object:
            order.sort(key=self.keys.__getitem__)
            keys = [self.keys[i] for i in order]
            if any(one == other for one, other in pairwise(keys)):
                raise _Refused(DUPLICATE)
        values = [self.values[i] for i in order]
        words = [(OBJECT if self.is_object else ARRAY) | len(order)]
        words += [STRING | len(key) for key in keys] + [value.tag | value.size for value in values]
        begin = b"".join([*(word.to_bytes(4, "big") for word in words), *keys])
        return _Value(CONTAINER, [_scalar(STRING, begin), *values], len(begin) + sum(value.size for value in values))


def _scalar(tag: int, payload: bytes = b"") -> _Value:
    return _Value(tag, payload, len(payload))


def _flat(value: _Value) -> bytes:
    """The payload, however deep it is."""
    done, waiting = [], [value]
    while waiting:
        payload = waiting.pop().payload
        if isinstance(payload, bytes):
            done.append(payload)
        else:
            waiting.extend(reversed(payload))
    return b"".join(done)


class _Parser:
    def __init__(self, text: bytes) -> None:
        self.text, self.at = text, 0
        self.open: list[_Container] = []

    def document(self) -> bytes:
        if len(self.text) > LARGEST:
            raise _Refused(TOO_LARGE)
        value = self._value() if self._skip() else _scalar(NULL)
        while self.open:
            container = self.open[-1]
            if value is not None:
                container.values.append(value)
            value = self._item(container)
        if self._skip():
            raise _Refused(BAD_CHARACTER)
        if value is None or value.tag == CONTAINER:
            return _flat(value or _scalar(NULL))
        return (SCALAR << 32 | value.tag | value.size).to_bytes(8, "big") + _flat(value)

    def _item(self, container: _Container) -> _Value | None:
        """The next item, or the whole container at its end; None if that is a container which begins here."""
        if not self._skip():
            raise _Refused(CUT)
        if self.text[self.at] == (b"}" if container.is_object else b"]")[0]:
            whole = container.close()
            self.open.pop()
            if self.open and whole.size > LARGEST:
                raise _Refused(TOO_LARGE)
            self.at += 1
            return whole
        if container.values:
            self._expect(b",")
            self._skip()
        if container.is_object:
            self._key(container)
        elif self.at == len(self.text):
            raise _Refused(CUT)
        elif self.text[self.at] in b",]":
            return _scalar(NULL)
        return self._value()

    def _key(self, container: _Container) -> None:
        start = self.at
        if self.text[start : start + 1] in (b'"', b"'"):
            container.keys.append(self._string())
        else:
            while self.at < len(self.text):
                if self.text[self.at] >= 128:
                    self._sequence()
                elif self.text[self.at] in _NAME or (self.text[self.at] in _DIGITS and self.at > start):
                    self.at += 1
                else:
                    break
            if self.at == len(self.text):
                raise _Refused(CUT)
            if self.at == start:
                raise _Refused(BAD_CHARACTER)
            container.keys.append(self.text[start : self.at])
        self._skip()
        self._expect(b":")
        if not self._skip():
            raise _Refused(CUT)

    def _value(self) -> _Value | None:
        """A scalar; None if a container begins here, which is then the innermost open one."""
        first = self.text[self.at : self.at + 1]
        if first in (b'"', b"'"):
            return _scalar(STRING, self._string())
        if first in (b"+", b"-", b".") or first in _DIGITS:
            return self._number()
        if first in (b"[", b"{"):
            if len(self.open) == MOST_LEVELS:
                raise _Refused(TOO_DEEP)
            self.open.append(_Container(first == b"{"))
            self.at += 1
            return None
        first = first.lower()
        if first == b"n":
            if self.text[self.at + 1 : self.at + 2].lower() != b"a":
                return self._word(b"null", _scalar(NULL))
            return self._word(b"nan", _scalar(NUMBER, b"\x10"))
        words = {b"t": (b"true", TRUE, b""), b"f": (b"false", FALSE, b""), b"i": (b"infinity", NUMBER, b"\x20")}
        if first not in words:
            raise _Refused(BAD_CHARACTER)
        word, tag, payload = words[first]
        return self._word(word, _scalar(tag, payload))

    def _number(self) -> _Value:
        start = self.at
        negative = self.text[start : start + 1] == b"-"
        self.at += self.text[start] in b"+-"
        begin = self.at
        self._pass(_DIGITS)
        digits = self.at - begin
        pointed = self.text[self.at : self.at + 1] == b"."
        if pointed:
            self.at += 1
            digits += self._pass(_DIGITS)
        letter = self.text[self.at : self.at + 1].lower()
        if not digits and not pointed and letter == b"i":
            return self._word(b"infinity", _scalar(NUMBER, b"\x30" if negative else b"\x20"))
        if not digits and not pointed and letter == b"n" and not negative:
            return self._word(b"nan", _scalar(NUMBER, b"\x10"))
        if not digits:
            raise _Refused(BAD_NUMBER)
        if letter == b"x" and self.text[begin : self.at] == b"0":
            self.at += 1
            self._pass(_HEXADECIMAL + b".")
        elif letter == b"e":
            self.at += 1
            self.at += self.text[self.at : self.at + 1] in (b"+", b"-")
            if not self._pass(_DIGITS):
                raise _Refused(BAD_NUMBER)
        found = number_of(self.text[start : self.at])
        if found is None:
            raise _Refused(BAD_NUMBER)
        return _scalar(NUMBER, number_payload(*found))

    def _string(self) -> bytes:
        quote = self.text[self.at]
        made = []
        self.at += 1
        run = self.at
        while True:
            if self.at == len(self.text):
                raise _Refused(CUT)
            if self.text[self.at] == quote:
                made.append(self.text[run : self.at])
                self.at += 1
                return b"".join(made)
            if self.text[self.at] == 92:
                made.append(self.text[run : self.at])
                made.append(self._escape())
                run = self.at
            elif self.text[self.at] >= 128:
                self._sequence()
            else:
                self.at += 1

    def _escape(self) -> bytes:
        self.at += 1
        if self.at == len(self.text):
            raise _Refused(CUT)
        letter = self.text[self.at : self.at + 1]
        if letter != b"u":
            if letter not in _ESCAPES:
                raise _Refused(BAD_ESCAPE)
            self.at += 1
            return _ESCAPES[letter]
        self.at += 1
        first = self._unicode()
        point = int(first, 16)
        if not 0xD800 <= point < 0xE000:
            return chr(point).encode()
        # Halves of a pair that stand alone cannot be said in UTF-8: their escape stays as text, without braces.
        if point >= 0xDC00 or self.text[self.at : self.at + 2] != b"\\u":
            return b"\\u" + first
        self.at += 2
        second = self._unicode()
        low = int(second, 16)
        if not 0xDC00 <= low < 0xE000:
            return b"\\u" + first + b"\\u" + second
        return chr(0x10000 + ((point & 0x3FF) << 10 | low & 0x3FF)).encode()

    def _unicode(self) -> bytes:
        """Four digits, which may stand in braces."""
        braces = self.text[self.at : self.at + 1] == b"{"
        self.at += braces
        start = self.at
        for place in range(4 + braces):
            if self.at == len(self.text):
                raise _Refused(CUT)
            if self.text[self.at] not in (_HEXADECIMAL if place < 4 else b"}"):
                raise _Refused(BAD_ESCAPE)
            self.at += 1
        return self.text[start : start + 4]

    def _word(self, word: bytes, value: _Value) -> _Value:
        """Pass by a word, whatever its case."""
        for letter in word:
            if self.at == len(self.text):
                raise _Refused(CUT)
            if self.text[self.at : self.at + 1].lower()[0] != letter:
                raise _Refused(BAD_CHARACTER)
            self.at += 1
        return value

    def _expect(self, character: bytes) -> None:
        if self.at == len(self.text):
            raise _Refused(CUT)
        if self.text[self.at] != character[0]:
            raise _Refused(BAD_CHARACTER)
        self.at += 1

    def _pass(self, characters: bytes) -> int:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1
        return self.at - start

    def _sequence(self) -> None:
        first = self.text[self.at]
        length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        try:
            self.text[self.at : self.at + length].decode()
        except UnicodeDecodeError:
            raise _Refused(BAD_UTF8) from None
        self.at += length

    def _skip(self) -> bool:
        """Pass by white space, and by its escapes, which count as such; False at the end of the document."""
        while self.at < len(self.text):
            if self.text[self.at] in _SPACE:
                self.at += 1
                continue
            escape = next((word for word in _SPACE_ESCAPES if self.text.startswith(word, self.at)), None)
            if escape is None:
                return True
            self.at += len(escape)
        return False
