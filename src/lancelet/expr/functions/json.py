"""Functions of JSON documents: values by key or path, as documents, text, numbers or truth values.

``json_get`` and its kin take a key as it is, or the number of an item; the others a path such as ``$.name[0]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.encodings.json import json_to_text
from lancelet.encodings.json_paths import Found, JsonStep, find, key_step, parse_json_path
from lancelet.encodings.json_values import (
    CONTAINER,
    FALSE,
    NULL,
    NUMBER,
    STRING,
    TRUE,
    documents_of,
    numbers_of,
    shown,
    strings_of,
)
from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import ANYTHING, BYTES, TEXT, Datum, Function, cast_to, takes
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.vectors import column
from lancelet.rows.runs import Int64s

__all__ = ["FUNCTIONS"]

#: Walking to a value takes about as long as comparing so many numbers.
_COST = 20
_MOST = 2.0**63


def _bind(returns: pa.DataType, *more: object) -> Callable[[str, Sequence[Expr]], Expr]:
    def bind(name: str, arguments: Sequence[Expr]) -> Expr:
        made = list(arguments)
        if len(made) > 1 and isinstance(made[1], Literal) and pat.is_integer(made[1].type):
            # The number of an item may be written as one.
            made[1] = Literal(made[1].value.cast(pa.string()))
        if len(made) > 1 and not isinstance(made[1], Literal):
            raise InvalidInput(f"{name} takes a constant as argument 2, found an expression of {made[1].type}")
        if made and not pat.is_null(made[0].type):
            made[0] = cast_to(made[0], pa.large_binary())
        bound = takes(BYTES, TEXT, *([ANYTHING] * len(more)), returns=returns)(name, made)
        nothing = any(isinstance(each, Literal) and not each.value.is_valid for each in made[1:])
        return Literal(pa.scalar(None, returns)) if nothing else bound

    return bind


def _found(values: Sequence[Datum], rows: int, step: Callable[[str], Sequence[JsonStep]]) -> Found:
    return find(column(values[0], rows).cast(pa.large_binary()), step(values[1].as_py()))


def _by_key(values: Sequence[Datum], rows: int) -> Found:
    return _found(values, rows, lambda key: (key_step(key),))


def _by_path(values: Sequence[Datum], rows: int) -> Found:
    return _found(values, rows, parse_json_path)


def _get(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    return documents_of(_by_key(values, rows))


def _extract(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    return shown(_by_path(values, rows))


def _exists(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    found = pa.array(_by_path(values, rows).kinds >= 0)
    documents = column(values[0], rows)
    return pc.if_else(documents.is_valid(), found, pa.scalar(None, pa.bool_())) if documents.null_count else found


def _as_string(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    found = _by_key(values, rows)
    _refuse(found, (CONTAINER,), "a text")
    strings = np.flatnonzero(found.kinds == STRING)
    texts = strings_of(found, strings)
    kinds = np.where(found.kinds == NULL, -1, found.kinds).astype(np.int8)
    others = shown(Found(kinds, found.starts, found.sizes, found.data)) if len(strings) < rows else None
    if others is None:
        return texts
    return pc.replace_with_mask(others.cast(pa.string()), pa.array(found.kinds == STRING), texts)


def _as_float(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    found = _by_key(values, rows)
    _refuse(found, (CONTAINER,), "a number")
    made, valid = np.zeros(rows), np.zeros(rows, np.bool_)
    places = np.flatnonzero(found.kinds == NUMBER)
    for which, numbers in numbers_of(found, places):
        made[places[which]] = numbers
    valid[places] = ~np.isnan(made[places])
    _truths(found, made, valid)
    strings = np.flatnonzero(found.kinds == STRING)
    if len(strings):
        made[strings], valid[strings] = _spelled(strings_of(found, strings)), True
    return pa.array(made, mask=~valid)


def _as_int(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    found = _by_key(values, rows)
    _refuse(found, (CONTAINER,), "a number")
    made, valid = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    places = np.flatnonzero(found.kinds == NUMBER)
    for which, numbers in numbers_of(found, places):
        there = ~np.isnan(numbers) if numbers.dtype.kind == "f" else np.ones(len(numbers), np.bool_)
        made[places[which[there]]], valid[places[which[there]]] = _whole(numbers[there]), True
    _truths(found, made, valid)
    strings = np.flatnonzero(found.kinds == STRING)
    if len(strings):
        made[strings], valid[strings] = _spelled_whole(strings_of(found, strings)), True
    return pa.array(made, mask=~valid)


def _as_bool(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    found = _by_key(values, rows)
    _refuse(found, (CONTAINER, NUMBER), "a truth value")
    made, valid = found.kinds == TRUE, (found.kinds == TRUE) | (found.kinds == FALSE)
    strings = np.flatnonzero(found.kinds == STRING)
    if len(strings):
        words = pc.utf8_lower(strings_of(found, strings))
        true, false = np.asarray(pc.equal(words, "true")), np.asarray(pc.equal(words, "false"))
        if not bool((true | false).all()):
            raise _wrong("a text", "a truth value")
        made[strings], valid[strings] = true, True
    return pa.array(made, mask=~valid)


def _truths(found: Found, made: np.ndarray, valid: np.ndarray) -> None:
    truths = (found.kinds == TRUE) | (found.kinds == FALSE)
    made[truths], valid[truths] = found.kinds[truths] == TRUE, True


def _whole(numbers: np.ndarray) -> Int64s:
    """Numbers as integers, halves away from zero."""
    if numbers.dtype.kind == "f":
        numbers = np.trunc(numbers + np.copysign(0.5, numbers))
        if not bool(np.all((numbers >= -_MOST) & (numbers < _MOST))):
            raise _wrong("a number beyond 64 bits", "an integer")
    elif numbers.dtype.kind == "u" and len(numbers) and int(numbers.max()) >= 2**63:
        raise _wrong("a number beyond 64 bits", "an integer")
    return numbers.astype(np.int64)


def _spelled(texts: pa.Array) -> np.ndarray:
    try:
        return np.asarray(pc.cast(texts, pa.float64()))
    except pa.ArrowInvalid:
        raise _wrong("a text", "a number") from None


def _spelled_whole(texts: pa.Array) -> Int64s:
    made = np.empty(len(texts), np.int64)
    plain = np.asarray(pc.match_substring_regex(texts, r"^[-+]?[0-9]+$"))
    digits = pc.replace_substring_regex(texts.filter(pa.array(plain)), r"^\+", "")
    try:
        made[plain] = np.asarray(pc.cast(digits, pa.int64()))
    except pa.ArrowInvalid:
        raise _wrong("a text", "an integer") from None
    made[~plain] = _whole(_spelled(texts.filter(pa.array(~plain))))
    return made


def _refuse(found: Found, kinds: tuple[int, ...], wanted: str) -> None:
    if bool(np.isin(found.kinds, kinds).any()):
        raise _wrong("an object or array" if CONTAINER in found.kinds else "a number", wanted)


def _wrong(found: str, wanted: str) -> InvalidInput:
    return InvalidInput(f"a value in a JSON document is {found}, expected {wanted}")


def _lengths(found: Found) -> Int64s:
    """Items of arrays, 0 of other values."""
    heads = np.zeros((len(found.kinds), 4), np.uint8)
    rows = np.flatnonzero(found.kinds == CONTAINER)
    heads[rows] = found.data[found.starts[rows][:, None] + np.arange(4)]
    words = heads.view(">u4").ravel().astype(np.int64)
    return np.where(words >> 29 == 4, words & 0x1FFFFFFF, 0)


def _array_length(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    found = _by_path(values, rows)
    return pa.array(_lengths(found), mask=found.kinds < 0)


def _array_contains(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Whether an array has an item: a text that is the one asked for, or any value that is written so."""
    documents = column(values[0], rows).cast(pa.large_binary())
    steps = parse_json_path(values[1].as_py())
    lengths = _lengths(find(documents, steps))
    wanted = values[2].as_py()
    result = np.zeros(rows, np.bool_)
    for number in range(int(lengths.max(initial=0))):
        there = np.flatnonzero((lengths > number) & ~result)
        if not len(there):
            break
        item = find(documents.take(pa.array(there)), [*steps, JsonStep(None, number)])
        written = json_to_text(documents_of(item))
        strings = np.flatnonzero(item.kinds == STRING)
        same = np.asarray(pc.fill_null(pc.equal(written, wanted), False)).copy()
        same[strings] |= np.asarray(pc.equal(strings_of(item, strings), wanted))
        result[there[same]] = True
    return pa.array(result, mask=np.asarray(documents.is_null()) if documents.null_count else None)


def _bind_contains(name: str, arguments: Sequence[Expr]) -> Expr:
    made = list(arguments)
    if len(made) == 3:
        made[2] = cast_to(made[2], pa.string())
        if not isinstance(made[2], Literal):
            raise InvalidInput(f"{name} takes a constant as argument 3, found an expression of {made[2].type}")
    return _bind(pa.bool_(), "item")(name, made)


FUNCTIONS = (
    Function("json_get", _bind(pa.large_binary()), _get, cost=_COST),
    Function("json_get_string", _bind(pa.string()), _as_string, cost=_COST),
    Function("json_get_int", _bind(pa.int64()), _as_int, cost=_COST),
    Function("json_get_float", _bind(pa.float64()), _as_float, cost=_COST),
    Function("json_get_bool", _bind(pa.bool_()), _as_bool, cost=_COST),
    Function("json_extract", _bind(pa.string()), _extract, cost=_COST),
    Function("json_exists", _bind(pa.bool_()), _exists, cost=_COST),
    Function("json_array_length", _bind(pa.int64()), _array_length, cost=_COST),
    Function("json_array_contains", _bind_contains, _array_contains, cost=_COST),
)
