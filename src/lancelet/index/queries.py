"""What an index can be asked: one frozen class for each kind of question. They know nothing of how it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

__all__ = [
    "Between",
    "Contains",
    "Equals",
    "HasAll",
    "HasAny",
    "Intersects",
    "IsIn",
    "IsNull",
    "JsonPath",
    "Matches",
    "Query",
    "StartsWith",
    "ValueQuery",
]


@dataclass(frozen=True, slots=True)
class Equals:
    """``column = value``. The value has the type of what is indexed, and is not null."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class IsIn:
    """``column IN (values)``. None of them is null."""

    values: pa.Array


@dataclass(frozen=True, slots=True)
class Between:
    """``low <= column <= high``, either end open where its bound is None or not inclusive."""

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    low_inclusive: bool = True
    high_inclusive: bool = True


@dataclass(frozen=True, slots=True)
class IsNull:
    """``column IS NULL``: true or false of every row, never null."""


@dataclass(frozen=True, slots=True)
class HasAny:
    """``array_has_any(column, values)``: the list holds one of the values at least."""

    values: pa.Array


@dataclass(frozen=True, slots=True)
class HasAll:
    """``array_has_all(column, values)``: the list holds all of the values."""

    values: pa.Array


@dataclass(frozen=True, slots=True)
class Contains:
    """``contains(column, text)``: the text occurs within the value."""

    text: str


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``starts_with(column, text)``, or ``column LIKE 'text%'``."""

    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    """``regexp_like(column, pattern)``: the regular expression matches somewhere within the value."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Intersects:
    """The box around the geometry has a point in common with this one, borders included."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float


#: Questions about a value by itself.
ValueQuery: TypeAlias = (
    Equals | IsIn | Between | IsNull | HasAny | HasAll | Contains | StartsWith | Matches | Intersects
)


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A question about the value at a path of a JSON document, read as ``function`` (``json_get_int`` ...) reads it."""

    path: str
    function: str
    query: ValueQuery


Query: TypeAlias = ValueQuery | JsonPath
