"""Times made and shown: from text and counts, to text by a format, and the time that it is."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.casting import can_convert, converted
from lancelet.expr.functions.define import INTEGER, TEXT, TIME, Bind, Datum, Function, Run, cast_to, takes
from lancelet.expr.functions.patterns import for_each_pattern
from lancelet.expr.literals import shown
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import is_number, is_text, plain
from lancelet.expr.vectors import by_value, column, from_numpy, raw_values, valid_in_all

__all__ = ["FUNCTIONS"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
#: What Arrow's formatting knows; longer ones first.
_SPEC = re.compile(r"%(?:\.?[369]?f|:z|[A-Za-z%])")
_NATIVE = frozenset("aAbBcCdDeFgGhHIjmMnpRStTuUVwWxXyYz%r")
_PYTHON = {"%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y", "%F": "%Y-%m-%d", "%e": "%d", "%h": "%b", "%.f": ".%f"}


def _bind_made(kind: pa.DataType, count_unit: str | None) -> Bind:
    """Times from text, from counts of a unit, or from other times; text may have formats behind it."""

    def bind(name: str, arguments: Sequence[Expr]) -> Expr:
        if not arguments:
            raise InvalidInput(f"{name} takes 1 or more arguments, found 0")
        value, *formats = arguments
        given = plain(value.type)
        if is_text(given):
            made = [cast_to(value, given), *formats]
            if any(not is_text(each.type) for each in formats):
                raise InvalidInput(f"{name} takes formats as text behind what it reads")
            return Call(name, tuple(made), kind)
        if is_number(given) and count_unit is None:
            raise InvalidInput(f"{name} takes text or a time, found {value.type}")
        if not (pat.is_null(given) or is_number(given) or can_convert(given, kind)):
            raise InvalidInput(f"{name} takes text, a number or a time, found {value.type}")
        return Call(name, (cast_to(value, given),), kind)

    return bind


def _made(count_unit: str) -> Run:
    def run(call: Call, values: Sequence[Datum], rows: int) -> Datum:
        value, kind = column(values[0], rows), call.type
        if is_text(value.type) and len(values) > 1:
            return _by_formats(call, values, rows)
        if is_number(value.type):
            return _exact(_of_count(value, kind, count_unit), value, kind)
        return _exact(converted(value, kind), value, kind)

    return run


def _of_count(value: pa.Array, kind: pa.DataType, unit: str) -> pa.Array:
    if not pat.is_timestamp(kind) or unit == kind.unit:
        return converted(value, kind)
    factor = _PER_SECOND[kind.unit] // _PER_SECOND[unit]
    if pat.is_integer(value.type):
        return converted(converted(value, pa.int64()).cast(pa.timestamp(unit)), kind)
    if pat.is_decimal(value.type):
        scaled = pc.multiply(
            value.cast(pa.decimal256(38, value.type.scale)), pa.scalar(factor).cast(pa.decimal128(19, 0))
        )
        return converted(converted(scaled, pa.int64()), kind)
    with np.errstate(over="ignore"):
        scaled_floats = np.round(raw_values(converted(value, pa.float64())) * factor)
    # Not-a-number is the beginning, as DataFusion has it.
    whole = from_numpy(np.where(np.isnan(scaled_floats), 0, scaled_floats), pa.float64(), valid_in_all(value))
    return converted(whole, kind)


def _exact(made: pa.Array, given: pa.Array, kind: pa.DataType) -> pa.Array:
    if made.null_count > given.null_count:
        odd = given.filter(pc.and_(given.is_valid(), made.is_null()))[0]
        raise InvalidInput(f"{shown(odd)} of type {given.type} is no {kind}")
    return made


def _by_formats(call: Call, values: Sequence[Datum], rows: int) -> pa.Array:
    """Text read by the first of some formats that fits it."""
    given = [value.as_py() for value in values[1:] if isinstance(value, pa.Scalar)]
    if len(given) != len(values) - 1 or None in given:
        raise InvalidInput(f"{call.function} takes constant formats")
    formats = [re.sub(r"%\.[369]?f", ".%f", _pythonic(text)) for text in given]

    def read(text: str) -> int:
        for form in formats:
            try:
                moment = datetime.datetime.strptime(text, form)
            except ValueError:
                continue
            zoned = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
            since = zoned - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
            return (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        raise InvalidInput(f"{text!r} has none of the formats {', '.join(map(repr, given))}")

    micros = by_value(read, [values[0]], rows, pa.int64()).cast(pa.timestamp("us"))
    return _exact(converted(micros, call.type), micros, call.type)


def _pythonic(text: str) -> str:
    for spec, meaning in _PYTHON.items():
        text = text.replace(spec, meaning)
    return text


def _unix_time(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    if is_number(values[0].type):
        return converted(column(values[0], rows), pa.int64())
    stamped = _made("s")(Call(call.function, call.arguments, pa.timestamp("us")), values, rows)
    return from_numpy(raw_values(stamped) // 10**6, pa.int64(), valid_in_all(stamped))


def _bind_from_unix(name: str, arguments: Sequence[Expr]) -> Expr:
    if not 1 <= len(arguments) <= 2:
        raise InvalidInput(f"{name} takes 1 to 2 arguments, found {len(arguments)}")
    zone = None
    if len(arguments) == 2:
        zone = arguments[1].value.as_py() if isinstance(arguments[1], Literal) else None
        if not isinstance(zone, str):
            raise InvalidInput(f"{name} takes a constant time zone as argument 2")
    return takes(INTEGER, TEXT, least=1, returns=pa.timestamp("s", zone))(name, arguments)


def _from_unix(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    return column(values[0], rows).cast(pa.timestamp("s", "UTC" if call.type.tz else None)).cast(call.type)


def _bind_number(name: str, arguments: Sequence[Expr]) -> Expr:
    """Three whole numbers, also as text."""
    if len(arguments) != 3:
        raise InvalidInput(f"{name} takes 3 arguments, found {len(arguments)}")
    numbers = [cast_to(each, pa.int64()) if is_text(each.type) else each for each in arguments]
    kind = pa.date32() if name == "make_date" else pa.time32("s")
    return takes(INTEGER, INTEGER, INTEGER, returns=kind)(name, numbers)


def _make_date(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    arrays = [column(value, rows) for value in values]
    valid = valid_in_all(*arrays)
    years, months, days = map(raw_values, arrays)
    inside = (years >= -5000) & (years <= 9999) & (months >= 1) & (months <= 12)
    month = (np.where(inside, (years - 1970) * 12 + months - 1, 0)).astype("datetime64[M]")
    first = month.astype("datetime64[D]").astype(np.int64)
    length = (month + 1).astype("datetime64[D]").astype(np.int64) - first
    inside &= (days >= 1) & (days <= length)
    _refuse(call, arrays, inside, valid)
    return from_numpy(first + days - 1, call.type, valid)


def _make_time(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    arrays = [column(value, rows) for value in values]
    valid = valid_in_all(*arrays)
    hours, minutes, seconds = map(raw_values, arrays)
    inside = (hours >= 0) & (hours < 24) & (minutes >= 0) & (minutes < 60) & (seconds >= 0) & (seconds < 60)
    _refuse(call, arrays, inside, valid)
    return from_numpy((hours * 60 + minutes) * 60 + seconds, call.type, valid)


def _refuse(call: Call, arrays: Sequence[pa.Array], inside: np.ndarray, valid: np.ndarray | None) -> None:
    odd = np.flatnonzero(~inside if valid is None else ~inside & valid)
    if len(odd):
        found = ", ".join(str(array[int(odd[0])].as_py()) for array in arrays)
        raise InvalidInput(f"{call.function}({found}) is no {call.type}")


def _to_char(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    value = column(values[0], rows)
    kind = value.type
    if pat.is_duration(kind):
        return converted(value, pa.string())
    if pat.is_time(kind):
        value = converted(value, pa.time64("ns")).cast(pa.int64()).cast(pa.timestamp("ns"))
    elif pat.is_date(kind):
        value = converted(value, pa.timestamp("s"))
    return for_each_pattern(
        values[1],
        rows,
        pa.string(),
        lambda form, places: _formatted(value if places is None else value.take(places), form),
    )


def _formatted(value: pa.Array, form: str) -> pa.Array:
    """Each stretch that Arrow can format in one call; what it cannot by itself."""
    whole = converted(value, pa.timestamp("s", value.type.tz))
    pieces: list[pa.Array] = []
    plain_part, at = "", 0
    for spec in [*_SPEC.finditer(form), None]:
        end = len(form) if spec is None else spec.start()
        plain_part += form[at:end].replace("%", "%%")
        if spec is not None and spec[0][1:] in _NATIVE:
            plain_part += spec[0]
        elif plain_part:
            pieces.append(pc.strftime(whole, format=plain_part, locale="C"))
            plain_part = ""
        if spec is not None:
            at = spec.end()
            if spec[0][1:] not in _NATIVE:
                pieces.append(_special(spec[0], value, whole))
    if not pieces:
        return pc.if_else(value.is_valid(), pa.scalar(""), pa.scalar(None, pa.string()))
    return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, "")


def _special(spec: str, value: pa.Array, whole: pa.Array) -> pa.Array:
    if spec.endswith("f"):
        return _digits(spec, value)
    hours = pc.strftime(whole, format="%H", locale="C")
    shown_by: dict[str, Callable[[], pa.Array]] = {
        "%k": lambda: pc.replace_substring_regex(hours, "^0", " "),
        "%l": lambda: pc.replace_substring_regex(pc.strftime(whole, format="%I", locale="C"), "^0", " "),
        "%P": lambda: pc.ascii_lower(pc.strftime(whole, format="%p", locale="C")),
        "%q": lambda: pc.quarter(whole).cast(pa.string()),
        "%s": lambda: whole.cast(pa.int64()).cast(pa.string()),
        "%Z": lambda: _offset(whole),
        "%:z": lambda: _offset(whole),
    }
    if spec not in shown_by:
        raise InvalidInput(f"{spec!r} is no part of a format", hint="for example %Y-%m-%d %H:%M:%S%.3f")
    return shown_by[spec]()


def _offset(whole: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(pc.strftime(whole, format="%z", locale="C"), r"(\d\d)$", r":\1")


def _digits(spec: str, value: pa.Array) -> pa.Array:
    """Digits of the second behind the point: as many as asked for, or as many as there are."""
    unit = value.type.unit
    part = raw_values(value) % _PER_SECOND[unit] * (10**9 // _PER_SECOND[unit])
    texts = pc.utf8_lpad(from_numpy(part, pa.int64(), valid_in_all(value)).cast(pa.string()), width=9, padding="0")
    dot = "." if spec[1] == "." else ""
    count = spec.strip("%.f")
    if count:
        texts = pc.utf8_slice_codeunits(texts, 0, int(count))
    elif dot:
        # Three, six or nine digits, none where there is nothing to show.
        texts = pc.replace_substring_regex(texts, r"^(\d{6})000$", r"\1")
        texts = pc.replace_substring_regex(texts, r"^(\d{3})000$", r"\1")
        texts = pc.replace_substring_regex(texts, r"^000$", "")
        return pc.replace_substring_regex(texts, r"^(\d)", r".\1")
    return pc.binary_join_element_wise(dot, texts, "") if dot else texts


def _now(kind: pa.DataType) -> Run:
    def run(_call: Call, _values: Sequence[Datum], _rows: int) -> Datum:
        instant = pa.scalar(time.time_ns(), pa.int64()).cast(pa.timestamp("ns"))
        return converted(pa.repeat(instant, 1), kind)[0]

    return run


FUNCTIONS = (
    Function("to_timestamp", _bind_made(pa.timestamp("ns"), "s"), _made("s"), cost=5),
    Function("to_timestamp_seconds", _bind_made(pa.timestamp("s"), "s"), _made("s"), cost=5),
    Function("to_timestamp_millis", _bind_made(pa.timestamp("ms"), "ms"), _made("ms"), cost=5),
    Function("to_timestamp_micros", _bind_made(pa.timestamp("us"), "us"), _made("us"), cost=5),
    Function("to_timestamp_nanos", _bind_made(pa.timestamp("ns"), "ns"), _made("ns"), cost=5),
    Function("to_date", _bind_made(pa.date32(), "days"), _made("days"), cost=5),
    Function("to_time", _bind_made(pa.time64("ns"), None), _made("ns"), cost=5),
    Function("to_unixtime", _bind_made(pa.int64(), "s"), _unix_time, cost=5),
    Function("from_unixtime", _bind_from_unix, _from_unix, cost=2),
    Function("make_date", _bind_number, _make_date),
    Function("make_time", _bind_number, _make_time),
    Function("to_char", takes(TIME, TEXT, returns=pa.string()), _to_char, ("date_format",), cost=40),
    Function("now", takes(returns=pa.timestamp("ns")), _now(pa.timestamp("ns")), ("current_timestamp",)),
    Function("current_date", takes(returns=pa.date32()), _now(pa.date32()), ("today",)),
    Function("current_time", takes(returns=pa.time64("ns")), _now(pa.time64("ns"))),
)
