"""Arithmetic: exact or refused; integers that overflow and divisions by zero are errors, floats follow IEEE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import Datum, Function, cast_to
from lancelet.expr.functions.intervals import moved, time_arithmetic
from lancelet.expr.limits import exactly
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import as_decimal, decimal_of, is_number, numeric_type, plain
from lancelet.expr.vectors import column, from_numpy, raw_values, valid_in_all

__all__ = ["FUNCTIONS", "calculated"]

#: Integers worked on at a time, so that they stay in the processor's cache from one step to the next.
_PIECE = 2**14
#: Of a decimal of 256 bits.
_MOST_DIGITS = 76


def calculated(name: str, left: Expr, right: Expr) -> Expr:
    """A calculation with both sides as the type that it is done in.

    >>> from lancelet.expr.tree import Column, literal
    >>> calculated("+", Column(("x",), pa.int8()), literal(1)).type
    DataType(int64)
    """
    one, two = plain(left.type), plain(right.type)
    if pat.is_null(one) or pat.is_null(two):
        kind = one if pat.is_null(two) else two
        return Literal(pa.scalar(None, pa.int64() if pat.is_null(kind) else kind))
    if pat.is_temporal(one) or pat.is_temporal(two):
        return time_arithmetic(name, left, right)
    kind = numeric_type(one, two)
    if kind is None:
        raise InvalidInput(f"cannot calculate {left.type} {name} {right.type}", hint="cast one of them to a number")
    if pat.is_decimal(kind):
        return _decimals(name, left, right, kind)
    return Call(name, (cast_to(left, kind), cast_to(right, kind)), kind)


def _decimals(name: str, left: Expr, right: Expr, common: pa.DataType) -> Expr:
    """Decimals keep as many digits as the result can have, as far as 38 or 76 go."""
    one, two = as_decimal(plain(left.type)), as_decimal(plain(right.type))
    wide = pat.is_decimal256(common)
    if one is None or two is None:
        raise InvalidInput(f"cannot calculate {left.type} {name} {right.type}")
    if wide and pat.is_decimal(plain(left.type)) and pat.is_decimal(plain(right.type)) and one != two:
        one = two = common
    whole = (one.precision - one.scale, two.precision - two.scale)
    scale = max(one.scale, two.scale)
    if name in "+-":
        kind = decimal_of(max(whole) + scale + 1, scale, wide=wide)
    elif name == "*":
        kind = decimal_of(one.precision + two.precision + 1, one.scale + two.scale, wide=wide)
    elif name == "/":
        scale = one.scale + 4
        kind = decimal_of(whole[0] + two.scale + scale, scale, wide=wide)
    else:
        kind = decimal_of(min(whole) + scale, scale, wide=wide)
    return Call(name, (cast_to(left, one), cast_to(right, two)), kind)


def _run(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    left, right = values
    kind = call.type
    if pat.is_temporal(kind) or pat.is_temporal(left.type):
        return moved(call, values, rows)
    if pat.is_decimal(kind):
        return _exact(call.function, left, right, kind)
    if pat.is_float16(kind):
        wide = Call(call.function, call.arguments, pa.float32())
        return _run(wide, [left.cast(pa.float32()), right.cast(pa.float32())], rows).cast(kind)
    if call.function == "%":
        return _remainder(left, right, kind, rows)
    if call.function == "/" and pat.is_floating(kind):
        return pc.divide(left, right)
    try:
        return _CHECKED[call.function](left, right)
    except pa.ArrowInvalid as error:
        raise InvalidInput(_why(call.function, kind, str(error))) from None


def _why(name: str, kind: pa.DataType, said: str) -> str:
    if "zero" in said:
        return f"division by zero in {kind} {name} {kind}"
    return f"{kind} {name} {kind} gives a number that {kind} does not hold; cast one side to a wider type"


_CHECKED: dict[str, Callable[..., Datum]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": pc.divide_checked,
}


def _remainder(left: Datum, right: Datum, kind: pa.DataType, rows: int) -> Datum:
    """What is left of a division that is cut off towards zero: it has the sign of what is divided."""
    if isinstance(left, pa.Array) and isinstance(right, pa.Scalar) and pat.is_integer(kind) and right.is_valid:
        # The remainder is the same by a number and by its negative; the least integer has none of its type.
        size = abs(right.as_py())
        if 0 < size <= np.iinfo(raw_values(left).dtype).max:
            return _remainder_by_constant(left, size, kind)
    one, two = column(left, rows), column(right, rows)
    valid = valid_in_all(one, two)
    dividend, divisor = raw_values(one), raw_values(two)
    if pat.is_integer(kind):
        zero = divisor == 0
        if np.any(zero if valid is None else zero & valid):
            raise InvalidInput(f"division by zero in {kind} % {kind}")
        divisor = np.where(zero, divisor.dtype.type(1), divisor)
        if pat.is_signed_integer(kind):
            # The least integer by -1 overflows where its remainder is taken.
            divisor = np.where(divisor == -1, divisor.dtype.type(1), divisor)
    with np.errstate(all="ignore"):
        return from_numpy(np.fmod(dividend, divisor), kind, valid)


def _remainder_by_constant(left: pa.Array, size: int, kind: pa.DataType) -> pa.Array:
    """The same by one positive integer: NumPy divides by such with multiplications, rounding down."""
    values = raw_values(left)
    data = pa.allocate_buffer(values.nbytes)
    found = np.frombuffer(data, values.dtype)
    divisor = values.dtype.type(size)
    for start in range(0, len(values), _PIECE):
        part, rest = values[start : start + _PIECE], found[start : start + _PIECE]
        np.floor_divide(part, divisor, out=rest)
        np.multiply(rest, divisor, out=rest)
        np.subtract(part, rest, out=rest)
        if part.min() < 0:
            rest[(part < 0) & (rest != 0)] -= divisor
    return from_numpy(found, kind, valid_in_all(left))


def _exact(name: str, left: Datum, right: Datum, kind: pa.DataType) -> Datum:
    """Decimals in 256 bits, so that nothing is lost before the result is known to fit."""
    if name in "/%" and _any_zero(right):
        raise InvalidInput(f"division by zero in {left.type} {name} {right.type}")
    try:
        if name in "+-*":
            return _CHECKED[name](*_widened(name, left, right)).cast(kind)
        quotient = _quotient(left, right, kind.scale if name == "/" else 0)
        if name == "/":
            return quotient.cast(kind)
        return pc.subtract_checked(*_widened("-", left, pc.multiply_checked(*_widened("*", quotient, right)))).cast(
            kind
        )
    except pa.ArrowInvalid:
        raise InvalidInput(_why(name, kind, "")) from None


def _any_zero(value: Datum) -> bool:
    zero = pc.equal(value, pa.scalar(Decimal(0), value.type))
    return bool(pc.any(zero).as_py()) if isinstance(zero, pa.Array) else zero.as_py() is True


def _widened(name: str, left: Datum, right: Datum) -> tuple[Datum, Datum]:
    """Both sides in 256 bits, with no more digits than they use where the result could have more than 76."""
    one, two = left.type, right.type
    digits = one.precision + two.precision + 1
    if name != "*":
        digits = max(one.precision - one.scale, two.precision - two.scale) + max(one.scale, two.scale) + 1
    if digits > _MOST_DIGITS:
        left, right = _tight(left), _tight(right)
    return _wide(left, left.type.precision), _wide(right, right.type.precision)


def _wide(value: Datum, precision: int) -> Datum:
    return value.cast(pa.decimal256(precision, value.type.scale))


def _tight(value: Datum) -> Datum:
    """The same numbers as a type of just as many digits as the longest has."""
    largest = pc.max(pc.abs(value)) if isinstance(value, pa.Array) else pc.abs(value)
    number = largest.as_py()
    used = max(len(number.as_tuple().digits), value.type.scale, 1) if number is not None else 1
    return value.cast(pa.decimal256(min(used, value.type.precision), value.type.scale))


def _quotient(left: Datum, right: Datum, scale: int) -> Datum:
    """A division cut off towards zero behind ``scale`` digits."""
    # Arrow gives a quotient as many digits behind the point as the divisor has before it; of three there are enough.
    divisor = _wide(right, max(right.type.precision, right.type.scale + 3))
    if left.type.precision + divisor.type.precision + 1 > _MOST_DIGITS:
        left, divisor = _tight(left), _tight(right)
        divisor = _wide(divisor, min(max(divisor.type.precision, divisor.type.scale + 3), _MOST_DIGITS))
    found = pc.divide(_wide(left, left.type.precision), divisor)
    return pc.round(found, ndigits=scale, round_mode="towards_zero")


def _bind_negative(_: str, arguments: Sequence[Expr]) -> Expr:
    (value,) = arguments
    kind = plain(value.type)
    if isinstance(value, Literal) and value.value.is_valid:
        if pat.is_interval(kind):
            return Literal(pa.scalar(tuple(-each for each in value.value.as_py()), kind))
        if pat.is_unsigned_integer(kind):
            made = -value.value.as_py()
            return Literal(pa.scalar(made, pa.int64()) if made >= -(2**63) else pa.scalar(float(made)))
    if not (is_number(kind) or pat.is_duration(kind)):
        raise InvalidInput(f"cannot negate {value.type}")
    return Call("negative", (cast_to(value, kind),), kind)


def _negative(call: Call, values: Sequence[Datum], _: int) -> Datum:
    (value,) = values
    if pat.is_float16(value.type):
        return pc.negate(value.cast(pa.float32())).cast(pa.float16())
    if pat.is_unsigned_integer(value.type):
        raise InvalidInput(f"{call.type} has no negative numbers; cast it to a wider type")
    return pc.negate_checked(value)


FUNCTIONS = (
    Function("negative", exactly(1, _bind_negative), _negative),
    *(Function(name, exactly(2, lambda name, arguments: calculated(name, *arguments)), _run) for name in "+-*/%"),
)
