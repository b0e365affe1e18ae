"""Filters that Spark offers to a source: those that mean the same here are taken, others serve to skip, or are left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pat

from lancelet.expr.tree import Call, Column, Expr, Literal

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

__all__ = ["Taken", "take_filters", "translated"]

_BOOL = pa.bool_()
_COMPARED = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_PATTERNS = {"StringStartsWith": "{}%", "StringEndsWith": "%{}", "StringContains": "%{}%"}


@dataclass(frozen=True, slots=True)
class Taken:
    """A filter as a condition of ours; one that is not exact may be true of more rows than Spark's, never of fewer."""

    condition: Expr
    exact: bool = True


def take_filters(filters: Iterable[Filter], outputs: Mapping[str, Expr]) -> tuple[Expr | None, list[Filter]]:
    """The condition that some filters make together, and those that Spark must look at again.

    ``outputs`` tells what the columns of the read stand for.
    """
    conditions, left = [], []
    for item in filters:
        taken = translated(item, outputs)
        if taken is not None:
            conditions.append(taken.condition)
        if taken is None or not taken.exact:
            left.append(item)
    if not conditions:
        return None, left
    return conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions), _BOOL), left


def translated(item: Filter, outputs: Mapping[str, Expr]) -> Taken | None:
    """One filter; None where nothing of it can be used."""
    name = type(item).__name__
    if name == "Not":
        inner = translated(item.child, outputs)  # type: ignore[attr-defined]
        # The rows of a superset cannot be told from its complement.
        return Taken(Call("not", (inner.condition,), _BOOL)) if inner is not None and inner.exact else None
    column = _column(getattr(item, "attribute", ()), outputs)
    if column is None:
        return None
    if name in ("IsNull", "IsNotNull"):
        return Taken(Call("is_null" if name == "IsNull" else "is_not_null", (column,), _BOOL))
    value = getattr(item, "value", None)
    if name == "EqualNullSafe" and value is None:
        return Taken(Call("is_null", (column,), _BOOL))
    if name == "In":
        return _one_of(column, list(value or ()))
    if name in _PATTERNS:
        return _like(column, value, _PATTERNS[name])
    if name not in _COMPARED:
        return None
    compared = _compared(column, _COMPARED[name], value)
    if compared is None or name != "EqualNullSafe":
        return compared
    # False, not unknown, for nulls.
    there = Call("is_not_null", (column,), _BOOL)
    return Taken(Call("and", (there, compared.condition), _BOOL), compared.exact)


def _column(path: tuple[str, ...], outputs: Mapping[str, Expr]) -> Column | None:
    """The stored column behind a path of Spark's; None where it is computed."""
    found = outputs.get(path[0]) if path else None
    if not isinstance(found, Column):
        return None
    kind = found.type
    for step in path[1:]:
        if not pat.is_struct(kind) or kind.get_field_index(step) < 0:
            return None
        kind = kind.field(step).type
    return Column((*found.path, *path[1:]), kind)


def _compared(column: Column, function: str, value: object) -> Taken | None:
    scalar = _scalar(value, column.type)
    if scalar is None:
        return None
    condition = Call(function, (column, Literal(scalar)), _BOOL)
    if not pat.is_floating(column.type):
        return Taken(condition)
    # Spark holds NaN for larger than any number; what is not above a number means the same to all.
    return Taken(condition, exact=False) if function in ("=", "<", "<=") and value != 0 else None


def _one_of(column: Column, values: list[object]) -> Taken | None:
    there = [value for value in values if value is not None]
    scalars = [scalar for value in there if (scalar := _scalar(value, column.type)) is not None]
    if not scalars or len(scalars) < len(there):
        return None
    floating = pat.is_floating(column.type)
    if floating and 0 in there:
        return None
    items = pa.scalar([scalar.as_py() for scalar in scalars], pa.list_(column.type))
    # With a null among the values, what is none of them is unknown rather than false: the opposite is not the same.
    return Taken(Call("in", (column, Literal(items)), _BOOL), exact=len(there) == len(values) and not floating)


def _like(column: Column, value: object, pattern: str) -> Taken | None:
    if not isinstance(value, str) or not (pat.is_string(column.type) or pat.is_large_string(column.type)):
        return None
    if any(letter in value for letter in "%_\\"):
        return None
    text = Literal(pa.scalar(pattern.format(value), column.type))
    return Taken(Call("like", (column, text), _BOOL))


def _scalar(value: object, kind: pa.DataType) -> pa.Scalar | None:
    """A value of Spark's as one of a column's type, if it is exactly one; None otherwise."""
    if not _same_kind(value, kind):
        return None
    if pat.is_integer(kind) and isinstance(value, Decimal):
        if value != value.to_integral_value():
            return None
        value = int(value)
    try:
        if isinstance(value, datetime):
            scalar = pa.scalar(value, pa.timestamp("us", "UTC" if value.tzinfo else None)).cast(kind)
        else:
            scalar = pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return None
    if pat.is_floating(kind):
        number = scalar.as_py()
        return scalar if isinstance(number, float) and not math.isnan(number) and number == value else None
    return scalar


def _same_kind(value: object, kind: pa.DataType) -> bool:
    """Whether comparing values of a Python type with a column means the same to Spark and to us."""
    if isinstance(value, bool):
        return bool(pat.is_boolean(kind))
    if isinstance(value, int):
        return bool(pat.is_integer(kind))
    if isinstance(value, float):
        return bool(pat.is_float32(kind) or pat.is_float64(kind))
    if isinstance(value, Decimal):
        return bool(pat.is_decimal128(kind) and kind.scale >= 0) or kind == pa.uint64()
    if isinstance(value, str):
        return bool(pat.is_string(kind) or pat.is_large_string(kind))
    if isinstance(value, bytes | bytearray):
        return bool(pat.is_binary(kind) or pat.is_large_binary(kind))
    if isinstance(value, datetime):
        # Nanoseconds may be cut off for Spark: then a moment there is a range of moments here.
        return bool(pat.is_timestamp(kind)) and kind.unit != "ns" and (kind.tz is None) == (value.tzinfo is None)
    return isinstance(value, date) and bool(pat.is_date32(kind))
