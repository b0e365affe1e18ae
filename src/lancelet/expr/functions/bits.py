"""Functions of the bits of integers, and whole-number division."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import Datum, Function, cast_to
from lancelet.expr.limits import exactly
from lancelet.expr.tree import Call, Expr
from lancelet.expr.types import numeric_type, plain

__all__ = ["FUNCTIONS"]

_KERNELS: dict[str, Callable[..., Datum]] = {
    "&": pc.bit_wise_and,
    "|": pc.bit_wise_or,
    "^": pc.bit_wise_xor,
    "div": pc.divide_checked,
}


def _bind(name: str, arguments: Sequence[Expr]) -> Expr:
    one, two = arguments
    kind = numeric_type(one.type, two.type)
    if kind is None or not pat.is_integer(kind):
        raise InvalidInput(f"{name} takes integers, found {one.type} and {two.type}")
    return Call(name, (cast_to(one, kind), cast_to(two, kind)), kind)


def _bind_shift(name: str, arguments: Sequence[Expr]) -> Expr:
    one, two = arguments
    kind = plain(one.type)
    if not (pat.is_integer(kind) and pat.is_integer(plain(two.type))):
        raise InvalidInput(f"{name} takes integers, found {one.type} and {two.type}")
    return Call(name, (cast_to(one, kind), cast_to(two, kind)), kind)


def _run(call: Call, values: Sequence[Datum], _: int) -> Datum:
    try:
        return _KERNELS[call.function](*values)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{call.type} {call.function} {call.type}: {error}") from None


def _shifted(call: Call, values: Sequence[Datum], _: int) -> Datum:
    return (pc.shift_left_checked if call.function == "<<" else pc.shift_right_checked)(*values)


def _bind_not(name: str, arguments: Sequence[Expr]) -> Expr:
    (value,) = arguments
    kind = plain(value.type)
    if not pat.is_integer(kind):
        raise InvalidInput(f"{name} takes an integer or a condition, found {value.type}")
    return Call(name, (cast_to(value, kind),), kind)


FUNCTIONS = (
    *(Function(name, exactly(2, _bind), _run) for name in _KERNELS),
    *(Function(name, exactly(2, _bind_shift), _shifted) for name in ("<<", ">>")),
    Function("~", exactly(1, _bind_not), lambda _, values, __: pc.bit_wise_not(values[0])),
)
