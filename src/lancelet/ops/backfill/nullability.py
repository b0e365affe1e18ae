"""Nullability: whether an expression can be null for any row, as far as the columns and functions in it tell."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from lancelet.expr import Column, Expr, Literal

__all__ = ["may_be_null"]

#: Functions that are never null.
_NEVER = frozenset(
    {
        *("is_null", "is_not_null", "is_true", "is_not_true", "is_false", "is_not_false"),
        *("is_distinct", "is_not_distinct", "now", "current_date"),
    }
)
#: Functions that are null only where an argument is.
_ONLY_BY_ARGUMENTS = frozenset(
    {
        *("+", "-", "*", "/", "%", "||", "negative", "cast", "not", "and", "or"),
        *("=", "!=", "<", "<=", ">", ">=", "in", "like", "ilike", "mod", "starts_with", "&", "|", "^", "<<", ">>"),
    }
)


def may_be_null(expr: Expr, schema: pa.Schema) -> bool:
    """Whether an expression over the columns of a schema may be null. Of functions not known here it is said.

    >>> from lancelet.expr import Call
    >>> columns = pa.schema([pa.field("x", pa.int8(), nullable=False), pa.field("y", pa.int8())])
    >>> x, y = (Column((name,), pa.int8()) for name in "xy")
    >>> [may_be_null(Call("+", (x, other), pa.int8()), columns) for other in (x, y)]
    [False, True]
    """
    if isinstance(expr, Literal):
        return not expr.value.is_valid
    if isinstance(expr, Column):
        return _column(expr, schema)
    if expr.function in _NEVER:
        return False
    if expr.function == "coalesce":
        return all(may_be_null(item, schema) for item in expr.arguments)
    if expr.function in _ONLY_BY_ARGUMENTS:
        return any(_argument(item, schema) for item in expr.arguments)
    return True


def _argument(expr: Expr, schema: pa.Schema) -> bool:
    if isinstance(expr, Literal) and expr.value.is_valid and pat.is_list(expr.type):
        # The members of IN: a null among them makes what is not found null.
        return any(not item.is_valid for item in expr.value)
    return may_be_null(expr, schema)


def _column(column: Column, schema: pa.Schema) -> bool:
    field: pa.Field = schema.field(column.path[0])
    nullable: bool = field.nullable
    for name in column.path[1:]:
        field = field.type.field(name)
        nullable = nullable or field.nullable
    return nullable
