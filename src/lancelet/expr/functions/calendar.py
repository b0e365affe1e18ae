"""Parts of dates and times, and times cut off at a unit or put into bins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.casting import converted
from lancelet.expr.functions.define import Datum, Function, cast_to
from lancelet.expr.functions.intervals import months_added
from lancelet.expr.literals import shown
from lancelet.expr.names import nearest
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import is_text, plain
from lancelet.expr.vectors import column, from_numpy, raw_values, valid_in_all

__all__ = ["FUNCTIONS"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
_PARTS = {
    "year": ("y", "yr"),
    "quarter": ("qtr",),
    "month": ("mon",),
    "week": ("w",),
    "day": ("d",),
    "hour": ("h", "hr"),
    "minute": ("min",),
    "second": ("s", "sec"),
    "millisecond": ("ms", "msec", "millis"),
    "microsecond": ("us", "usec", "micros"),
    "nanosecond": ("ns", "nsec", "nanos"),
    "dow": ("dayofweek",),
    "isodow": (),
    "doy": ("dayofyear",),
    "isoyear": (),
    "epoch": (),
}
_NAMES = {short: name for name, shorts in _PARTS.items() for short in (name, f"{name}s", *shorts)}
_CLOCK = ("hour", "minute", "second", "millisecond", "microsecond", "nanosecond")
_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")


def _word(name: str, argument: Expr, known: Sequence[str]) -> str:
    """The constant that names a part or a unit."""
    value = argument.value.as_py() if isinstance(argument, Literal) else None
    if not isinstance(value, str):
        raise InvalidInput(f"{name} takes a constant text as argument 1, found {argument.type}")
    if value.lower() not in known:
        raise InvalidInput(f"{name} knows no {value!r}", hint=nearest(value, known))
    return value.lower()


def _bind_part(name: str, arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 2:
        raise InvalidInput(f"{name} takes 2 arguments, found {len(arguments)}")
    part = _NAMES[_word(name, arguments[0], list(_NAMES))]
    value = _time(name, arguments[1])
    kind = plain(value.type)
    if pat.is_time(kind) and part not in (*_CLOCK, "epoch"):
        raise InvalidInput(f"a time of the day has no {part}")
    returns = {"epoch": pa.float64(), "nanosecond": pa.int64()}.get(part, pa.int32())
    return Call(name, (Literal(pa.scalar(part)), value), returns)


def _time(name: str, value: Expr) -> Expr:
    """A date or time; text is read as one."""
    kind = plain(value.type)
    if pat.is_null(kind) or is_text(kind):
        return cast_to(value, pa.timestamp("us")) if pat.is_null(kind) else _read(value)
    if not pat.is_temporal(kind) or (pat.is_interval(kind) and not isinstance(value, Literal)):
        raise InvalidInput(f"{name} takes a date or time as argument 2, found {value.type}")
    return cast_to(value, kind)


def _read(value: Expr) -> Expr:
    return Call("cast", (value,), pa.timestamp("us"))


def _part(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    part = values[0].as_py()
    value = column(values[1], rows)
    kind = value.type
    if pat.is_interval(kind):
        return _part_of_interval(part, values[1], call.type)
    if pat.is_duration(kind) or pat.is_time(kind):
        return _part_of_span(part, value, call.type)
    if part == "epoch":
        return _epoch(value)
    if part in _CLOCK[2:]:
        return _fraction(part, value, call.type)
    if pat.is_date(kind):
        value = converted(value, pa.timestamp("s"))
    if part == "dow":
        return pc.day_of_week(value, count_from_zero=True, week_start=7).cast(call.type)
    if part == "isodow":
        return pc.day_of_week(value, count_from_zero=False, week_start=1).cast(call.type)
    return _KERNELS[part](value).cast(call.type)


_KERNELS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "doy": pc.day_of_year,
    "isoyear": pc.iso_year,
}


def _epoch(value: pa.Array) -> pa.Array:
    """Seconds since 1970 in UTC."""
    kind = value.type
    if pat.is_date(kind):
        days = raw_values(value) if pat.is_date32(kind) else raw_values(value) / (_DAY * 1000)
        return from_numpy(days * float(_DAY), pa.float64(), valid_in_all(value))
    return from_numpy(raw_values(value) / _PER_SECOND[kind.unit], pa.float64(), valid_in_all(value))


def _fraction(part: str, value: pa.Array, kind: pa.DataType) -> pa.Array:
    """The seconds of the minute, counted in a unit."""
    if pat.is_date(value.type):
        return from_numpy(np.zeros(len(value), np.int64), kind, valid_in_all(value))
    per_second = _PER_SECOND[value.type.unit]
    ticks = raw_values(value) % (60 * per_second)
    return _counted(ticks, part, per_second, kind, valid_in_all(value))


def _counted(ticks: np.ndarray, part: str, per_second: int, kind: pa.DataType, valid: np.ndarray | None) -> pa.Array:
    wanted = {"second": 1, "millisecond": 10**3, "microsecond": 10**6, "nanosecond": 10**9}[part]
    counted = ticks.astype(np.int64)
    counted = counted * (wanted // per_second) if wanted >= per_second else counted // (per_second // wanted)
    return from_numpy(counted, kind, valid)


def _part_of_span(part: str, value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Of a time of the day the parts of its clock, of a duration how many whole units it has."""
    per_second = _PER_SECOND[value.type.unit]
    ticks, valid = raw_values(value).astype(np.int64), valid_in_all(value)
    if part == "epoch":
        return from_numpy(ticks / per_second, pa.float64(), valid)
    whole = pat.is_duration(value.type)
    if part in _CLOCK[2:]:
        return _counted(ticks if whole else ticks % (60 * per_second), part, per_second, kind, valid)
    sizes = {"minute": 60, "hour": 3600, "day": _DAY, "week": 7 * _DAY}
    if part not in sizes:
        raise InvalidInput(f"a duration has no {part}")
    counted = np.trunc(ticks / (sizes[part] * per_second)).astype(np.int64)
    return from_numpy(counted % 60 if part == "minute" and not whole else counted, kind, valid)


def _part_of_interval(part: str, value: Datum, kind: pa.DataType) -> pa.Scalar:
    months, days, nanoseconds = value.as_py()
    parts = {"year": months // 12, "month": months % 12, "day": days, "week": days // 7}
    seconds = nanoseconds / 10**9
    parts |= {"hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60}
    if part not in parts:
        raise InvalidInput(f"an interval has no {part}")
    return pa.scalar(int(parts[part]), kind)


def _bind_trunc(name: str, arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 2:
        raise InvalidInput(f"{name} takes 2 arguments, found {len(arguments)}")
    unit = _word(name, arguments[0], _UNITS)
    value = _time(name, arguments[1])
    kind = plain(value.type)
    if pat.is_date(kind):
        kind = pa.timestamp("ns")
    if pat.is_duration(kind) or pat.is_interval(kind) or (pat.is_time(kind) and unit not in _UNITS[:5]):
        raise InvalidInput(f"{name} cuts no {kind} off at a {unit}")
    return Call(name, (Literal(pa.scalar(unit)), cast_to(value, kind)), kind)


def _trunc(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    unit, value = values[0].as_py(), column(values[1], rows)
    if not pat.is_time(value.type):
        return pc.floor_temporal(value, unit=unit, week_starts_monday=True).cast(call.type)
    seconds = {"hour": 3600, "minute": 60, "second": 1}
    per_second = _PER_SECOND[value.type.unit]
    if unit in seconds:
        size = seconds[unit] * per_second
    else:
        size = max(per_second // (10**3 if unit == "millisecond" else 10**6), 1)
    ticks = raw_values(value)
    return from_numpy(ticks - ticks % size, call.type, valid_in_all(value))


def _bind_bin(name: str, arguments: Sequence[Expr]) -> Expr:
    if not 2 <= len(arguments) <= 3:
        raise InvalidInput(f"{name} takes 2 to 3 arguments, found {len(arguments)}")
    step, value, *more = arguments
    if not isinstance(step, Literal) or not (pat.is_interval(step.type) or pat.is_duration(step.type)):
        raise InvalidInput(f"{name} takes an interval as argument 1, found {step.type}")
    value = _time(name, value)
    kind = plain(value.type)
    if pat.is_date(kind):
        kind = pa.timestamp("ns")
    if not (pat.is_timestamp(kind) or pat.is_time(kind)):
        raise InvalidInput(f"{name} takes a date or time as argument 2, found {value.type}")
    origin = more[0] if more else Literal(pa.scalar(0, _ticks_type(kind)).cast(kind))
    if not isinstance(origin, Literal):
        raise InvalidInput(f"{name} takes a constant as argument 3, found {origin.type}")
    return Call(name, (step, cast_to(value, kind), cast_to(origin, kind)), kind)


def _ticks_type(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _bin(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The last of the times that follow the origin in equal steps, or go before it, that is not after a time."""
    step, value, origin = values[0], column(values[1], rows), values[2]
    kind = call.type
    if not step.is_valid or not origin.is_valid:
        return pa.nulls(rows, kind)
    per_second = _PER_SECOND[kind.unit]
    months, size = 0, 0
    if pat.is_interval(step.type):
        months, days, nanoseconds = step.as_py()
        size = days * _DAY * per_second + nanoseconds * per_second // 10**9
    else:
        size = step.cast(pa.int64()).as_py() * per_second // _PER_SECOND[step.type.unit]
    ticks = raw_values(value).astype(np.int64)
    begin = origin.cast(_ticks_type(kind)).as_py()
    if months and (size or pat.is_time(kind)):
        raise InvalidInput("bins are months or shorter units, not both")
    if months < 0 or size < 0 or not (months or size):
        raise InvalidInput(f"bins of {shown(step)} have no length")
    made = _month_bins(ticks, begin, months, per_second) if months else (ticks - begin) // size * size + begin
    return from_numpy(made, kind, valid_in_all(value))


def _month_bins(ticks: np.ndarray, begin: int, months: int, per_second: int) -> np.ndarray:
    day = _DAY * per_second
    of_month = (ticks // day).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    first = int(np.datetime64(begin // day, "D").astype("datetime64[M]").astype(np.int64))
    count = (of_month - first) // months * months
    made = months_added(np.full(len(ticks), begin), count, day)
    late = made > ticks
    return np.where(late, months_added(np.full(len(ticks), begin), count - months, day), made)


FUNCTIONS = (
    Function("date_part", _bind_part, _part, ("datepart",), cost=5),
    Function("date_trunc", _bind_trunc, _trunc, ("datetrunc",), cost=5),
    Function("date_bin", _bind_bin, _bin, cost=5),
)
