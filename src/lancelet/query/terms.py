"""Terms: which parts of a condition are questions about one column, such as an index can answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from lancelet.expr import Call, Column, Expr, Literal
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

__all__ = ["All", "Any", "Node", "Not", "Term", "terms_of"]


@dataclass(frozen=True, slots=True)
class Term:
    """A question about the column at a path."""

    path: tuple[str, ...]
    query: Query
    #: Whether the question is the condition: an index that is exact about it is exact about the condition.
    exact: bool = True


@dataclass(frozen=True, slots=True)
class All:
    """Conditions joined by ``and``. Those that are no questions are left out, if ``exact`` is False."""

    parts: tuple[Node, ...]
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Any:
    """Conditions joined by ``or``."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A condition turned around."""

    part: Node


Node: TypeAlias = Term | All | Any | Not

_RANGES = {
    "<": lambda value: Between(None, value, high_inclusive=False),
    "<=": lambda value: Between(None, value),
    ">": lambda value: Between(value, None, low_inclusive=False),
    ">=": lambda value: Between(value, None),
}
#: Functions of a list and a list of items.
_LISTS: dict[str, Callable[[pa.Array], Query]] = {
    "array_has_any": HasAny,
    "array_contains_any": HasAny,
    "list_has_any": HasAny,
    "array_has_all": HasAll,
    "array_contains_all": HasAll,
    "list_has_all": HasAll,
}
_JSON = ("json_extract", "json_get", "json_get_string", "json_get_int", "json_get_float", "json_get_bool")


def terms_of(expr: Expr) -> Node | None:
    """The questions that a condition is made of; None where it is none.

    >>> x = Column(("x",), pa.int8())
    >>> terms_of(Call("not", (Call("is_null", (x,), pa.bool_()),), pa.bool_()))
    Not(part=Term(path=('x',), query=IsNull(), exact=True))
    """
    if isinstance(expr, Column) and pat.is_boolean(expr.type):
        return Term(expr.path, Equals(pa.scalar(True)))
    if not isinstance(expr, Call):
        return None
    match expr.function:
        case "and":
            return _all([terms_of(part) for part in expr.arguments])
        case "or":
            parts = [terms_of(part) for part in expr.arguments]
            found = tuple(part for part in parts if part is not None)
            return Any(found) if len(found) == len(parts) else None
        case "not":
            inner = terms_of(expr.arguments[0])
            return None if inner is None else Not(inner)
        case "is_not_null":
            inner = _term(replace(expr, function="is_null"))
            return None if inner is None else Not(inner)
        case "!=":
            inner = _term(replace(expr, function="="))
            return None if inner is None else Not(inner)
    return _term(expr)


def _all(parts: Sequence[Node | None]) -> Node | None:
    """Conditions that must all hold; bounds of one column become one range."""
    found: list[Node] = []
    for part in parts:
        place = next((at for at, other in enumerate(found) if part is not None and _joined(other, part)), None)
        if part is not None and place is None:
            found.append(part)
        elif part is not None and place is not None:
            joined = _joined(found[place], part)
            found[place] = joined if joined is not None else found[place]
    exact = None not in parts
    if not found:
        return None
    return found[0] if exact and len(found) == 1 else All(tuple(found), exact)


def _joined(one: Node, other: Node) -> Term | None:
    """Two bounds of one column as one range; None for anything else."""
    if not isinstance(one, Term) or not isinstance(other, Term) or one.path != other.path:
        return None
    low, high = one.query, other.query
    if not isinstance(low, Between) or not isinstance(high, Between):
        return None
    if low.low is None:
        low, high = high, low
    if low.high is not None or high.low is not None or low.low is None or high.high is None:
        return None
    return Term(one.path, Between(low.low, high.high, low.low_inclusive, high.high_inclusive))


def _term(call: Call) -> Term | None:
    """A call as a question about a column."""
    if not call.arguments:
        return None
    subject, constants = call.arguments[0], call.arguments[1:]
    values = [item.value for item in constants if isinstance(item, Literal)]
    found = _query(call.function, values) if len(values) == len(constants) else None
    if found is None:
        return None
    if isinstance(subject, Column):
        return Term(subject.path, *found)
    if isinstance(subject, Call) and subject.function in _JSON and len(subject.arguments) == 2:
        document, place = subject.arguments
        if isinstance(document, Column) and isinstance(place, Literal) and not isinstance(found[0], JsonPath):
            return Term(document.path, JsonPath(str(place.value.as_py()), subject.function, found[0]), found[1])
    return None


def _query(function: str, values: Sequence[pa.Scalar]) -> tuple[Query, bool] | None:
    """What is asked, and whether that is all there is to the condition."""
    if any(not value.is_valid for value in values):
        return None
    match function, values:
        case "is_null", []:
            return IsNull(), True
        case "=", [value]:
            return Equals(value), True
        case (("<" | "<=" | ">" | ">="), [value]):
            return _RANGES[function](value), True
        case "in", [value]:
            items = value.values
            # Beside a null what is not listed is null instead of false: which rows are true stays the same.
            return (IsIn(items.drop_null()), False) if items.null_count else (IsIn(items), True)
        case "starts_with", [value]:
            return StartsWith(value.as_py()), True
        case "contains", [value]:
            return Contains(value.as_py()), True
        case "regexp_like" | "regexp_match", [value]:
            return Matches(value.as_py()), True
        case "like", [value]:
            return _like(value.as_py())
        case (("array_has" | "array_contains" | "list_has" | "list_contains"), [value]):
            return HasAny(pa.array([value.as_py()], value.type)), True
        case _, [value] if function in _LISTS and pat.is_list(value.type) and not value.values.null_count:
            return _LISTS[function](value.values), True
    return None


def _like(pattern: str) -> tuple[Query, bool] | None:
    """A pattern without an escape: what it begins with, or a text that it surely has within."""
    if "\\" in pattern:
        return None
    plain = pattern.rstrip("%")
    if "%" not in plain and "_" not in plain:
        return (StartsWith(plain), True) if plain != pattern else (Equals(pa.scalar(pattern)), True)
    start = plain.replace("_", "%").partition("%")[0]
    if start:
        return StartsWith(start), False
    inner = pattern.strip("%")
    if inner and "%" not in inner and "_" not in inner:
        return Contains(inner), pattern == f"%{inner}%"
    return None
