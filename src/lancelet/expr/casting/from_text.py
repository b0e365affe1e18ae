"""Text read as conditions, numbers, dates and times: whole columns by Arrow, the odd ones by a pattern."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.expr.casting.numbers import as_number
from lancelet.expr.casting.times import as_time
from lancelet.expr.vectors import from_numpy, raw_values, valid_in_all

__all__ = ["parsed"]

_Int64s = npt.NDArray[np.int64]

_TRUE = ("true", "tru", "tr", "t", "yes", "ye", "y", "on", "1")
_FALSE = ("false", "fals", "fal", "fa", "f", "no", "n", "off", "of", "0")
_WHOLE = r"^[+-]?[0-9]+$"
_FLOAT = r"(?i)^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?$|^[+-]?(?:nan|inf|infinity)$"
_DECIMAL = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"
_POINT = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"(?:[T ](?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<part>[0-9]{1,9}))?)?"
    r"\s?(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
_COMPACT = r"^(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})$"
_CLOCK = (
    r"(?i)^(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<part>[0-9]{1,9}))?)?(?:\s?(?P<half>[ap]m))?$"
)
_DAY = 86_400


def parsed(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """What texts spell; null where they spell no value of the type.

    >>> parsed(pa.array(["12", "+5", "1e3", ""]), pa.int64()).to_pylist()
    [12, 5, None, None]
    """
    if pat.is_boolean(kind):
        lower = pc.utf8_lower(texts)
        true = pc.is_in(lower, value_set=pa.array(_TRUE, texts.type))
        known = pc.or_(true, pc.is_in(lower, value_set=pa.array(_FALSE, texts.type)))
        return pc.if_else(known, true, pa.scalar(None, pa.bool_()))
    if pat.is_integer(kind):
        return _integers(texts, kind)
    if pat.is_floating(kind):
        return as_number(_matching(texts, _FLOAT).cast(pa.float64()), kind)
    if pat.is_decimal(kind):
        return _decimals(texts, kind)
    if pat.is_date(kind) or pat.is_timestamp(kind):
        return _points(texts, kind)
    return _clocks(texts, kind) if pat.is_time(kind) else _spans(texts, kind)


def _matching(texts: pa.Array, pattern: str, *, trim: bool = False) -> pa.Array:
    """The texts that match, without a plus in front; null elsewhere."""
    if trim:
        texts = pc.utf8_trim_whitespace(texts)
    fits = pc.match_substring_regex(texts, pattern)
    texts = pc.utf8_ltrim(texts, characters="+")
    return texts if pc.all(fits).as_py() is not False else pc.if_else(fits, texts, pa.scalar(None, texts.type))


def _integers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    digits = _matching(texts, _WHOLE)
    try:
        return digits.cast(kind)
    except pa.ArrowInvalid:
        # More digits than an integer has: as decimals they are compared with its bounds.
        short = pc.less_equal(pc.utf8_length(digits), 40)
        return as_number(_as_decimal(pc.if_else(short, digits, pa.scalar(None, digits.type)), 76, 0), kind)


def _as_decimal(texts: pa.Array, precision: int, scale: int) -> pa.Array:
    return texts.cast(pa.decimal256(precision, scale))


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    digits = _matching(texts, _DECIMAL, trim=True)
    # Of what is behind the point, 38 digits are read: more are below every type's rounding.
    digits = pc.replace_substring_regex(digits, r"^([+-]?[0-9]*\.[0-9]{38})[0-9]+$", r"\1")
    short = pc.match_substring_regex(digits, r"^[+-]?0*[0-9]{0,38}(?:\.|$)")
    return as_number(_as_decimal(pc.if_else(short, digits, pa.scalar(None, digits.type)), 76, 38), kind)


def _parts(texts: pa.Array, pattern: str) -> tuple[dict[str, pa.Array], npt.NDArray[np.bool_]]:
    """The named groups of a pattern, and for which rows it matches."""
    found = pc.extract_regex(texts, pattern)
    fields = {field.name: pc.struct_field(found, field.name) for field in found.type}
    return fields, np.asarray(found.is_valid())


def _numbers(texts: pa.Array, *, width: int = 0) -> _Int64s:
    """Groups as numbers, 0 where they are missing; digits of a fraction filled up to ``width``."""
    if width:
        texts = pc.utf8_rpad(texts, width=width, padding="0")
    present = pc.if_else(pc.greater(pc.utf8_length(texts), 0), texts, pa.scalar("0", texts.type))
    return np.asarray(raw_values(pc.fill_null(present, "0").cast(pa.int64())))


def _points(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        # Most columns are written as Arrow reads them, and then all of their values are.
        if pat.is_date32(kind) or (pat.is_timestamp(kind) and kind.tz is None):
            return texts.cast(kind)
    except pa.ArrowInvalid:
        pass
    fields, fits = _parts(texts, _POINT)
    seconds, nanoseconds, zoned = _moments(fields)
    inside = fits & _exists(fields)
    if pat.is_date(kind):
        compact, compact_fits = _parts(texts, _COMPACT)
        compact_fits &= _exists(compact)
        seconds = np.where(compact_fits, _days(compact) * _DAY, seconds)
        inside |= compact_fits
    micros = seconds * 10**6 + nanoseconds // 10**3
    valid = valid_in_all(texts)
    inside = inside if valid is None else inside & valid
    if pat.is_timestamp(kind) and kind.unit == "ns":
        # Nanoseconds reach from 1677 to 2262.
        inside &= np.abs(seconds) < 9_223_372_036
        made = from_numpy(np.where(inside, seconds, 0) * 10**9 + nanoseconds, pa.timestamp("ns"), inside)
    else:
        made = from_numpy(micros, pa.timestamp("us"), inside)
    if not pat.is_timestamp(kind) or kind.tz is None:
        return as_time(made, kind)
    instant = as_time(made.cast(pa.timestamp(made.type.unit, "UTC")), kind)
    return pc.if_else(pa.array(zoned), instant, as_time(made, kind))


def _moments(fields: dict[str, pa.Array]) -> tuple[_Int64s, _Int64s, npt.NDArray[np.bool_]]:
    """Seconds since 1970 by the clock, or by UTC where an offset is written; nanoseconds; where one is written."""
    clock = _numbers(fields["hour"]) * 3600 + _numbers(fields["minute"]) * 60 + _numbers(fields["second"])
    zone = pc.fill_null(fields["zone"], "")
    zoned = np.asarray(pc.greater(pc.utf8_length(zone), 0))
    digits = pc.replace_substring_regex(zone, r"[^0-9]", "")
    hours = _numbers(pc.utf8_slice_codeunits(digits, 0, 2))
    minutes = _numbers(pc.utf8_slice_codeunits(digits, 2, 4))
    west = np.asarray(pc.starts_with(zone, "-"))
    offset = np.where(west, -1, 1) * (hours * 3600 + minutes * 60)
    return _days(fields) * _DAY + clock - offset, _numbers(fields["part"], width=9), zoned


def _days(fields: dict[str, pa.Array]) -> _Int64s:
    years, months, days = (_numbers(fields[name]) for name in ("year", "month", "day"))
    first = ((years - 1970) * 12 + months - 1).astype("datetime64[M]").astype("datetime64[D]")
    return np.asarray(first.astype(np.int64) + days - 1)


def _exists(fields: dict[str, pa.Array]) -> npt.NDArray[np.bool_]:
    """Whether there is such a day, and such a time of it."""
    years, months, days = (_numbers(fields[name]) for name in ("year", "month", "day"))
    month = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    length = ((month + 1).astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64)
    there = (months >= 1) & (months <= 12) & (days >= 1) & (days <= length)
    if "hour" in fields:
        there &= (_numbers(fields["hour"]) < 24) & (_numbers(fields["minute"]) < 60)
        there &= _numbers(fields["second"]) < 60
    return np.asarray(there, bool)


def _clocks(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    fields, fits = _parts(texts, _CLOCK)
    hours, minutes, seconds = (_numbers(fields[name]) for name in ("hour", "minute", "second"))
    half = pc.utf8_lower(pc.fill_null(fields["half"], ""))
    halved = np.asarray(pc.not_equal(half, ""))
    afternoon = np.asarray(pc.equal(half, "pm"))
    fits = fits & (minutes < 60) & (seconds < 60) & np.where(halved, (hours >= 1) & (hours <= 12), hours < 24)
    hours = np.where(halved, hours % 12 + 12 * afternoon, hours)
    nanoseconds = ((hours * 60 + minutes) * 60 + seconds) * 10**9 + _numbers(fields["part"], width=9)
    valid = valid_in_all(texts)
    made = from_numpy(nanoseconds, pa.time64("ns"), fits if valid is None else fits & valid)
    return as_time(made, kind)


def _spans(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Durations as counts of their unit."""
    return _integers(texts, pa.int64()).cast(kind)
