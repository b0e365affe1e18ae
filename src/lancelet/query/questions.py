"""Questions to indexes as text, for explanations."""

from __future__ import annotations

import pyarrow as pa

from lancelet.index.queries import (
    Between,
    Contains,
    Equals,
    HasAll,
    HasAny,
    IsIn,
    IsNull,
    JsonPath,
    Matches,
    Query,
    StartsWith,
)

__all__ = ["question_text"]

#: Items of a list that are named.
_NAMED = 5


def question_text(path: tuple[str, ...], query: Query) -> str:
    """A question about the column at a path.

    >>> question_text(("x",), Between(pa.scalar(1), pa.scalar(5), high_inclusive=False))
    '1 <= x < 5'
    """
    return _text(".".join(path), query)


def _text(name: str, query: Query) -> str:
    match query:
        case Equals(value):
            return f"{name} = {_value(value)}"
        case IsIn(values):
            return f"{name} IN ({_values(values)})"
        case Between(low, high, low_inclusive, high_inclusive):
            before = "" if low is None else f"{_value(low)} {'<=' if low_inclusive else '<'} "
            behind = "" if high is None else f" {'<=' if high_inclusive else '<'} {_value(high)}"
            return f"{before}{name}{behind}"
        case IsNull():
            return f"{name} IS NULL"
        case HasAny(values):
            return f"array_has_any({name}, [{_values(values)}])"
        case HasAll(values):
            return f"array_has_all({name}, [{_values(values)}])"
        case Contains(text):
            return f"contains({name}, {text!r})"
        case StartsWith(text):
            return f"starts_with({name}, {text!r})"
        case Matches(pattern):
            return f"regexp_like({name}, {pattern!r})"
        case JsonPath(path, function, inner):
            return _text(f"{function}({name}, {path!r})", inner)
    return f"{type(query).__name__} of {name}"


def _value(value: pa.Scalar) -> str:
    return repr(value.as_py())


def _values(values: pa.Array) -> str:
    shown = ", ".join(_value(value) for value in values[:_NAMED])
    return shown + (f", ... {len(values):,} in all" if len(values) > _NAMED else "")
