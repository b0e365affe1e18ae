"""Constants: read from text, and fitted to the type of the column that they are compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.casting import converted
from lancelet.expr.tree import Literal
from lancelet.expr.types import integer_bounds, is_binary, is_list, is_number, is_text, plain

__all__ = ["Fitted", "bytes_of_hex", "fitted", "local_time", "number", "shown", "text_as"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Fitted:
    """The greatest value of a type that is not above a constant; None if all values of the type are above it."""

    value: pa.Scalar | None
    #: Whether the value is the constant itself.
    exact: bool


def number(text: str) -> Literal:
    """The constant that digits mean: a 64-bit integer where it fits, else a double.

    >>> [number(text).value for text in ("7", "18446744073709551615", "1e3")]
    [<pyarrow.Int64Scalar: 7>, <pyarrow.UInt64Scalar: 18446744073709551615>, <pyarrow.DoubleScalar: 1000.0>]
    """
    try:
        whole = int(text) if len(text) < 40 else None
    except ValueError:
        whole = None
    if whole is not None:
        for kind in (pa.int64(), pa.uint64()):
            low, high = integer_bounds(kind)
            if low <= whole <= high:
                return Literal(pa.scalar(whole, kind))
    try:
        return Literal(pa.scalar(float(text), pa.float64()))
    except ValueError:
        raise InvalidInput(f"{text!r} is no number") from None


def bytes_of_hex(digits: str) -> pa.Scalar:
    """The bytes that hexadecimal digits mean; a digit is added in front of an odd number of them.

    >>> bytes_of_hex("abc")
    <pyarrow.BinaryScalar: b'\\n\\xbc'>
    """
    try:
        return pa.scalar(bytes.fromhex("0" * (len(digits) % 2) + digits), pa.binary())
    except ValueError:
        raise InvalidInput(f"{digits!r} are no hexadecimal digits") from None


def text_as(text: str, kind: pa.DataType) -> pa.Scalar:
    """The value of a type that a text spells; InvalidInput if it spells none.

    >>> text_as("2020-02-29", pa.date32())
    <pyarrow.Date32Scalar: datetime.date(2020, 2, 29)>
    """
    made = converted(pa.array([text.strip()]), kind)[0]
    if not made.is_valid:
        raise InvalidInput(f"{text!r} is no {kind}")
    return made


def _unit_of(text: str) -> str:
    """Microseconds reach all years that can be written; nanoseconds only where there are as many digits."""
    digits = text.partition(".")[2]
    return "ns" if len(digits) - len(digits.lstrip("0123456789")) > 6 else "us"


def local_time(naive: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """A time without zone as the local time of the type's zone, if it has one."""
    zone = getattr(kind, "tz", None)
    if zone is None:
        return naive.cast(kind)
    return pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="latest").cast(kind)


def shown(value: pa.Scalar) -> str:
    """A constant as messages show it."""
    if value.is_valid and pat.is_temporal(value.type) and not pat.is_interval(value.type):
        # By Arrow: Python has no dates beyond the year 9999.
        text = str(converted(pa.repeat(value, 1), pa.string())[0].as_py())
    else:
        text = repr(value.as_py()) if value.is_valid else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def fitted(value: pa.Scalar, kind: pa.DataType) -> Fitted | None:
    """A constant as a value of a type, or the nearest one below; None if the two kinds do not go together.

    >>> fitted(pa.scalar(1.5), pa.int8())
    Fitted(value=<pyarrow.Int8Scalar: 1>, exact=False)
    >>> fitted(pa.scalar(300), pa.int8()).value, fitted(pa.scalar("x"), pa.int8())
    (<pyarrow.Int8Scalar: 127>, None)
    """
    kind = plain(kind)
    if value.type == kind:
        return Fitted(value, True)
    if not value.is_valid:
        return Fitted(pa.scalar(None, kind), True)
    if is_number(value.type) and is_number(kind):
        return _fitted_number(value, kind)
    if is_text(value.type):
        return _fitted_text(value, kind)
    if is_binary(value.type) and is_binary(kind):
        if pat.is_fixed_size_binary(kind) and len(value.as_py()) != kind.byte_width:
            return None
        return Fitted(pa.scalar(value.as_py(), kind), True)
    if pat.is_temporal(value.type) and pat.is_temporal(kind):
        return _fitted_time(value, kind)
    if is_list(value.type) and is_list(kind):
        return _fitted_list(value, kind)
    return None


def _fitted_text(value: pa.Scalar, kind: pa.DataType) -> Fitted | None:
    """Text beside text, or beside what it spells; None where it spells nothing of the kind."""
    if is_text(kind):
        return Fitted(value.cast(kind), True)
    text = value.as_py()
    if is_binary(kind):
        return fitted(pa.scalar(text.encode()), kind)
    if pat.is_temporal(kind):
        return _fitted_time(value, kind) if not pat.is_interval(kind) else None
    if is_number(kind):
        exact = pa.decimal256(76, 38) if not pat.is_floating(kind) else pa.float64()
        spelled = converted(pa.array([text]), exact)[0]
        return _fitted_number(spelled, kind) if spelled.is_valid else None
    spelled = converted(pa.array([text]), kind)[0] if pat.is_boolean(kind) else None
    return Fitted(spelled, True) if spelled is not None and spelled.is_valid else None


def _fitted_number(value: pa.Scalar, kind: pa.DataType) -> Fitted | None:
    given = value.as_py()
    if pat.is_floating(kind):
        made = pa.scalar(float(given), pa.float64()).cast(kind, safe=False)
        # A constant that the narrow type can only show as infinity is compared in a wide one.
        overflown = math.isinf(made.as_py()) and not math.isinf(float(given))
        return None if overflown else Fitted(made, True)
    low, high, scale = _range(kind)
    if isinstance(given, float):
        if math.isnan(given) or math.isinf(given):
            # Above everything, or below.
            return Fitted(None, False) if given < 0 else Fitted(_of_count(high, kind), False)
        # The fewest digits that mean this double are those that were written.
        given = Decimal(repr(given))
    exact = Fraction(given) * 10**scale
    return _counted(exact, low, high, kind)


def _range(kind: pa.DataType) -> tuple[int, int, int]:
    """The least and the greatest count of a type, and how many digits of it are behind the point."""
    if pat.is_decimal(kind):
        most = 10**kind.precision - 1
        return -most, most, kind.scale
    return (*integer_bounds(kind), 0)


def _counted(exact: Fraction, low: int, high: int, kind: pa.DataType) -> Fitted:
    below = math.floor(exact)
    if below < low:
        return Fitted(None, False)
    inside = min(below, high)
    return Fitted(_of_count(inside, kind), inside == exact)


def _of_count(count: int, kind: pa.DataType) -> pa.Scalar:
    if pat.is_decimal(kind):
        # Built digit by digit: a decimal context would round what has more than 28.
        digits = tuple(map(int, str(abs(count))))
        return pa.scalar(Decimal((int(count < 0), digits, -kind.scale)), kind)
    if pat.is_integer(kind):
        return pa.scalar(count, kind)
    return pa.scalar(count, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


def _fitted_time(value: pa.Scalar, kind: pa.DataType) -> Fitted | None:
    if is_text(value.type):
        text = value.as_py()
        return _fitted_time(text_as(text, _finest(kind, text)), kind)
    if value.type == kind:
        return Fitted(value, True)
    given = _seconds(value, kind)
    if given is None:
        return None
    exact = given * _per_second(kind)
    if pat.is_date64(kind):
        below = math.floor(exact / (_DAY * 1000)) * _DAY * 1000
        return Fitted(_of_count(below, kind), below == exact)
    return _counted(exact, *integer_bounds(kind), kind)


def _finest(kind: pa.DataType, text: str) -> pa.DataType:
    if pat.is_timestamp(kind) or pat.is_date(kind):
        return pa.timestamp(_unit_of(text), getattr(kind, "tz", None))
    return pa.time64("ns") if pat.is_time(kind) else kind


def _per_second(kind: pa.DataType) -> Fraction:
    """How often a type counts in a second."""
    if pat.is_date32(kind):
        return Fraction(1, _DAY)
    return Fraction(1000 if pat.is_date64(kind) else _PER_SECOND[kind.unit])


def _seconds(value: pa.Scalar, kind: pa.DataType) -> Fraction | None:
    """A time as seconds since the beginning of its kind of time, where it can be compared with a type."""
    given = value.type
    if pat.is_interval(given):
        months, days, nanoseconds = value.as_py()
        spans = pat.is_duration(kind) and months == 0
        return Fraction(days * _DAY) + Fraction(nanoseconds, 10**9) if spans else None
    points = pat.is_date(given) or pat.is_timestamp(given)
    if not (
        (points and (pat.is_date(kind) or pat.is_timestamp(kind)))
        or (pat.is_time(given) and pat.is_time(kind))
        or (pat.is_duration(given) and pat.is_duration(kind))
    ):
        return None
    zone, wanted = getattr(given, "tz", None), getattr(kind, "tz", None)
    if points and wanted is not None and zone is None:
        naive = value.cast(pa.timestamp("us")) if pat.is_date(given) else value
        value = local_time(naive, pa.timestamp(naive.type.unit, wanted))
    elif points and zone is not None and wanted is None:
        # What is stored without a zone is compared with the local time that the constant shows.
        value = pc.local_timestamp(value)
    count = value.cast(pa.int32() if value.type.bit_width == 32 else pa.int64()).as_py()
    return Fraction(count) / _per_second(value.type)


def _fitted_list(value: pa.Scalar, kind: pa.DataType) -> Fitted | None:
    items = []
    for item in value.values:
        found = fitted(item, kind.value_type)
        if found is None or not found.exact or found.value is None:
            return None
        items.append(found.value.as_py())
    if pat.is_fixed_size_list(kind) and len(items) != kind.list_size:
        return None
    return Fitted(pa.scalar(items, kind), True)
