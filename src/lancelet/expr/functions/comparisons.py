"""Comparisons: constants take the type of what they are compared with; not-a-number equals itself and is above all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.bits import is_false, is_true
from lancelet.expr.casting import converted
from lancelet.expr.functions.define import Datum, Function, cast_to
from lancelet.expr.functions.equality import alike
from lancelet.expr.limits import exactly
from lancelet.expr.literals import Fitted, fitted, local_time, shown
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import common_type, integer_bounds, is_binary, is_nested, is_text, plain
from lancelet.expr.vectors import column

__all__ = ["FUNCTIONS", "MIRRORED", "alike_types", "compared", "one_of"]

MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: What a comparison with a constant becomes that lies between a value of the type and the next one.
_BETWEEN = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
_NULL = Literal(pa.scalar(None, pa.bool_()))


def compared(name: str, left: Expr, right: Expr) -> Expr:
    """A comparison with the constant on the right and of the type that is on the left, where that can be.

    >>> from lancelet.expr.tree import Column, literal
    >>> made = compared("<", literal(1.5), Column(("x",), pa.int8()))
    >>> made.function, made.arguments[1].value
    ('>', <pyarrow.Int8Scalar: 1>)
    """
    if isinstance(left, Literal) and not isinstance(right, Literal):
        name, left, right = MIRRORED[name], right, left
    if any(pat.is_null(side.type) for side in (left, right)):
        return _NULL
    if isinstance(right, Literal) and not right.value.is_valid and common_type(left.type, right.type) is not None:
        return _NULL
    if isinstance(right, Literal) and not isinstance(left, Literal):
        found = fitted(right.value, left.type)
        if found is not None and not right.value.is_valid:
            return _NULL
        if found is not None:
            return _with_constant(name, left, found)
    left, right = alike_types(left, right)
    if is_nested(left.type) and name not in ("=", "!="):
        raise Unsupported(f"{left.type} is compared with {name}: nested values are only equal or not")
    return Call(name, (left, right), pa.bool_())


def _with_constant(name: str, left: Expr, found: Fitted) -> Expr:
    left = cast_to(left, plain(left.type))
    if found.exact and found.value is not None:
        if is_nested(left.type) and name not in ("=", "!="):
            raise Unsupported(f"{left.type} is compared with {name}: nested values are only equal or not")
        return Call(name, (left, Literal(found.value)), pa.bool_())
    if name in ("=", "!=") or found.value is None:
        # No value of the type is equal: true or false for all but null, as a comparison with the least shows.
        least = Literal(_least(left.type))
        return Call(">=" if name in ("!=", ">", ">=") else "<", (left, least), pa.bool_())
    return Call(_BETWEEN[name], (left, Literal(found.value)), pa.bool_())


def _least(kind: pa.DataType) -> pa.Scalar:
    if pat.is_decimal(kind):
        found = fitted(pa.scalar(float("inf")), kind)
        greatest = None if found is None or found.value is None else found.value
        return pc.negate(greatest)
    if pat.is_integer(kind):
        return pa.scalar(integer_bounds(kind)[0], kind)
    low = integer_bounds(kind)[0] if not pat.is_time(kind) else 0
    if pat.is_date64(kind):
        low += -low % 86_400_000
    return pa.scalar(low, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


def alike_types(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both sides as the type in which they are compared; InvalidInput if there is none."""
    kind = common_type(left.type, right.type)
    if kind is None and all(is_text(side.type) or is_binary(side.type) for side in (left, right)):
        kind = pa.large_binary()
    if kind is None:
        sides = f"{_described(left)} with {_described(right)}"
        raise InvalidInput(f"cannot compare {sides}", hint="cast one of them")
    if pat.is_floating(kind) and kind != pa.float64() and not _fits_float(left.type, right.type, kind):
        kind = pa.float64()
    return _as_time(left, kind), _as_time(right, kind)


def _described(side: Expr) -> str:
    return f"{side.type} {shown(side.value)}" if isinstance(side, Literal) else str(side.type)


def _fits_float(left: pa.DataType, right: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a narrow float shows all values of both types."""
    bits = {16: 8, 32: 16}[kind.bit_width]
    sides = (plain(left), plain(right))
    return all(pat.is_floating(side) or (pat.is_integer(side) and side.bit_width <= bits) for side in sides)


def _as_time(side: Expr, kind: pa.DataType) -> Expr:
    given = plain(side.type)
    if pat.is_timestamp(kind) and kind.tz is not None and getattr(given, "tz", None) is None:
        if isinstance(side, Literal) and side.value.is_valid:
            naive = converted(pa.repeat(side.value, 1), pa.timestamp(kind.unit))[0]
            if not naive.is_valid:
                raise InvalidInput(f"{shown(side.value)} is no {kind}")
            return Literal(local_time(naive, kind))
        return Call("cast", (cast_to(side, pa.timestamp(kind.unit)),), kind)
    return cast_to(side, kind)


def one_of(value: Expr, items: Sequence[Expr]) -> Expr:
    """Whether a value is one of some others: constants become one list of the value's type.

    >>> from lancelet.expr.tree import Column, literal
    >>> one_of(Column(("x",), pa.int8()), [literal(1), literal(2.5)]).arguments[1].value
    <pyarrow.ListScalar: [1]>
    """
    constants: list[pa.Scalar] = []
    others: list[Expr] = []
    for item in items:
        if isinstance(item, Literal) and not isinstance(value, Literal):
            found = _member(value, item)
            if found is not None:
                constants.extend(found)
                continue
        others.append(compared("=", value, item))
    if constants or not others:
        kind = plain(value.type)
        values = pa.array([each.as_py() for each in constants], kind) if not _raw(kind) else _joined(constants, kind)
        found_in = Call("in", (cast_to(value, kind), Literal(_as_list(values))), pa.bool_())
        others.insert(0, found_in)
    return others[0] if len(others) == 1 else Call("or", tuple(others), pa.bool_())


def _raw(kind: pa.DataType) -> bool:
    """Whether Python's values would lose something of Arrow's."""
    return bool(pat.is_temporal(kind))


def _joined(constants: Sequence[pa.Scalar], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.repeat(each, 1) for each in constants]) if constants else pa.array([], kind)


def _as_list(values: pa.Array) -> pa.Scalar:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)[0]


def _member(value: Expr, item: Literal) -> list[pa.Scalar] | None:
    """What a constant adds to the list: itself, or nothing if no value of the type equals it."""
    if is_nested(value.type):
        return None
    found = fitted(item.value, value.type)
    if found is None:
        return None
    return [found.value] if found.exact and found.value is not None else []


def _narrow(value: Datum) -> Datum:
    # Arrow compares no 16-bit floats.
    return value.cast(pa.float32()) if pat.is_float16(value.type) else value


def _is_nan(value: Datum) -> bool:
    return isinstance(value, pa.Scalar) and value.is_valid and math.isnan(value.as_py())


def _floats(name: str, left: Datum, right: Datum) -> Datum:
    """IEEE's comparison turned into a total order in which not-a-number is one value, above all others."""
    left, right = _narrow(left), _narrow(right)
    if isinstance(left, pa.Scalar):
        left, right, name = right, left, MIRRORED[name]
    if isinstance(right, pa.Scalar) and isinstance(left, pa.Array):
        if _is_nan(right):
            nan = pc.is_nan(left)
            always = pc.or_kleene(nan, pc.invert(nan))
            known = {"=": nan, ">=": nan, "!=": pc.invert(nan), "<": pc.invert(nan), "<=": always}
            return known[name] if name in known else pc.invert(always)
        if name in (">", ">="):
            return pc.invert(_IEEE["<=" if name == ">" else "<"](left, right))
        return _IEEE[name](left, right)
    if name in ("!=", ">=", "<="):
        opposite = {"!=": "=", ">=": "<", "<=": ">"}[name]
        return pc.invert(_floats(opposite, left, right))
    if name == ">":
        left, right = right, left
    one, two = pc.is_nan(left), pc.is_nan(right)
    if name == "=":
        return pc.or_(pc.equal(left, right), pc.and_(one, two))
    return pc.or_(pc.less(left, right), pc.and_(pc.invert(one), two))


_IEEE: dict[str, Callable[..., Datum]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _compare(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    left, right = values
    kind = left.type
    if pat.is_floating(kind):
        return _floats(call.function, left, right)
    if is_nested(kind):
        same = alike(column(left, rows), column(right, rows), nulls=False)
        return same if call.function == "=" else pc.invert(same)
    return _IEEE[call.function](left, right)


def _distinct(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    left, right = values
    if pat.is_null(left.type):
        return pa.scalar(call.function == "is_not_distinct")
    equal = _compare(Call("=", call.arguments, pa.bool_()), values, rows)
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    same = pc.or_(pc.fill_null(equal, False), both)
    return same if call.function == "is_not_distinct" else pc.invert(same)


def _bind_distinct(name: str, arguments: Sequence[Expr]) -> Expr:
    left, right = arguments
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right = right, left
    if isinstance(right, Literal) and not right.value.is_valid:
        return Call("is_not_null" if name == "is_distinct" else "is_null", (left,), pa.bool_())
    if isinstance(right, Literal):
        equal = compared("=", left, right)
        truth = Call("is_true", (equal,), pa.bool_())
        return truth if name == "is_not_distinct" else Call("is_not_true", (equal,), pa.bool_())
    return Call(name, alike_types(left, right), pa.bool_())


def _in(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    value, wanted = column(values[0], rows), values[1].values
    known = wanted.drop_null()
    if pat.is_floating(value.type):
        value, known = _narrow(value), _narrow(known)
        known = _both_zeros(known)
    found = pc.is_in(value, value_set=known)
    if pat.is_floating(value.type) and pc.any(pc.is_nan(known)).as_py():
        # NaNs of both signs are one, which sets do not know: infinity less itself has another sign than a literal.
        found = pc.or_(found, pc.fill_null(pc.is_nan(value), False))
    unknown = pc.is_null(value) if value.null_count else None
    if wanted.null_count:
        unknown = pc.invert(found)
    return found if unknown is None else pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def _both_zeros(known: pa.Array) -> pa.Array:
    values = known.to_numpy(zero_copy_only=False)
    return pa.concat_arrays([known, pa.array([0.0, -0.0], known.type)]) if np.any(values == 0) else known


def _bind_truth(name: str, arguments: Sequence[Expr]) -> Expr:
    (value,) = arguments
    if pat.is_null(value.type):
        value = Literal(pa.scalar(None, pa.bool_()))
    if not pat.is_boolean(plain(value.type)):
        raise InvalidInput(f"{name.replace('_', ' ')} asks for a condition, found {value.type}")
    return Call(name, (value,), pa.bool_())


def _truth(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    condition = column(values[0], rows)
    found = is_true(condition) if call.function.endswith("true") else is_false(condition)
    return pc.invert(found) if call.function.startswith("is_not") else found


def _bind_in(name: str, arguments: Sequence[Expr]) -> Expr:
    if not arguments:
        raise InvalidInput(f"{name} takes a value and others, found nothing")
    return one_of(arguments[0], arguments[1:])


def _bind_null(name: str, arguments: Sequence[Expr]) -> Expr:
    return Call(name, tuple(arguments), pa.bool_())


def _bound_comparison(name: str, arguments: Sequence[Expr]) -> Expr:
    return compared(name, *arguments)


FUNCTIONS = (
    *(Function(name, exactly(2, _bound_comparison), _compare) for name in MIRRORED),
    Function("is_distinct", exactly(2, _bind_distinct), _distinct, strict=False),
    Function("is_not_distinct", exactly(2, _bind_distinct), _distinct, strict=False),
    Function("in", _bind_in, _in, cost=3),
    *(
        Function(name, exactly(1, _bind_truth), _truth, strict=False)
        for name in ("is_true", "is_false", "is_not_true", "is_not_false")
    ),
    Function("is_null", exactly(1, _bind_null), lambda _, values, __: pc.is_null(values[0]), strict=False),
    Function(
        "is_not_null", exactly(1, _bind_null), lambda _, values, __: pc.is_valid(values[0]), ("is_valid",), strict=False
    ),
)
