"""Functions of text that are computed once for each different value, where Arrow has no kernel; hashes, encodings."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import BYTES, INTEGER, TEXT, Argument, Datum, Function, Run, same_as, takes
from lancelet.expr.tree import Call, Expr
from lancelet.expr.types import plain
from lancelet.expr.vectors import by_value

__all__ = ["FUNCTIONS"]

_COST = 40


class _Hash(Protocol):
    """What the standard library's hashes give."""

    def digest(self) -> bytes:
        """The bytes of the hash."""


_HASHES: dict[str, Callable[[bytes], _Hash]] = {
    "md5": hashlib.md5,
    "sha224": hashlib.sha224,
    "sha256": hashlib.sha256,
    "sha384": hashlib.sha384,
    "sha512": hashlib.sha512,
    "blake2b": hashlib.blake2b,
    "blake2s": hashlib.blake2s,
}


def _each(compute: Callable[..., object]) -> Run:
    def run(call: Call, values: Sequence[Datum], rows: int) -> Datum:
        return by_value(compute, values, rows, call.type)

    return run


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _chr(number: int) -> str:
    try:
        return chr(number).encode().decode()
    except (ValueError, OverflowError):
        raise InvalidInput(f"{number} is the number of no letter") from None


def _initcap(text: str) -> str:
    letters, inside = [], False
    for letter in text:
        letters.append(letter.lower() if inside else letter.upper())
        inside = letter.isalnum()
    return "".join(letters)


def _levenshtein(one: str, two: str) -> int:
    """How many letters must be put in, taken out or changed to get from one text to the other."""
    if len(one) < len(two):
        one, two = two, one
    row = list(range(len(two) + 1))
    for at, letter in enumerate(one):
        last = at
        row[0] = at + 1
        for place, other in enumerate(two):
            last, row[place + 1] = row[place + 1], min(last + (letter != other), row[place] + 1, row[place + 1] + 1)
    return row[-1]


def _translate(text: str, letters: str, others: str) -> str:
    table: dict[int, str | None] = {}
    for place, letter in enumerate(letters):
        table.setdefault(ord(letter), others[place] if place < len(others) else None)
    return text.translate(table)


def _overlay(text: str, other: str, start: int, length: int | None = None) -> str:
    if start < 1:
        raise InvalidInput(f"overlay begins at letter {start}, expected 1 or more")
    end = start - 1 + (len(other) if length is None else length)
    return text[: start - 1] + other + text[max(end, 0) :]


def _substr_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or count == 0:
        return ""
    parts = text.split(delimiter)
    return delimiter.join(parts[:count] if count > 0 else parts[count:])


def _find_in_set(text: str, items: str) -> int:
    found = items.split(",") if items else []
    return found.index(text) + 1 if text in found else 0


def _to_hex(number: int) -> str:
    return format(number & (2**64 - 1), "x")


def _encoded(value: str | bytes, name: str) -> str:
    data = value.encode() if isinstance(value, str) else value
    if name.lower() == "hex":
        return data.hex()
    if name.lower() in ("base64", "base64pad"):
        text = base64.b64encode(data).decode()
        return text if name.lower() == "base64pad" else text.rstrip("=")
    raise InvalidInput(f"{name!r} is no encoding", hint="there are hex, base64 and base64pad")


def _decoded(value: str | bytes, name: str) -> bytes:
    text = value if isinstance(value, str) else value.decode("latin-1")
    try:
        if name.lower() == "hex":
            return bytes.fromhex(text) if not any(letter.isspace() for letter in text) else _no(text, name)
        if name.lower() in ("base64", "base64pad"):
            return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)
    except (ValueError, binascii.Error):
        _no(text, name)
    raise InvalidInput(f"{name!r} is no encoding", hint="there are hex, base64 and base64pad")


def _no(text: str, name: str) -> bytes:
    raise InvalidInput(f"{text!r} is not encoded as {name}")


def _hash(name: str) -> Callable[[str | bytes], bytes]:
    return lambda value: _HASHES[name](value.encode() if isinstance(value, str) else value).digest()


def _digest(value: str | bytes, name: str) -> bytes:
    if name.lower() not in _HASHES:
        raise InvalidInput(f"{name!r} is no digest", hint=f"there are {', '.join(_HASHES)}")
    return _hash(name.lower())(value)


def _width(arguments: Sequence[Expr]) -> pa.DataType:
    return pa.int64() if pat.is_large_string(plain(arguments[0].type)) else pa.int32()


def _any_integer(expr: Expr) -> Expr | None:
    """An integer in its own type: unsigned ones of 64 bits do not fit the signed ones."""
    return expr if pat.is_integer(plain(expr.type)) else None


_INTEGER = Argument("an integer", _any_integer)


def _tokens(text: str) -> set[str]:
    return set("".join(letter if letter.isalnum() else " " for letter in text).split())


def _contains_tokens(text: str, wanted: str) -> bool:
    """Whether all words of the second are words of the first; letters and digits make words."""
    return _tokens(wanted) <= _tokens(text)


FUNCTIONS = (
    Function("contains_tokens", takes(TEXT, TEXT, returns=pa.bool_()), _each(_contains_tokens), cost=_COST),
    Function("ascii", takes(TEXT, returns=pa.int32()), _each(_ascii), cost=_COST),
    Function("chr", takes(INTEGER, returns=pa.string()), _each(_chr), cost=_COST),
    Function("initcap", takes(TEXT, returns=same_as(0)), _each(_initcap), cost=_COST),
    Function("levenshtein", takes(TEXT, TEXT, returns=_width), _each(_levenshtein), cost=2 * _COST),
    Function("translate", takes(TEXT, TEXT, TEXT, returns=same_as(0)), _each(_translate), cost=_COST),
    Function("overlay", takes(TEXT, TEXT, INTEGER, INTEGER, least=3, returns=same_as(0)), _each(_overlay), cost=_COST),
    Function(
        "substr_index",
        takes(TEXT, TEXT, INTEGER, returns=same_as(0)),
        _each(_substr_index),
        ("substring_index",),
        cost=_COST,
    ),
    Function("find_in_set", takes(TEXT, TEXT, returns=_width), _each(_find_in_set), cost=_COST),
    Function("to_hex", takes(_INTEGER, returns=pa.string()), _each(_to_hex), cost=_COST),
    Function("encode", takes(BYTES, TEXT, returns=pa.string()), _each(_encoded), cost=_COST),
    Function("decode", takes(BYTES, TEXT, returns=pa.binary()), _each(_decoded), cost=_COST),
    Function("md5", takes(BYTES, returns=pa.string()), _each(lambda value: _hash("md5")(value).hex()), cost=_COST),
    *(
        Function(name, takes(BYTES, returns=pa.binary()), _each(_hash(name)), cost=_COST)
        for name in ("sha224", "sha256", "sha384", "sha512")
    ),
    Function("digest", takes(BYTES, TEXT, returns=pa.binary()), _each(_digest), cost=_COST),
)
