"""Arithmetic of dates, times, durations and intervals: months and days by the calendar, the rest by the clock."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import Datum, cast_to
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import common_type, plain
from lancelet.expr.vectors import column, from_numpy, raw_values, valid_in_all

__all__ = ["interval_from_text", "months_added", "moved", "time_arithmetic"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_SECONDS = 86_400
#: Months, days and nanoseconds of one of each unit.
_SECOND = 10**9
_UNITS: dict[str, tuple[int, int, int]] = {
    "millennium": (12_000, 0, 0),
    "century": (1_200, 0, 0),
    "decade": (120, 0, 0),
    "year": (12, 0, 0),
    "quarter": (3, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
    "hour": (0, 0, 3_600 * _SECOND),
    "minute": (0, 0, 60 * _SECOND),
    "second": (0, 0, _SECOND),
    "millisecond": (0, 0, 10**6),
    "microsecond": (0, 0, 10**3),
    "nanosecond": (0, 0, 1),
}
_SHORT = {
    "millennia": "millennium",
    "millenniums": "millennium",
    "centuries": "century",
    "y": "year",
    "yr": "year",
    "mon": "month",
    "w": "week",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "m": "minute",
    "min": "minute",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "us": "microsecond",
    "ns": "nanosecond",
}
_PART = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+))\s*([a-zA-Z]*)")
_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?")


def interval_from_text(text: str, unit: str | None = None) -> pa.Scalar:
    """The interval that a text spells; numbers without a unit count ``unit``, or seconds.

    >>> interval_from_text("1 year 2 days 03:00").as_py()
    MonthDayNano(months=12, days=2, nanoseconds=10800000000000)
    """
    total = [Fraction(0), Fraction(0), Fraction(0)]
    place, found = 0, False
    while place < len(text.rstrip()):
        clock, part = _CLOCK.match(text, place), _PART.match(text, place)
        if clock:
            sign, hours, minutes, seconds = clock.groups()
            spent = (int(hours) * 60 + int(minutes)) * 60 + Fraction(seconds or 0)
            total[2] += spent * _SECOND * (-1 if sign == "-" else 1)
        elif part:
            for at, amount in enumerate(_UNITS[_unit(part[2] or unit or "second", text)]):
                total[at] += Fraction(part[1]) * amount
        else:
            raise InvalidInput(f"{text!r} is no interval", hint="write for example '1 year 2 months 3 days 4 hours'")
        place, found = (clock or part).end(), True  # type: ignore[union-attr]
    if not found:
        raise InvalidInput(f"{text!r} is no interval", hint="write for example '3 days'")
    return _whole(total)


def _unit(word: str, text: str) -> str:
    name = word.lower()
    for candidate in (name, name.removesuffix("s")):
        if candidate in _UNITS:
            return candidate
        if candidate in _SHORT:
            return _SHORT[candidate]
    raise InvalidInput(f"{word!r} in {text!r} is no unit of time", hint=f"there are {', '.join(_UNITS)}")


def _whole(total: Sequence[Fraction]) -> pa.Scalar:
    """Parts of months become days of 30 to the month, parts of days nanoseconds."""
    months = int(total[0])
    days = total[1] + (total[0] - months) * 30
    nanoseconds = total[2] + (days - int(days)) * _DAY_SECONDS * _SECOND
    return pa.scalar((months, int(days), int(nanoseconds)), pa.month_day_nano_interval())


def time_arithmetic(name: str, left: Expr, right: Expr) -> Expr:
    """A sum or difference with a date, a time, a duration or an interval on at least one side.

    >>> from lancelet.expr.tree import Column
    >>> step = Literal(interval_from_text("1 day"))
    >>> time_arithmetic("+", Column(("d",), pa.date32()), step).type
    DataType(date32[day])
    """
    one, two = plain(left.type), plain(right.type)
    if name == "+" and _steps(one) and not _steps(two):
        left, right, one, two = right, left, two, one
    made = None
    if name in "+-":
        made = _stepped(name, left, right, one, two) or _difference(name, left, right, one, two)
    if made is None:
        raise InvalidInput(f"cannot calculate {left.type} {name} {right.type}")
    return made


def _steps(kind: pa.DataType) -> bool:
    return bool(pat.is_interval(kind) or pat.is_duration(kind) or pat.is_integer(kind))


def _stepped(name: str, left: Expr, right: Expr, one: pa.DataType, two: pa.DataType) -> Expr | None:
    points = pat.is_date(one) or pat.is_timestamp(one) or pat.is_time(one)
    if points and pat.is_interval(two):
        return Call(name, (cast_to(left, one), right), one)
    if pat.is_date(one) and pat.is_integer(two):
        return Call(name, (cast_to(left, one), cast_to(right, pa.int64())), one)
    if pat.is_timestamp(one) and pat.is_duration(two):
        step = cast_to(right, pa.duration(one.unit)) if isinstance(right, Literal) else right
        return Call(name, (cast_to(left, one), step), one)
    if pat.is_duration(one) and pat.is_interval(two) and isinstance(right, Literal):
        return Call(name, (cast_to(left, one), cast_to(right, one)), one)
    if pat.is_interval(one) and pat.is_interval(two) and isinstance(left, Literal) and isinstance(right, Literal):
        sign = 1 if name == "+" else -1
        pairs = zip(left.value.as_py(), right.value.as_py(), strict=True)
        return Literal(pa.scalar(tuple(a + sign * b for a, b in pairs), one))
    return None


def _difference(name: str, left: Expr, right: Expr, one: pa.DataType, two: pa.DataType) -> Expr | None:
    if pat.is_duration(one) and pat.is_duration(two):
        kind = common_type(one, two)
        return Call(name, (cast_to(left, kind), cast_to(right, kind)), kind)
    if name != "-":
        return None
    if pat.is_date(one) and pat.is_date(two):
        return Call("-", (cast_to(left, pa.date32()), cast_to(right, pa.date32())), pa.int64())
    kind = common_type(one, two)
    if kind is None or not pat.is_timestamp(kind):
        return None
    if (getattr(one, "tz", None) is None) != (getattr(two, "tz", None) is None):
        # What has no zone is read in the other's.
        sides = [_placed(side, kind) for side in (left, right)]
        return Call("-", (sides[0], sides[1]), pa.duration(kind.unit))
    return Call("-", (cast_to(left, kind), cast_to(right, kind)), pa.duration(kind.unit))


def _placed(side: Expr, kind: pa.DataType) -> Expr:
    if getattr(plain(side.type), "tz", None) is not None:
        return cast_to(side, kind)
    return Call("cast", (cast_to(side, pa.timestamp(kind.unit)),), kind)


def moved(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """What :func:`time_arithmetic` bound, computed."""
    left, right = values
    sign = 1 if call.function == "+" else -1
    if pat.is_interval(right.type):
        if not isinstance(right, pa.Scalar):
            raise InvalidInput("intervals that differ from row to row are not computed with")
        return _by_interval(column(left, rows), right, sign)
    if pat.is_date(left.type) and pat.is_integer(right.type):
        days = column(right, rows)
        return _by_days(column(left, rows), raw_values(days) * sign, days)
    if pat.is_date(left.type):
        return pc.subtract(left.cast(pa.int32()).cast(pa.int64()), right.cast(pa.int32()).cast(pa.int64()))
    if pat.is_timestamp(left.type) and pat.is_duration(right.type):
        right = right.cast(pa.duration(left.type.unit))
    made = pc.add_checked(left, right) if sign > 0 else pc.subtract_checked(left, right)
    return made.cast(call.type)


def _by_days(array: pa.Array, days: npt.NDArray[np.int64], steps: pa.Array) -> pa.Array:
    per_day = 1 if pat.is_date32(array.type) else _DAY_SECONDS * 1000
    return _shifted(array, days, per_day, valid_in_all(array, steps))


def _by_interval(array: pa.Array, interval: pa.Scalar, sign: int) -> pa.Array:
    if not interval.is_valid:
        return pa.nulls(len(array), array.type)
    months, days, nanoseconds = (sign * each for each in interval.as_py())
    kind = array.type
    if pat.is_time(kind):
        return _around_the_clock(array, nanoseconds)
    if pat.is_date(kind):
        # The hours of an interval count towards whole days.
        days += nanoseconds // (_DAY_SECONDS * _SECOND)
        moved_by_months = _by_months(array, months) if months else array
        return _by_days(moved_by_months, np.full(len(array), days, np.int64), array)
    if months or days:
        zone = kind.tz
        local = pc.local_timestamp(array) if zone else array
        local = _by_months(local, months) if months else local
        local = _shifted(local, np.full(len(array), days), _DAY_SECONDS * _PER_SECOND[kind.unit], valid_in_all(array))
        array = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest") if zone else local
    ticks = nanoseconds * _PER_SECOND[kind.unit] // _SECOND
    return _shifted(array, np.full(len(array), ticks), 1, valid_in_all(array)) if ticks else array


def _shifted(array: pa.Array, steps: npt.NDArray[np.int64], size: int, valid: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Values moved by so many steps; InvalidInput where that leaves the type."""
    values = raw_values(array)
    bounds = np.iinfo(values.dtype)
    wide = values.astype(np.int64)
    most = bounds.max // max(size, 1)
    outside = np.abs(steps) > most if bounds.bits == 64 else np.zeros(len(steps), bool)
    with np.errstate(over="ignore"):
        result = wide + steps * size
    outside |= (result < wide) != (steps < 0) if bounds.bits == 64 else (result < bounds.min) | (result > bounds.max)
    outside &= steps != 0
    if np.any(outside if valid is None else outside & valid):
        raise InvalidInput(f"a {array.type} is moved to where the type has no values")
    return from_numpy(result.astype(values.dtype), array.type, valid)


def _by_months(array: pa.Array, months: int) -> pa.Array:
    values = raw_values(array).astype(np.int64)
    kind = array.type
    per_day = 1 if pat.is_date32(kind) else _DAY_SECONDS * (1000 if pat.is_date64(kind) else _PER_SECOND[kind.unit])
    moved_values = months_added(values, np.full(len(values), months), per_day)
    return _shifted(array, (moved_values - values) // per_day, per_day, valid_in_all(array))


def months_added(values: npt.NDArray[np.int64], months: npt.NDArray[np.int64], per_day: int) -> npt.NDArray[np.int64]:
    """Counts of a time the same day of another month, or its last day where it has no such day.

    >>> months_added(np.array([30]), np.array([1]), 1).tolist()
    [58]
    """
    days = values // per_day
    dates = days.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    day = (dates - month.astype("datetime64[D]")).astype(np.int64)
    target = month + months
    length = ((target + 1).astype("datetime64[D]") - target.astype("datetime64[D]")).astype(np.int64)
    made = target.astype("datetime64[D]").astype(np.int64) + np.minimum(day, length - 1)
    return np.asarray(made * per_day + values % per_day)


def _around_the_clock(array: pa.Array, nanoseconds: int) -> pa.Array:
    per_second = _PER_SECOND[array.type.unit]
    step = nanoseconds * per_second // _SECOND
    values = raw_values(array)
    turned = (values.astype(np.int64) + step) % (_DAY_SECONDS * per_second)
    return from_numpy(turned.astype(values.dtype), array.type, valid_in_all(array))
