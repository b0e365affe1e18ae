"""Expressions as a frozen, typed tree of three kinds of node, and the questions asked of the tree alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

__all__ = [
    "FALSE",
    "TRUE",
    "Call",
    "Column",
    "Expr",
    "Literal",
    "columns_of",
    "conjuncts",
    "depth_of",
    "dotted",
    "literal",
    "walk",
]


@dataclass(frozen=True, slots=True)
class Column:
    """A stored or system column, or a field inside structs: names from the top down."""

    path: tuple[str, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; null where the scalar is."""

    value: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        """The type of the constant."""
        return self.value.type


@dataclass(frozen=True, slots=True)
class Call:
    """A function of other expressions. The names are those of :mod:`lancelet.expr.functions`."""

    function: str
    arguments: tuple[Expr, ...]
    type: pa.DataType


Expr: TypeAlias = Column | Literal | Call

TRUE = Literal(pa.scalar(True))
FALSE = Literal(pa.scalar(False))


def literal(value: object, kind: pa.DataType | None = None) -> Literal:
    """A constant of a Python value.

    >>> literal(3, pa.int8()).type
    DataType(int8)
    """
    return Literal(pa.scalar(value, kind))


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, parents before their arguments, arguments in order.

    >>> [type(node).__name__ for node in walk(Call("not", (TRUE,), pa.bool_()))]
    ['Call', 'Literal']
    """
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Call):
            waiting.extend(reversed(node.arguments))


def depth_of(expr: Expr) -> int:
    """How many nodes stand above each other at most.

    >>> depth_of(Call("not", (TRUE,), pa.bool_()))
    2
    """
    deepest, waiting = 0, [(expr, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, Call):
            waiting.extend((argument, depth + 1) for argument in node.arguments)
    return deepest


def dotted(path: tuple[str, ...]) -> str:
    """A path as text: names joined by dots, a name that holds a dot or a backtick between backticks.

    >>> dotted(("s", "x.y"))
    's.`x.y`'
    """
    return ".".join(f"`{name.replace('`', '``')}`" if "." in name or "`" in name else name for name in path)


def columns_of(expr: Expr) -> tuple[str, ...]:
    """The dotted paths of the columns that an expression reads, in order of appearance, each once.

    >>> x = Column(("s", "x"), pa.int8())
    >>> columns_of(Call("=", (x, x), pa.bool_()))
    ('s.x',)
    """
    return tuple(dict.fromkeys(dotted(node.path) for node in walk(expr) if isinstance(node, Column)))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The conditions that all have to hold, where they are joined by ``and``; else the expression alone.

    >>> len(conjuncts(Call("and", (TRUE, Call("and", (FALSE, TRUE), pa.bool_())), pa.bool_())))
    3
    """
    found: list[Expr] = []
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function == "and":
            waiting.extend(reversed(node.arguments))
        else:
            found.append(node)
    return tuple(found)
