"""Evaluating expressions over Arrow rows, with SQL's three-valued logic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput, LanceletError, Unsupported
from lancelet.expr.bits import true_where
from lancelet.expr.functions import lookup
from lancelet.expr.functions.define import Datum, Function
from lancelet.expr.lazily import LAZY
from lancelet.expr.rows import Rows
from lancelet.expr.tree import Call, Column, Expr, Literal
from lancelet.expr.vectors import column

__all__ = ["compute", "constant_value", "evaluate", "keep"]


def evaluate(expr: Expr, rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """The value of an expression for each row; in chunks for a table.

    >>> from lancelet.expr.parse import parse_value
    >>> rows = pa.table({"x": [1, None, 3]})
    >>> evaluate(parse_value("x + 1", rows.schema), rows).to_pylist()
    [2, None, 4]
    """
    if isinstance(rows, pa.RecordBatch):
        return _array(expr, rows)
    chunks = [_array(expr, batch) for batch in rows.to_batches()]
    return pa.chunked_array(chunks, chunks[0].type if chunks else expr.type)


def keep(expr: Expr, rows: pa.RecordBatch | pa.Table) -> npt.NDArray[np.bool_]:
    """Whether a condition is true, for each row; null and false are False.

    >>> from lancelet.expr.parse import parse_filter
    >>> rows = pa.table({"x": [1, None, 3]})
    >>> keep(parse_filter("x > 2", rows.schema), rows).tolist()
    [False, False, True]
    """
    if not pat.is_boolean(expr.type):
        raise InvalidInput(f"rows are kept by a condition, found {expr.type}")
    if isinstance(rows, pa.RecordBatch):
        return true_where(compute(expr, Rows(rows)), rows.num_rows)
    kept = [true_where(compute(expr, Rows(batch)), batch.num_rows) for batch in rows.to_batches()]
    return kept[0] if len(kept) == 1 else np.concatenate([np.zeros(0, bool), *kept])


def _array(expr: Expr, batch: pa.RecordBatch) -> pa.Array:
    if isinstance(expr, Column) and len(expr.path) == 1:
        # What is only handed on keeps its type, be it a dictionary or an extension.
        return Rows(batch).stored(expr.path[0])
    return column(compute(expr, Rows(batch)), batch.num_rows)


def compute(expr: Expr, rows: Rows) -> Datum:
    """The value of an expression: for each row, or one for all."""
    if isinstance(expr, Literal):
        return expr.value
    if isinstance(expr, Column):
        return rows.column(expr.path)
    lazy = LAZY.get(expr.function)
    if lazy is not None:
        return lazy(expr, rows, compute)
    values = [compute(argument, rows) for argument in expr.arguments]
    return _applied(lookup(expr.function), expr, values, rows.count)


def _applied(function: Function, call: Call, values: list[Datum], rows: int) -> Datum:
    encoded = [place for place, value in enumerate(values) if isinstance(value, pa.DictionaryArray)]
    if len(encoded) == 1 and function.strict and function.constant:
        varying = sum(isinstance(value, pa.Array) for value in values)
        dictionary, indices = values[encoded[0]].dictionary, values[encoded[0]].indices
        if varying == 1 and len(dictionary) < rows:
            # Each value once; the rows then take what became of theirs.
            values[encoded[0]] = dictionary
            return column(_run(function, call, values, len(dictionary)), len(dictionary)).take(indices)
    for place in encoded:
        values[place] = values[place].dictionary_decode()
    return _run(function, call, values, rows)


def _run(function: Function, call: Call, values: Sequence[Datum], rows: int) -> Datum:
    if function.run is None:
        raise Unsupported(f"{call.function} cannot be computed by itself")
    try:
        return function.run(call, values, rows)
    except LanceletError:
        raise
    except pa.ArrowException as error:
        raise InvalidInput(f"{call.function}: {str(error).splitlines()[0]}") from None


def constant_value(expr: Call) -> pa.Scalar:
    """The value of a call of constants.

    >>> constant_value(Call("not", (Literal(pa.scalar(True)),), pa.bool_()))
    <pyarrow.BooleanScalar: False>
    """
    value = compute(expr, Rows(pa.record_batch({"": pa.nulls(1)})))
    return value if isinstance(value, pa.Scalar) else value[0]
