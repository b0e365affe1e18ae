"""And, or, not: flattened when they are bound, and without the parts that constants decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import Datum, Function
from lancelet.expr.tree import FALSE, TRUE, Call, Expr, Literal
from lancelet.expr.types import plain

__all__ = ["FUNCTIONS", "all_of", "any_of", "condition", "negated", "opposite"]

_OPPOSITES = {
    "=": "!=",
    "<": ">=",
    "<=": ">",
    "is_null": "is_not_null",
    "is_true": "is_not_true",
    "is_false": "is_not_false",
    "is_distinct": "is_not_distinct",
}
_OPPOSITES |= {other: name for name, other in _OPPOSITES.items()}


def condition(expr: Expr) -> Expr:
    """An expression where a condition is wanted. As in pylance, ``regexp_match`` there asks for a match."""
    if pat.is_null(expr.type):
        return Literal(pa.scalar(None, pa.bool_()))
    if isinstance(expr, Call) and expr.function == "regexp_match":
        return Call("is_not_null", (expr,), pa.bool_())
    if not pat.is_boolean(plain(expr.type)):
        raise InvalidInput(f"found {expr.type}, expected a condition")
    return expr


def all_of(parts: Iterable[Expr]) -> Expr:
    """Conditions joined by ``and``: one level, what is always true left out, false if one is always false.

    >>> all_of([TRUE, TRUE]) == TRUE, all_of([Literal(pa.scalar(None, pa.bool_())), FALSE]) == FALSE
    (True, True)
    """
    return _joined("and", parts, neutral=TRUE, decisive=FALSE)


def any_of(parts: Iterable[Expr]) -> Expr:
    """Conditions joined by ``or``."""
    return _joined("or", parts, neutral=FALSE, decisive=TRUE)


def _joined(name: str, parts: Iterable[Expr], *, neutral: Literal, decisive: Literal) -> Expr:
    flat: list[Expr] = []
    for part in parts:
        found = condition(part)
        if isinstance(found, Call) and found.function == name:
            flat.extend(found.arguments)
        elif isinstance(found, Literal) and found.value.is_valid:
            if found.value.equals(decisive.value):
                return decisive
        else:
            flat.append(found)
    if not flat:
        return neutral
    return flat[0] if len(flat) == 1 else Call(name, tuple(flat), pa.bool_())


def opposite(function: str) -> str | None:
    """The function that is true where another is false and null where it is null; None if there is none.

    >>> opposite("<"), opposite("like")
    ('>=', None)
    """
    return _OPPOSITES.get(function)


def negated(expr: Expr) -> Expr:
    """The condition that is true where another is false.

    >>> from lancelet.expr.tree import Column
    >>> negated(Call("<", (Column(("x",), pa.int8()), Literal(pa.scalar(1, pa.int8()))), pa.bool_())).function
    '>='
    """
    expr = condition(expr)
    if isinstance(expr, Literal):
        return expr if not expr.value.is_valid else (FALSE if expr.value.as_py() else TRUE)
    if isinstance(expr, Call):
        if expr.function == "not":
            return expr.arguments[0]
        other = opposite(expr.function)
        if other is not None:
            return Call(other, expr.arguments, pa.bool_())
    return Call("not", (expr,), pa.bool_())


def _only_one(name: str, arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 1:
        raise InvalidInput(f"{name} takes 1 argument, found {len(arguments)}")
    return negated(arguments[0])


def _not(_: Call, values: Sequence[Datum], __: int) -> Datum:
    return pc.invert(values[0])


FUNCTIONS = (
    Function("and", lambda _, arguments: all_of(arguments), None, strict=False),
    Function("or", lambda _, arguments: any_of(arguments), None, strict=False),
    Function("not", _only_one, _not),
)
