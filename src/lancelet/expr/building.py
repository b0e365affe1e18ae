"""Calls put together by name, as whatever is not text asks for them."""

from __future__ import annotations

import pyarrow as pa

from lancelet.expr.folding import folded
from lancelet.expr.functions import lookup
from lancelet.expr.functions.logic import condition
from lancelet.expr.tree import Expr, Literal

__all__ = ["call", "constant", "known_finite", "known_infinite"]


def call(name: str, *arguments: Expr) -> Expr:
    """A function of arguments, which it takes as it takes them in a text; a constant where they are.

    >>> call("upper", constant("a")).value
    <pyarrow.StringScalar: 'A'>
    """
    function = lookup(name)
    if function.name in ("and", "or", "not"):
        arguments = tuple(map(condition, arguments))
    return folded(function.bind(function.name, arguments))


def constant(value: object) -> Literal:
    """A constant of a Python value.

    >>> constant(1).type
    DataType(int64)
    """
    return Literal(pa.scalar(value))


def known_infinite(number: Expr) -> Expr:
    """Whether a number is infinite: the greatest but not-a-number, without its sign."""
    return call("=", call("abs", number), constant(float("inf")))


def known_finite(number: Expr) -> Expr:
    """Whether a number is neither infinite nor not-a-number, which is above all others."""
    return call("<", call("abs", number), constant(float("inf")))
