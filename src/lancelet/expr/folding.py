"""Constant parts of expressions as the constants that they give."""

from __future__ import annotations

from lancelet.errors import InvalidInput
from lancelet.expr.evaluate import constant_value
from lancelet.expr.functions import known
from lancelet.expr.tree import Call, Expr, Literal

__all__ = ["folded"]


def folded(expr: Expr) -> Expr:
    """A call of constants as its value. What cannot be computed stays, and fails where a row needs it.

    >>> import pyarrow as pa
    >>> folded(Call("not", (Literal(pa.scalar(True)),), pa.bool_()))
    Literal(value=<pyarrow.BooleanScalar: False>)
    """
    if not isinstance(expr, Call):
        return expr
    if any(isinstance(argument, Call) for argument in expr.arguments):
        made = tuple(_constant(argument) for argument in expr.arguments)
        if any(one is not two for one, two in zip(made, expr.arguments, strict=True)):
            expr = Call(expr.function, made, expr.type)
    return _constant(expr)


def _constant(expr: Expr) -> Expr:
    if not isinstance(expr, Call) or not all(isinstance(argument, Literal) for argument in expr.arguments):
        return expr
    function = known(expr.function)
    if function is None or not function.constant:
        return expr
    try:
        return Literal(constant_value(expr))
    except InvalidInput:
        return expr
