"""Patterns of text: LIKE, SIMILAR TO and regular expressions, compiled once for each pattern that occurs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.functions.define import INTEGER, TEXT, Datum, Function, takes
from lancelet.expr.functions.places import letters_before
from lancelet.expr.limits import between, exactly
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import is_text
from lancelet.expr.vectors import column, from_numpy, raw_values, valid_in_all

__all__ = ["FUNCTIONS", "for_each_pattern", "like_pattern"]

_FLAGS = "imsxU"


def like_pattern(pattern: str, escape: str) -> str:
    """A pattern of LIKE with its own escape character as one with a backslash.

    >>> like_pattern("50#%_", "#")
    '50\\\\%_'
    """
    if escape == "\\":
        return pattern
    made, at = [], 0
    while at < len(pattern):
        letter = pattern[at]
        if escape and letter == escape:
            at += 1
            if at == len(pattern):
                raise InvalidInput(f"the pattern {pattern!r} ends with its escape character")
            made.append(f"\\{pattern[at]}" if pattern[at] in "%_\\" else pattern[at])
        else:
            made.append("\\\\" if letter == "\\" else letter)
        at += 1
    return "".join(made)


def for_each_pattern(
    patterns: Datum, rows: int, kind: pa.DataType, compute: Callable[[str, pa.Array | None], pa.Array]
) -> pa.Array:
    """What ``compute`` gives for a pattern and the places of its rows (None: all), for every row; null where null."""
    if isinstance(patterns, pa.Scalar):
        return compute(patterns.as_py(), None) if patterns.is_valid else pa.nulls(rows, kind)
    encoded = patterns.dictionary_encode()
    codes = raw_values(encoded.indices.fill_null(-1))
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    parts = [pa.nulls(int(bounds[0]), kind)]
    for code, pattern in enumerate(encoded.dictionary.to_pylist()):
        parts.append(compute(pattern, pa.array(order[bounds[code] : bounds[code + 1]])).cast(kind))
    back = np.zeros(rows, np.int64)
    back[order] = np.arange(rows)
    return pa.concat_arrays(parts).take(pa.array(back))


def _taken(text: pa.Array, places: pa.Array | None) -> pa.Array:
    return text if places is None else text.take(places)


def _bind_like(name: str, arguments: Sequence[Expr]) -> Expr:
    value, pattern, *more = arguments
    for each in arguments:
        if not (is_text(each.type) or pat.is_null(each.type)):
            raise InvalidInput(f"{name} compares text, found {each.type}", hint="cast it to a string")
    made: list[Expr] = [value, pattern]
    if more:
        escape = more[0].value.as_py() if isinstance(more[0], Literal) else None
        if not isinstance(escape, str) or len(escape) > 1:
            raise InvalidInput("an escape character is one character, given as a constant")
        if isinstance(pattern, Literal) and pattern.value.is_valid and name != "similar_to":
            made[1] = Literal(pa.scalar(like_pattern(pattern.value.as_py(), escape), pattern.type))
        else:
            made.append(Literal(pa.scalar(escape)))
    return takes(TEXT, TEXT, TEXT, least=2, returns=pa.bool_())(name, made)


def _like(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    text = column(values[0], rows)
    escape = values[2].as_py() if len(values) > 2 else "\\"
    ignore = call.function == "ilike"

    def matched(pattern: str, places: pa.Array | None) -> pa.Array:
        if call.function == "similar_to":
            return _searched(_taken(text, places), _similar(pattern, escape), "")
        return pc.match_like(_taken(text, places), like_pattern(pattern, escape), ignore_case=ignore)

    return for_each_pattern(values[1], rows, pa.bool_(), matched)


def _similar(pattern: str, escape: str) -> str:
    """A pattern of SIMILAR TO as a regular expression of the whole text."""
    made, at, inside = ["(?s)^(?:"], 0, False
    while at < len(pattern):
        letter = pattern[at]
        if escape and letter == escape and at + 1 < len(pattern):
            at += 1
            made.append(re.escape(pattern[at]))
        elif inside:
            inside = letter != "]"
            made.append(letter)
        elif letter == "[":
            inside = True
            made.append(letter)
        else:
            made.append({"%": ".*", "_": "."}.get(letter, letter if letter in "|*+?{}()" else re.escape(letter)))
        at += 1
    return "".join([*made, ")$"])


def _searched(text: pa.Array, pattern: str, flags: str) -> pa.Array:
    try:
        return pc.match_substring_regex(text, _flagged(pattern, flags))
    except pa.ArrowInvalid as error:
        raise _refused(pattern, error) from None


def _flagged(pattern: str, flags: str) -> str:
    """A pattern with flags as RE2 has them."""
    unknown = set(flags) - set(_FLAGS) - {"g"}
    if unknown:
        raise InvalidInput(f"{min(unknown)!r} is no flag of regular expressions", hint=f"there are {_FLAGS}")
    if "x" in flags:
        pattern = re.sub(r"\\.|\[(?:\\.|[^\]])*\]|\s+|#[^\n]*", lambda found: _kept(found[0]), pattern)
    wanted = "".join(flag for flag in "imsU" if flag in flags)
    return f"(?{wanted}){pattern}" if wanted else pattern


def _kept(piece: str) -> str:
    return "" if piece[0].isspace() or piece[0] == "#" else piece


def _refused(pattern: str, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"{pattern!r} is no regular expression: {str(error).removeprefix('Invalid regular expression: ')}"
    )


def _flags(values: Sequence[Datum], place: int) -> str:
    if len(values) <= place or not values[place].is_valid:
        return ""
    if not isinstance(values[place], pa.Scalar):
        raise InvalidInput("flags of a regular expression are a constant")
    return str(values[place].as_py())


def _regexp_like(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    text = column(values[0], rows)
    flags = _flags(values, 2)
    return for_each_pattern(
        values[1], rows, pa.bool_(), lambda pattern, places: _searched(_taken(text, places), pattern, flags)
    )


def _regexp_match(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The groups of the first match, or the whole of it where there are none; null without a match."""
    text, flags = column(values[0], rows), _flags(values, 2)
    kind = pa.list_(text.type)

    def matched(pattern: str, places: pa.Array | None) -> pa.Array:
        named, names = _with_names(_flagged(pattern, flags))
        try:
            found = pc.extract_regex(_taken(text, places), named)
        except pa.ArrowInvalid as error:
            raise _refused(pattern, error) from None
        groups = [pc.struct_field(found, name) for name in names]
        count = len(found)
        items = pa.concat_arrays(groups).take(pa.array(np.arange(count * len(names)).reshape(-1, count).T.ravel()))
        valid = np.asarray(found.is_valid())
        kept = items.filter(pa.array(np.repeat(valid, len(names))))
        offsets = np.concatenate([[0], np.cumsum(np.where(valid, len(names), 0))]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), kept, mask=pa.array(~valid))

    return for_each_pattern(values[1], rows, kind, matched)


def _with_names(pattern: str) -> tuple[str, list[str]]:
    """A pattern whose groups all have names, and these in order; of none, the whole pattern is one."""
    names: list[str] = []

    def named(found: re.Match[str]) -> str:
        piece = found[0]
        if piece[0] in "\\[":
            return piece
        if piece.startswith(("(?P<", "(?<")):
            names.append(piece[piece.index("<") + 1 : -1])
            return f"(?P<{names[-1]}>"
        names.append(f"g{len(names)}_")
        return f"(?P<{names[-1]}>"

    made = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P?<[A-Za-z_]\w*>|\((?!\?)", named, pattern)
    if names:
        return made, names
    flags = re.match(r"\(\?[imsU]+\)", pattern)
    head = flags[0] if flags else ""
    return f"{head}(?P<g0_>{pattern[len(head) :]})", ["g0_"]


def _regexp_replace(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    text, flags = column(values[0], rows), _flags(values, 3)
    replacement = values[2]
    if not isinstance(replacement, pa.Scalar):
        raise InvalidInput("what regexp_replace puts in is a constant")
    if not replacement.is_valid:
        return pa.nulls(rows, text.type)
    given = re.sub(r"\$\{?(\d+)\}?", r"\\\1", replacement.as_py())

    def replaced(pattern: str, places: pa.Array | None) -> pa.Array:
        try:
            return pc.replace_substring_regex(
                _taken(text, places), _flagged(pattern, flags), given, max_replacements=-1 if "g" in flags else 1
            )
        except pa.ArrowInvalid as error:
            raise _refused(pattern, error) from None

    return for_each_pattern(values[1], rows, text.type, replaced)


def _after(text: pa.Array, values: Sequence[Datum], place: int) -> tuple[pa.Array, int]:
    """The text from a given letter on, and how many letters are left out."""
    if len(values) <= place:
        return text, 0
    start = values[place].as_py() if isinstance(values[place], pa.Scalar) else None
    if start is None or start < 1:
        raise InvalidInput("the letter to begin with is a constant of at least 1")
    return (pc.utf8_slice_codeunits(text, start - 1) if start > 1 else text), start - 1


def _regexp_count(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    text, _skipped = _after(column(values[0], rows), values, 2)
    flags = _flags(values, 3)

    def counted(pattern: str, places: pa.Array | None) -> pa.Array:
        try:
            return pc.count_substring_regex(_taken(text, places), _flagged(pattern, flags)).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise _refused(pattern, error) from None

    # No match in no text, as pylance counts.
    return pc.fill_null(for_each_pattern(values[1], rows, pa.int64(), counted), 0)


def _regexp_instr(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The letter at which a pattern first matches, from 1 on; 0 if it does not."""
    text, skipped = _after(column(values[0], rows), values, 2)
    flags = _flags(values, 4)
    if (len(values) > 3 and values[3].as_py() != 1) or (len(values) > 5 and values[5].as_py() != 0):
        raise Unsupported("regexp_instr finds the first match of the whole pattern, no later one and no group")

    def found(pattern: str, places: pa.Array | None) -> pa.Array:
        searched = _taken(text, places)
        try:
            at = pc.find_substring_regex(searched, _flagged(pattern, flags)).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise _refused(pattern, error) from None
        offsets = raw_values(at)
        letters = np.where(offsets < 0, 0, letters_before(searched, np.maximum(offsets, 0)) + 1 + skipped)
        return from_numpy(letters, pa.int64(), valid_in_all(at))

    return for_each_pattern(values[1], rows, pa.int64(), found)


def _bind_any_case(_: str, arguments: Sequence[Expr]) -> Expr:
    return _REGEXP_LIKE("regexp_like", [*arguments, Literal(pa.scalar("i"))])


_REGEXP_LIKE = takes(TEXT, TEXT, TEXT, least=2, returns=pa.bool_())

FUNCTIONS = (
    Function("like", between(2, 3, _bind_like), _like, cost=8),
    Function("ilike", between(2, 3, _bind_like), _like, cost=10),
    Function("similar_to", between(2, 3, _bind_like), _like, cost=20),
    Function("regexp_like", _REGEXP_LIKE, _regexp_like, cost=20),
    Function("regexp_ilike", exactly(2, _bind_any_case), None),
    Function(
        "regexp_match",
        takes(TEXT, TEXT, TEXT, least=2, returns=lambda given: pa.list_(given[0].type)),
        _regexp_match,
        cost=30,
    ),
    Function(
        "regexp_replace",
        takes(TEXT, TEXT, TEXT, TEXT, least=3, returns=lambda given: given[0].type),
        _regexp_replace,
        cost=30,
    ),
    Function(
        "regexp_count",
        takes(TEXT, TEXT, INTEGER, TEXT, least=2, returns=pa.int64()),
        _regexp_count,
        strict=False,
        cost=20,
    ),
    Function(
        "regexp_instr",
        takes(TEXT, TEXT, INTEGER, INTEGER, TEXT, INTEGER, least=2, returns=pa.int64()),
        _regexp_instr,
        cost=20,
    ),
)
