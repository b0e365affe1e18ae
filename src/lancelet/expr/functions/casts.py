"""Casts as functions: to a named type, to that of another value, and what type a value has."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.arrow_names import arrow_name, arrow_type_named
from lancelet.expr.casting import can_convert, converted
from lancelet.expr.functions.define import Datum, Function, cast_to
from lancelet.expr.limits import exactly
from lancelet.expr.literals import shown
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import plain
from lancelet.expr.vectors import column

__all__ = ["FUNCTIONS", "cast"]


def cast(expr: Expr, kind: pa.DataType, *, attempt: bool = False) -> Expr:
    """An expression cast to a type; with ``attempt``, null where a value has none of that type.

    >>> from lancelet.expr.tree import Column
    >>> cast(Column(("s",), pa.string()), pa.int32(), attempt=True).function
    'try_cast'
    """
    if not can_convert(expr.type, kind):
        raise InvalidInput(f"{expr.type} cannot be cast to {kind}")
    return expr if expr.type == kind else Call("try_cast" if attempt else "cast", (expr,), kind)


def _cast(call: Call, values: Sequence[Datum], _: int) -> Datum:
    (value,) = values
    given = value if isinstance(value, pa.Array) else pa.repeat(value, 1) if value.is_valid else None
    if given is None:
        return pa.scalar(None, call.type)
    made = converted(given, call.type)
    if call.function == "cast" and made.null_count > given.null_count:
        odd = given.filter(pc.and_(given.is_valid(), made.is_null()))[0]
        raise InvalidInput(
            f"{shown(odd)} of type {given.type} is no {call.type}", hint="use try_cast to get null for such values"
        )
    return made if isinstance(value, pa.Array) else made[0]


def _bind_arrow_cast(name: str, arguments: Sequence[Expr]) -> Expr:
    value, kind = arguments
    if not isinstance(kind, Literal) or not isinstance(kind.value.as_py(), str):
        raise InvalidInput(f"{name} takes the name of an Arrow type as argument 2, found {kind.type}")
    wanted = arrow_type_named(kind.value.as_py())
    made = (
        cast_to(value, wanted) if isinstance(value, Literal) and _is_zoned(value.type) == _is_zoned(wanted) else value
    )
    return made if isinstance(made, Literal) and made.type == wanted else cast(value, wanted, attempt="try" in name)


def _is_zoned(kind: pa.DataType) -> bool:
    return getattr(kind, "tz", None) is not None


def _bind_cast_to_type(name: str, arguments: Sequence[Expr]) -> Expr:
    return cast(arguments[0], plain(arguments[1].type), attempt=name.startswith("try"))


def _bind_typeof(_: str, arguments: Sequence[Expr]) -> Expr:
    return Literal(pa.scalar(arrow_name(arguments[0].type)))


def _bind_local_time(name: str, arguments: Sequence[Expr]) -> Expr:
    """``to_local_time``: what the clock of the column's zone shows."""
    (value,) = arguments
    if not pat.is_timestamp(value.type):
        raise InvalidInput(f"{name} takes a timestamp, found {value.type}")
    return value if value.type.tz is None else Call("to_local_time", (value,), pa.timestamp(value.type.unit))


def _shown_time(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    return pc.local_timestamp(column(values[0], rows))


def _bind_unbound(name: str, arguments: Sequence[Expr]) -> Expr:
    raise InvalidInput(f"{name} with {len(arguments)} arguments is not written as a function")


def _bind_at_zone(_: str, arguments: Sequence[Expr]) -> Expr:
    value, zone = arguments
    if not isinstance(zone, Literal) or not isinstance(zone.value.as_py(), str):
        raise InvalidInput("a time zone is named by a constant")
    kind = plain(value.type)
    if not (pat.is_timestamp(kind) or pat.is_date(kind)):
        raise InvalidInput(f"a time is placed in a zone, found {value.type}")
    unit = kind.unit if pat.is_timestamp(kind) else "us"
    wanted = pa.timestamp(unit, zone.value.as_py())
    try:
        pc.assume_timezone(pa.array([0], pa.timestamp("s")), wanted.tz)
    except pa.ArrowException:
        raise InvalidInput(f"{wanted.tz!r} is no time zone") from None
    return cast(cast_to(value, kind), wanted)


FUNCTIONS = (
    Function("cast", _bind_unbound, _cast),
    Function("try_cast", _bind_unbound, _cast),
    Function("arrow_cast", exactly(2, _bind_arrow_cast), None),
    Function("try_arrow_cast", exactly(2, _bind_arrow_cast), None, ("arrow_try_cast",)),
    Function("cast_to_type", exactly(2, _bind_cast_to_type), None),
    Function("try_cast_to_type", exactly(2, _bind_cast_to_type), None),
    Function("arrow_typeof", exactly(1, _bind_typeof), None),
    Function("at_time_zone", exactly(2, _bind_at_zone), None),
    Function("to_local_time", exactly(1, _bind_local_time), _shown_time),
)
