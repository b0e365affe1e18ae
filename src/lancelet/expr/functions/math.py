"""Functions of numbers, by Arrow's and NumPy's loops; outside of where a function is defined it gives not-a-number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.casting import converted
from lancelet.expr.functions.arithmetic import calculated
from lancelet.expr.functions.define import (
    DOUBLE,
    FLOAT,
    INTEGER,
    NUMBER,
    Bind,
    Datum,
    Function,
    Run,
    cast_to,
    integer_of,
    same_as,
    takes,
)
from lancelet.expr.limits import exactly
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import decimal_of, is_number, plain
from lancelet.expr.vectors import column, from_numpy, raw_values, valid_in_all

__all__ = ["FUNCTIONS"]

_Floats = npt.NDArray[np.floating]


def _loop(compute: Callable[..., Any]) -> Run:
    """NumPy's loop over the values, whatever is where they are null."""

    def run(call: Call, values: Sequence[Datum], rows: int) -> Datum:
        arrays = [column(value, rows) for value in values]
        # Narrow floats are computed as wide ones, and so are rounded once.
        wide = [raw_values(array.cast(pa.float64()) if pat.is_float32(array.type) else array) for array in arrays]
        with np.errstate(all="ignore"):
            return from_numpy(compute(*wide), call.type, valid_in_all(*arrays))

    return run


def _abs(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    value = column(values[0], rows)
    if pat.is_float16(value.type):
        return pc.abs(value.cast(pa.float32())).cast(pa.float16())
    try:
        return pc.abs_checked(value).cast(call.type)
    except pa.ArrowInvalid:
        raise InvalidInput(f"abs of a {value.type} gives a number that the type does not hold") from None


def _bind_abs(name: str, arguments: Sequence[Expr]) -> Expr:
    return takes(NUMBER, returns=same_as(0))(name, arguments)


def _whole_type(arguments: Sequence[Expr]) -> pa.DataType:
    """Floats and decimals stay what they are, integers become doubles."""
    kind = plain(arguments[0].type)
    return kind if pat.is_decimal(kind) or kind == pa.float32() else pa.float64()


def _rounding(kernel: Callable[[pa.Array], pa.Array]) -> Run:
    def run(call: Call, values: Sequence[Datum], rows: int) -> Datum:
        value = column(values[0], rows)
        if pat.is_decimal(call.type):
            return _at_scale(kernel(value), call.type)
        return kernel(converted(value, call.type))

    return run


def _at_scale(value: pa.Array, kind: pa.DataType) -> pa.Array:
    made = converted(value, kind)
    if made.null_count > value.null_count:
        raise InvalidInput(f"a rounded number does not fit {kind}")
    return made


def _bind_round(name: str, arguments: Sequence[Expr]) -> Expr:
    """Digits of decimals are known when they are constant."""
    if not 1 <= len(arguments) <= 2:
        raise InvalidInput(f"{name} takes 1 to 2 arguments, found {len(arguments)}")
    value, *more = arguments
    kind = plain(value.type)
    if not is_number(kind) and not pat.is_null(kind):
        raise InvalidInput(f"{name} takes a number as argument 1, found {value.type}")
    if pat.is_decimal(kind) and name == "round":
        places = [integer_of(name, each, 2) for each in more]
        digits = places[0].value.as_py() if places and isinstance(places[0], Literal) else 0
        scale = min(max(digits or 0, 0), kind.scale)
        kind = decimal_of(kind.precision, scale, wide=bool(pat.is_decimal256(kind)))
        return Call(name, (cast_to(value, plain(value.type)), *places), kind)
    return takes(FLOAT, INTEGER, least=1, returns=same_as(0))(name, arguments)


def _round(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    mode = "half_towards_infinity" if call.function == "round" else "towards_zero"
    value = column(values[0], rows)
    digits = values[1] if len(values) > 1 else pa.scalar(0)
    if isinstance(digits, pa.Scalar):
        if not digits.is_valid:
            return pa.nulls(rows, call.type)
        if pat.is_decimal(call.type):
            return _at_scale(pc.round(value, ndigits=digits.as_py(), round_mode=mode), call.type)
        if digits.as_py() == 0:
            return pc.round(value, round_mode=mode)
    places = raw_values(column(digits, rows))
    if pat.is_decimal(call.type):
        raise InvalidInput(f"{call.function} of decimals takes a constant number of digits")
    numbers = raw_values(value)
    with np.errstate(all="ignore"):
        power = np.power(10.0, places.astype(np.float64)).astype(numbers.dtype)
        scaled = numbers * power
        rounded = np.trunc(scaled + np.copysign(0.5, scaled)) if call.function == "round" else np.trunc(scaled)
        made = np.where(np.isfinite(scaled), rounded / power, numbers)
    return from_numpy(made, call.type, valid_in_all(value, column(digits, rows)))


def _log(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """To the base 10, or to the base that comes first."""
    if len(values) == 1:
        return _loop(np.log10)(call, values, rows)
    return _loop(lambda base, value: np.log(value) / np.log(base))(call, values, rows)


def _bind_atan2(name: str, arguments: Sequence[Expr]) -> Expr:
    """Narrow beside narrow floats and constants, as pylance has it."""
    kinds = [plain(each.type) for each in arguments]
    if pa.float32() in kinds and all(
        kind == pa.float32() or (isinstance(each, Literal) and is_number(kind))
        for kind, each in zip(kinds, arguments, strict=True)
    ):
        narrow = [cast_to(each, pa.float32()) for each in arguments]
        return takes(FLOAT, FLOAT, returns=pa.float32())(name, narrow)
    return takes(DOUBLE, DOUBLE, returns=pa.float64())(name, arguments)


def _bind_log(name: str, arguments: Sequence[Expr]) -> Expr:
    """As narrow as the number is; the base comes first, if there is one."""
    if len(arguments) == 1:
        return takes(FLOAT, returns=same_as(0))(name, arguments)
    return takes(DOUBLE, FLOAT, returns=same_as(1))(name, arguments)


def _bind_power(name: str, arguments: Sequence[Expr]) -> Expr:
    return takes(DOUBLE, DOUBLE, returns=pa.float64())(name, arguments)


def _bind_gcd(name: str, arguments: Sequence[Expr]) -> Expr:
    return takes(INTEGER, INTEGER, returns=pa.int64())(name, arguments)


def _gcd(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    arrays = [column(value, rows) for value in values]
    one, two = map(raw_values, arrays)
    valid = valid_in_all(*arrays)
    divisor = np.gcd(one, two)
    if call.function == "gcd":
        return from_numpy(divisor, pa.int64(), valid)
    # The product may overflow where the multiple does not.
    with np.errstate(all="ignore"):
        parts = np.where(divisor == 0, 0, one // np.where(divisor == 0, 1, divisor))
        multiple = np.abs(parts * two)
        exact = np.abs(parts.astype(np.float64) * two.astype(np.float64)) < 2.0**63
    if not np.all(exact if valid is None else exact | ~valid):
        raise InvalidInput("lcm gives a number that int64 does not hold")
    return from_numpy(multiple, pa.int64(), valid)


def _factorial(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    value = column(values[0], rows)
    numbers, valid = raw_values(value), valid_in_all(value)
    known = np.ones(len(numbers), bool) if valid is None else valid
    if np.any(known & (numbers < 0)):
        raise InvalidInput("the factorial of a negative number is undefined")
    if np.any(known & (numbers > 20)):
        raise InvalidInput("the factorial of a number above 20 does not fit int64")
    table = np.array([math.factorial(number) for number in range(21)], np.int64)
    return from_numpy(table[np.where(known, numbers, 0)], pa.int64(), valid)


def _bind_isnan(name: str, arguments: Sequence[Expr]) -> Expr:
    return takes(NUMBER, returns=pa.bool_())(name, arguments)


def _isnan(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    value = column(values[0], rows)
    if pat.is_floating(value.type):
        return pc.is_nan(value)
    return from_numpy(np.zeros(rows, bool), pa.bool_(), valid_in_all(value))


def _iszero(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    value = column(values[0], rows)
    return pc.invert(converted(value, pa.bool_()))


def _bind_nanvl(name: str, arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 2:
        raise InvalidInput(f"{name} takes 2 arguments, found {len(arguments)}")
    if all(plain(each.type) == pa.float32() for each in arguments):
        return Call(name, tuple(cast_to(each, pa.float32()) for each in arguments), pa.float32())
    return takes(DOUBLE, DOUBLE, returns=pa.float64())(name, arguments)


def _nanvl(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    one, two = (column(value, rows) for value in values)
    # The second is looked at only where the first is not a number: elsewhere it may be null.
    return pc.if_else(pc.fill_null(pc.is_nan(one), False), two, one)


def _random(_: Call, _values: Sequence[Datum], rows: int) -> Datum:
    return pa.array(np.random.default_rng().random(rows))


def _sign(value: _Floats) -> _Floats:
    return np.where(np.isnan(value), value, np.where(value == 0, np.zeros_like(value), np.sign(value)))


_FLOAT: Bind = takes(FLOAT, returns=same_as(0))
_LOOPS: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "cot": lambda value: 1 / np.tan(value),
    "degrees": np.degrees,
    "exp": np.exp,
    "ln": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "radians": np.radians,
    "signum": _sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
_ALIASES = {"signum": ("sign",)}

FUNCTIONS = (
    Function("abs", _bind_abs, _abs),
    Function("ceil", takes(NUMBER, returns=_whole_type), _rounding(pc.ceil), ("ceiling",)),
    Function("floor", takes(NUMBER, returns=_whole_type), _rounding(pc.floor)),
    Function("round", _bind_round, _round),
    Function("trunc", _bind_round, _round),
    *(Function(name, _FLOAT, _loop(compute), _ALIASES.get(name, ()), cost=5) for name, compute in _LOOPS.items()),
    Function("atan2", _bind_atan2, _loop(np.arctan2), cost=5),
    Function("log", _bind_log, _log, cost=5),
    Function("power", _bind_power, _loop(np.power), ("pow",), cost=5),
    Function("gcd", _bind_gcd, _gcd, cost=5),
    Function("lcm", _bind_gcd, _gcd, cost=5),
    Function("factorial", takes(INTEGER, returns=pa.int64()), _factorial),
    Function("isnan", _bind_isnan, _isnan),
    Function("iszero", _bind_isnan, _iszero),
    Function("nanvl", _bind_nanvl, _nanvl, strict=False),
    Function("pi", takes(returns=pa.float64()), lambda _call, _values, _rows: pa.scalar(math.pi)),
    Function("random", takes(returns=pa.float64()), _random, ("rand",), constant=False),
    Function("mod", exactly(2, lambda _, arguments: calculated("%", *arguments)), None),
)
