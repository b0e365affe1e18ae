"""Values that depend on conditions and nulls: case, coalesce, nullif, greatest, least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.functions.comparisons import compared
from lancelet.expr.functions.define import Datum, Function, cast_to
from lancelet.expr.functions.logic import condition
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import common_type, is_nested, plain
from lancelet.expr.vectors import column

__all__ = ["FUNCTIONS", "alike_values", "case"]


def alike_values(name: str, values: Sequence[Expr]) -> tuple[list[Expr], pa.DataType]:
    """Values as the one type that holds them all."""
    kind = plain(values[0].type)
    for value in values[1:]:
        wider = common_type(kind, value.type)
        if wider is None:
            raise InvalidInput(f"{name} joins {kind} with {value.type}", hint="cast one of them")
        kind = wider
    return [cast_to(value, kind) for value in values], kind


def case(pairs: Sequence[tuple[Expr, Expr]], default: Expr | None) -> Expr:
    """The value of the first pair whose condition is true, else the default, else null.

    >>> from lancelet.expr.tree import TRUE, literal
    >>> case([(TRUE, literal(1))], literal(2.5)).type
    DataType(double)
    """
    otherwise = default if default is not None else Literal(pa.scalar(None))
    made, kind = alike_values("case", [*(value for _, value in pairs), otherwise])
    arguments: list[Expr] = []
    for (test, _), value in zip(pairs, made[:-1], strict=True):
        arguments += [condition(test), value]
    return Call("case", (*arguments, made[-1]), kind)


def _bind_coalesce(name: str, arguments: Sequence[Expr]) -> Expr:
    if not arguments:
        raise InvalidInput(f"{name} takes 1 or more arguments, found 0")
    made, kind = alike_values(name, arguments)
    return Call("coalesce", tuple(made), kind) if len(made) > 1 else made[0]


def _exactly(count: int, bind: Callable[..., Expr]) -> Callable[[str, Sequence[Expr]], Expr]:
    def bound(name: str, arguments: Sequence[Expr]) -> Expr:
        if len(arguments) != count:
            raise InvalidInput(f"{name} takes {count} arguments, found {len(arguments)}")
        return bind(*arguments)

    return bound


def _nullif(value: Expr, other: Expr) -> Expr:
    """Null where both are equal, else the value, as the type in which they are compared."""
    kind = common_type(value.type, other.type)
    kept = value if kind is None else cast_to(value, kind)
    return case([(compared("=", value, other), Literal(pa.scalar(None, kept.type)))], kept)


def _nvl2(value: Expr, there: Expr, missing: Expr) -> Expr:
    return case([(Call("is_not_null", (value,), pa.bool_()), there)], missing)


def _bind_extreme(name: str, arguments: Sequence[Expr]) -> Expr:
    if not arguments:
        raise InvalidInput(f"{name} takes 1 or more arguments, found 0")
    made, kind = alike_values(name, arguments)
    if is_nested(kind):
        raise Unsupported(f"{name} of {kind}: nested values have no order")
    return Call(name, tuple(made), kind)


def _extreme(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Nulls are passed over; not-a-number is greater than every number."""
    least = call.function == "least"
    kind = call.type
    if pat.is_floating(kind) or not (pat.is_integer(kind) or pat.is_temporal(kind)):
        arrays = [column(value, rows) for value in values]
        return reduce(lambda one, two: _chosen(one, two, least), arrays)
    return (pc.min_element_wise if least else pc.max_element_wise)(*values)


def _chosen(one: pa.Array, two: pa.Array, least: bool) -> pa.Array:
    narrow = [each.cast(pa.float32()) if pat.is_float16(each.type) else each for each in (one, two)]
    first = pc.less_equal(*narrow)
    if pat.is_floating(one.type):
        first = pc.or_kleene(first, pc.is_nan(narrow[1]))
    if not least:
        first = pc.invert(first)
    picked = pc.if_else(first, one, two)
    return pc.coalesce(picked, one, two)


FUNCTIONS = (
    Function("case", lambda name, arguments: _bind_coalesce(name, arguments), None, strict=False),
    Function("coalesce", _bind_coalesce, None, strict=False),
    Function("ifnull", _exactly(2, lambda one, two: _bind_coalesce("ifnull", (one, two))), None, ("nvl",)),
    Function("nullif", _exactly(2, _nullif), None, strict=False),
    Function("nvl2", _exactly(3, _nvl2), None, strict=False),
    Function("if", _exactly(3, lambda test, yes, no: case([(test, yes)], no)), None, ("iff",), strict=False),
    Function("greatest", _bind_extreme, _extreme, strict=False),
    Function("least", _bind_extreme, _extreme, strict=False),
)
