"""What a function is: how its arguments are bound to types, and what computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.literals import fitted
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import is_binary, is_list, is_nested, is_number, is_text, plain

__all__ = [
    "ANYTHING",
    "BOOLEAN",
    "BYTES",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "LIST",
    "MAP",
    "NUMBER",
    "PRINTABLE",
    "TEXT",
    "TIME",
    "Argument",
    "Bind",
    "Datum",
    "Function",
    "Run",
    "cast_to",
    "integer_of",
    "same_as",
    "takes",
]

Datum: TypeAlias = pa.Array | pa.Scalar
#: Given a call, the values of its arguments and how many rows there are: one value for each row, or one for all.
Run: TypeAlias = Callable[[Call, Sequence[Datum], int], Datum]
#: Given the name that was written and the arguments: the call, its arguments as the function wants them.
Bind: TypeAlias = Callable[[str, Sequence[Expr]], Expr]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of rows."""

    name: str
    bind: Bind
    #: None for what looks at some arguments only where they matter: :mod:`lancelet.expr.lazily`.
    run: Run | None
    #: Other names for it.
    aliases: tuple[str, ...] = ()
    #: Whether a null argument makes the result null.
    strict: bool = True
    #: Whether the same arguments always give the same value.
    constant: bool = True
    #: How much more than a comparison it costs for a row, roughly.
    cost: int = 1


@dataclass(frozen=True, slots=True)
class Argument:
    """A kind of argument: what messages call it, and the argument as the function takes it, or None."""

    label: str
    fit: Callable[[Expr], Expr | None]


def cast_to(expr: Expr, kind: pa.DataType) -> Expr:
    """An expression as another type; a constant that the type holds exactly becomes one of that type.

    >>> cast_to(Literal(pa.scalar(1)), pa.int8())
    Literal(value=<pyarrow.Int8Scalar: 1>)
    """
    if expr.type == kind:
        return expr
    if isinstance(expr, Literal):
        found = fitted(expr.value, kind)
        if found is not None and found.exact and found.value is not None:
            return Literal(found.value)
    return Call("cast", (expr,), kind)


def integer_of(name: str, expr: Expr, place: int) -> Expr:
    """An argument of which a function makes a 64-bit integer; InvalidInput if it is none.

    >>> integer_of("array_resize", Literal(pa.scalar(2, pa.int8())), 2)
    Literal(value=<pyarrow.Int64Scalar: 2>)
    """
    if pat.is_null(expr.type) or pat.is_integer(plain(expr.type)):
        return cast_to(expr, pa.int64())
    raise InvalidInput(f"{name} takes an integer as argument {place}, found {expr.type}")


def same_as(place: int) -> Callable[[Sequence[Expr]], pa.DataType]:
    """The type of the argument at a place: what a function gives that keeps its argument's type."""
    return lambda arguments: plain(arguments[place].type)


def takes(
    *kinds: Argument,
    returns: pa.DataType | Callable[[Sequence[Expr]], pa.DataType],
    least: int | None = None,
    rest: Argument | None = None,
) -> Bind:
    """Binds arguments of fixed kinds, of which the last may be left out down to ``least``, and any number of ``rest``.

    >>> bind = takes(TEXT, INTEGER, returns=pa.string(), least=1)
    >>> bind("left", [Literal(pa.scalar("a"))]).type
    DataType(string)
    """
    fewest = len(kinds) if least is None else least

    def bind(name: str, arguments: Sequence[Expr]) -> Expr:
        if len(arguments) < fewest or (rest is None and len(arguments) > len(kinds)):
            raise InvalidInput(f"{name} takes {_count(fewest, len(kinds), rest)}, found {len(arguments)}")
        made = []
        for place, argument in enumerate(arguments):
            kind = kinds[place] if place < len(kinds) else rest
            found = None if kind is None else _null_as(argument, kind) or kind.fit(argument)
            if found is None:
                label = kind.label if kind is not None else "nothing"
                raise InvalidInput(f"{name} takes {label} as argument {place + 1}, found {argument.type}")
            made.append(found)
        return Call(name, tuple(made), returns(made) if callable(returns) else returns)

    return bind


def _count(fewest: int, most: int, rest: Argument | None) -> str:
    if rest is not None:
        return f"{fewest} or more arguments"
    return f"{most} arguments" if fewest == most else f"{fewest} to {most} arguments"


def _null_as(expr: Expr, kind: Argument) -> Expr | None:
    """A null of no type as a null of the kind's usual type."""
    usual = _USUAL.get(kind.label)
    if usual is None or not pat.is_null(expr.type):
        return None
    return Literal(pa.scalar(None, usual)) if isinstance(expr, Literal) else Call("cast", (expr,), usual)


def _text(expr: Expr) -> Expr | None:
    return cast_to(expr, plain(expr.type)) if is_text(expr.type) else None


def _printable(expr: Expr) -> Expr | None:
    if is_text(expr.type):
        return _text(expr)
    return None if is_nested(expr.type) or is_binary(expr.type) else cast_to(expr, pa.string())


def _bytes(expr: Expr) -> Expr | None:
    return cast_to(expr, plain(expr.type)) if is_text(expr.type) or is_binary(expr.type) else None


def _integer(expr: Expr) -> Expr | None:
    return cast_to(expr, pa.int64()) if pat.is_integer(plain(expr.type)) else None


def _double(expr: Expr) -> Expr | None:
    return cast_to(expr, pa.float64()) if is_number(expr.type) else None


def _float(expr: Expr) -> Expr | None:
    """Floats of 32 and 64 bits as they are, every other number as a double."""
    if not is_number(expr.type):
        return None
    kind = plain(expr.type)
    return cast_to(expr, kind if kind in (pa.float32(), pa.float64()) else pa.float64())


def _only(test: Callable[[pa.DataType], bool]) -> Callable[[Expr], Expr | None]:
    return lambda expr: cast_to(expr, plain(expr.type)) if test(plain(expr.type)) else None


TEXT = Argument("text", _text)
#: Text, or whatever is shown as text without doubt.
PRINTABLE = Argument("text or a number", _printable)
BYTES = Argument("text or bytes", _bytes)
INTEGER = Argument("an integer", _integer)
NUMBER = Argument("a number", _only(is_number))
DOUBLE = Argument("a number", _double)
FLOAT = Argument("a number", _float)
BOOLEAN = Argument("a condition", _only(pat.is_boolean))
TIME = Argument("a date or time", _only(lambda kind: bool(pat.is_temporal(kind) and not pat.is_interval(kind))))
LIST = Argument("a list", _only(is_list))
MAP = Argument("a map", _only(pat.is_map))
ANYTHING = Argument("anything", lambda expr: cast_to(expr, plain(expr.type)))

_USUAL: dict[str, pa.DataType] = {
    "text": pa.string(),
    "text or a number": pa.string(),
    "text or bytes": pa.string(),
    "an integer": pa.int64(),
    "a number": pa.float64(),
    "a condition": pa.bool_(),
    "a date or time": pa.timestamp("us"),
}
