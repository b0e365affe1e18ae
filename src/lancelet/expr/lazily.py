"""Functions that look at some arguments only where they matter: and, or, case, coalesce.

An argument that cannot be computed for some row, as a division by zero, is an error only where its value decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput
from lancelet.expr.bits import marked, to_bools, true_where
from lancelet.expr.functions import lookup
from lancelet.expr.functions.define import Datum
from lancelet.expr.rows import Rows
from lancelet.expr.tree import Call, Expr, walk
from lancelet.expr.vectors import column, from_numpy

__all__ = ["LAZY"]

Compute: TypeAlias = Callable[[Expr, Rows], Datum]
_Places: TypeAlias = npt.NDArray[np.int64]

#: From this cost on it pays to compute a condition only for rows that others leave, if they leave few enough.
_DEAR = 8
_FEW = 0.25


def _cost(expr: Expr) -> int:
    return max((lookup(node.function).cost for node in walk(expr) if isinstance(node, Call)), default=0)


def _joined(call: Call, rows: Rows, compute: Compute) -> Datum:
    """And, or: cheap arguments first, dear and failing ones only for rows that the others have not decided."""
    join = pc.and_kleene if call.function == "and" else pc.or_kleene
    costs = [_cost(argument) for argument in call.arguments]
    cheap = [argument for argument, cost in zip(call.arguments, costs, strict=True) if cost < _DEAR]
    dear = [argument for argument, cost in zip(call.arguments, costs, strict=True) if cost >= _DEAR]
    result: Datum | None = None
    failed: list[Expr] = []
    for argument in cheap:
        try:
            value = compute(argument, rows)
        except InvalidInput:
            failed.append(argument)
            continue
        result = value if result is None else join(result, value)
    for argument in dear:
        result = _narrowed(call.function, result, argument, rows, compute, _FEW)
    for argument in failed:
        result = _narrowed(call.function, result, argument, rows, compute, 1.0)
    if result is None:
        raise InvalidInput(f"{call.function} without arguments")
    return result


def _narrowed(name: str, known: Datum | None, argument: Expr, rows: Rows, compute: Compute, share: float) -> Datum:
    """The join of what is known with an argument, which is computed where what is known does not decide."""
    if known is None:
        return compute(argument, rows)
    join = pc.and_kleene if name == "and" else pc.or_kleene
    whole = column(known, rows.count)
    values, valid = to_bools(whole)
    open_rows = values if name == "and" else ~values
    if valid is not None:
        open_rows = open_rows | ~valid
    chosen = np.flatnonzero(open_rows)
    if len(chosen) > share * rows.count:
        try:
            return join(known, compute(argument, rows))
        except InvalidInput:
            pass
    if not len(chosen):
        return known
    value = column(compute(argument, rows.only(chosen)), len(chosen))
    return pc.replace_with_mask(whole, marked(open_rows), join(whole.take(pa.array(chosen)), value))


def _case(call: Call, rows: Rows, compute: Compute) -> Datum:
    """``case`` of conditions and values in turns, and what is taken where none of them is true."""
    *pairs, default = call.arguments
    try:
        conditions = [column(compute(each, rows), rows.count) for each in pairs[::2]]
        values = [compute(each, rows) for each in pairs[1::2]]
        otherwise = compute(default, rows)
    except InvalidInput:
        return _case_by_parts(call, rows, compute)
    return pc.case_when(pc.make_struct(*conditions), *map(_plain, values), _plain(otherwise))


def _plain(value: Datum) -> Datum:
    return value.dictionary_decode() if isinstance(value, pa.DictionaryArray) else value


def _case_by_parts(call: Call, rows: Rows, compute: Compute) -> Datum:
    *pairs, default = call.arguments
    left = np.arange(rows.count, dtype=np.int64)
    parts: list[tuple[_Places, pa.Array]] = []
    for test, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not len(left):
            break
        true = true_where(compute(test, rows.only(left)), len(left))
        chosen = left[true]
        if len(chosen):
            parts.append((chosen, column(compute(value, rows.only(chosen)), len(chosen))))
        left = left[~true]
    if len(left):
        parts.append((left, column(compute(default, rows.only(left)), len(left))))
    return _assembled(parts, rows.count, call.type)


def _assembled(parts: Sequence[tuple[_Places, pa.Array]], rows: int, kind: pa.DataType) -> pa.Array:
    """Values for parts of the rows, in the order of the rows."""
    order = np.zeros(rows, np.int64)
    if not parts:
        return pa.array([], kind)
    order[np.concatenate([places for places, _ in parts])] = np.arange(rows)
    return pa.concat_arrays([_plain(values) for _, values in parts]).take(from_numpy(order, pa.int64()))


def _coalesce(call: Call, rows: Rows, compute: Compute) -> Datum:
    try:
        values = [_plain(compute(argument, rows)) for argument in call.arguments]
    except InvalidInput:
        return _coalesce_by_parts(call, rows, compute)
    return pc.coalesce(*values) if any(isinstance(value, pa.Array) for value in values) else _first(values)


def _first(values: Sequence[pa.Scalar]) -> pa.Scalar:
    return next((value for value in values if value.is_valid), values[-1])


def _coalesce_by_parts(call: Call, rows: Rows, compute: Compute) -> Datum:
    left = np.arange(rows.count, dtype=np.int64)
    parts: list[tuple[_Places, pa.Array]] = []
    for argument in call.arguments[:-1]:
        if not len(left):
            break
        value = _plain(column(compute(argument, rows.only(left)), len(left)))
        there = np.asarray(value.is_valid())
        parts.append((left[there], value.filter(pa.array(there))))
        left = left[~there]
    if len(left):
        parts.append((left, column(compute(call.arguments[-1], rows.only(left)), len(left))))
    return _assembled(parts, rows.count, call.type)


LAZY: dict[str, Callable[[Call, Rows, Compute], Datum]] = {
    "and": _joined,
    "or": _joined,
    "case": _case,
    "coalesce": _coalesce,
}
