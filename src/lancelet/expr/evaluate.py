"""Evaluating expressions over Arrow rows, with SQL's three-valued logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.tree import Call, Column, Expr, Literal

__all__ = ["evaluate", "keep"]

Datum: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar


def evaluate(expr: Expr, rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """The value of an expression for each row.

    >>> from lancelet.expr.parse import parse_value
    >>> rows = pa.table({"x": [1, None, 3]})
    >>> evaluate(parse_value("x + 1", rows.schema), rows).to_pylist()
    [2, None, 4]
    """
    value = _value(expr, rows)
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows.num_rows)
    return value


def keep(expr: Expr, rows: pa.RecordBatch | pa.Table) -> npt.NDArray[np.bool_]:
    """Whether a condition is true, for each row; null and false are False.

    >>> from lancelet.expr.parse import parse_filter
    >>> rows = pa.table({"x": [1, None, 3]})
    >>> keep(parse_filter("x > 2", rows.schema), rows).tolist()
    [False, False, True]
    """
    value = evaluate(expr, rows)
    if value.null_count:
        value = pc.fill_null(value, False)
    return np.asarray(value.to_numpy(zero_copy_only=False) if isinstance(value, pa.Array) else value.to_numpy(), bool)


def _value(expr: Expr, rows: pa.RecordBatch | pa.Table) -> Datum:
    if isinstance(expr, Literal):
        return expr.value
    if isinstance(expr, Column):
        return _column(expr, rows)
    run = _RUN.get(expr.function)
    if run is None:
        raise Unsupported(f"function {expr.function!r} cannot be computed")
    try:
        return run(expr, [_value(argument, rows) for argument in expr.arguments])
    except pa.ArrowException as error:
        raise InvalidInput(f"{expr.function}: {error}") from None


def _column(expr: Column, rows: pa.RecordBatch | pa.Table) -> Datum:
    place = rows.schema.get_field_index(expr.path[0])
    if place < 0:
        raise InvalidInput(f"the rows have no column {expr.path[0]!r}", column=expr.path[0])
    value = rows.column(place)
    for name in expr.path[1:]:
        value = pc.struct_field(value, name)
    return value


_Run: TypeAlias = Callable[[Call, list[Datum]], Datum]


def _plain(compute: Callable[..., Datum]) -> _Run:
    return lambda _, values: compute(*values)


def _folded(compute: Callable[..., Datum]) -> _Run:
    def run(_expr: Call, values: list[Datum]) -> Datum:
        result = values[0]
        for value in values[1:]:
            result = compute(result, value)
        return result

    return run


def _is_in(_expr: Call, values: list[Datum]) -> Datum:
    wanted = values[1].values
    found = pc.is_in(values[0], value_set=wanted.drop_null(), skip_nulls=False)
    null = pc.is_null(values[0])
    if wanted.null_count:
        null = pc.or_(null, pc.invert(found))
    return pc.if_else(null, pa.scalar(None, pa.bool_()), found)


_RUN: dict[str, _Run] = {
    "and": _folded(pc.and_kleene),
    "or": _folded(pc.or_kleene),
    "not": _plain(pc.invert),
    "=": _plain(pc.equal),
    "!=": _plain(pc.not_equal),
    "<": _plain(pc.less),
    "<=": _plain(pc.less_equal),
    ">": _plain(pc.greater),
    ">=": _plain(pc.greater_equal),
    "is_null": _plain(pc.is_null),
    "is_not_null": _plain(pc.is_valid),
    "in": _is_in,
    "+": _plain(pc.add_checked),
    "-": _plain(pc.subtract_checked),
    "*": _plain(pc.multiply_checked),
    "/": _plain(pc.divide_checked),
    "cast": lambda expr, values: pc.cast(values[0], expr.type),
}
