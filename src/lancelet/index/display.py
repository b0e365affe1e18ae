"""Values as text, in the words of the reference's statistics."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

__all__ = ["as_text"]

_DAY = 86_400_000


def as_text(value: pa.Scalar | None) -> str:
    """A value as index statistics show it: dates as calendars have them, other times as the numbers stored.

    >>> as_text(pa.scalar(1.0)), as_text(pa.scalar(b"\\xff")), as_text(pa.scalar(None, pa.int8())), as_text(None)
    ('1', 'FF', 'NULL', 'N/A')
    """
    if value is None:
        return "N/A"
    if not value.is_valid:
        return "NULL"
    kind = value.type
    if pat.is_boolean(kind):
        return str(value.as_py()).lower()
    if pat.is_floating(kind):
        return _float_text(value.as_py(), kind)
    if pat.is_decimal(kind):
        return f"Some({int(value.as_py().scaleb(kind.scale))}),{kind.precision},{kind.scale}"
    if pat.is_date(kind):
        return _date_text(value.value if pat.is_date32(kind) else value.value // _DAY)
    if pat.is_temporal(kind):
        return str(value.value)
    found = value.as_py()
    return found.hex().upper() if isinstance(found, bytes) else str(found)


def _float_text(value: float, kind: pa.DataType) -> str:
    """The fewest digits that tell the number apart, never with an exponent; half precision as single."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    exact = np.float64(value) if kind.bit_width == 64 else np.float32(value)
    return format(Decimal(np.format_float_scientific(exact, trim="-")), "f")


def _date_text(days: int) -> str:
    """A day of the calendar; years have four digits, or a sign before more of them."""
    year, month, day = str(np.datetime64(days, "D")).rsplit("-", 2)
    number = int(year)
    if 0 <= number <= 9999:
        return f"{number:04d}-{month}-{day}"
    return f"{'-' if number < 0 else '+'}{abs(number):04d}-{month}-{day}"
