"""Arrow types as text, as ``arrow_typeof`` names them and ``arrow_cast`` reads them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.names import nearest

__all__ = ["arrow_name", "arrow_type_named"]

_PLAIN: dict[str, pa.DataType] = {
    "Null": pa.null(),
    "Boolean": pa.bool_(),
    **{f"Int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
    "Float16": pa.float16(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Utf8": pa.string(),
    "LargeUtf8": pa.large_string(),
    "Utf8View": pa.string_view(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "BinaryView": pa.binary_view(),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
    "Interval(MonthDayNano)": pa.month_day_nano_interval(),
}
_NAMES = {kind: name for name, kind in _PLAIN.items()}
_SHORT_UNITS = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns"}
_UNITS = {
    **{name: unit for unit, name in _SHORT_UNITS.items()},
    "us": "us",
    "Second": "s",
    "Millisecond": "ms",
    "Microsecond": "us",
    "Nanosecond": "ns",
}
_TOKEN = re.compile(r'\s*([A-Za-z_µ][A-Za-z0-9_µ-]*|\d+|-\d+|"(?:[^"\\]|\\.)*"|[(),:])')
_DEEPEST = 40


def arrow_name(kind: pa.DataType) -> str:
    """The name of a type.

    >>> arrow_name(pa.list_(pa.timestamp("us", "UTC")))
    'List(Timestamp(µs, "UTC"))'
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if isinstance(kind, pa.BaseExtensionType):
        return arrow_name(kind.storage_type)
    if pat.is_timestamp(kind):
        zone = f', "{kind.tz}"' if kind.tz else ""
        return f"Timestamp({_SHORT_UNITS[kind.unit]}{zone})"
    if pat.is_time(kind) or pat.is_duration(kind):
        name = "Duration" if pat.is_duration(kind) else f"Time{kind.bit_width}"
        return f"{name}({_SHORT_UNITS[kind.unit]})"
    if pat.is_decimal(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if pat.is_fixed_size_binary(kind):
        return f"FixedSizeBinary({kind.byte_width})"
    if pat.is_dictionary(kind):
        return f"Dictionary({arrow_name(kind.index_type)}, {arrow_name(kind.value_type)})"
    return _nested_name(kind)


def _nested_name(kind: pa.DataType) -> str:
    if pat.is_fixed_size_list(kind):
        return f"FixedSizeList({kind.list_size} x {_field(kind.value_field)})"
    if pat.is_list(kind) or pat.is_large_list(kind):
        return f"{'Large' if pat.is_large_list(kind) else ''}List({_field(kind.value_field)})"
    if pat.is_struct(kind):
        return f"Struct({', '.join(_named(field) for field in kind)})"
    if pat.is_map(kind):
        entries = f"{_named(kind.key_field)}, {_named(kind.item_field)}"
        return f'Map("entries": non-null Struct({entries}), {"sorted" if kind.keys_sorted else "unsorted"})'
    return str(kind)


def _field(field: pa.Field) -> str:
    return f"{'' if field.nullable else 'non-null '}{arrow_name(field.type)}"


def _named(field: pa.Field) -> str:
    name = field.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{name}": {_field(field)}'


def arrow_type_named(text: str) -> pa.DataType:
    """The type that a text names; InvalidInput if it names none.

    >>> arrow_type_named('Timestamp(Nanosecond, Some("UTC"))')
    TimestampType(timestamp[ns, tz=UTC])
    >>> arrow_type_named("List(Int8)")
    ListType(list<item: int8>)
    """
    reader = _Reader(text)
    kind = reader.kind()
    if reader.peek() is not None:
        reader.fail()
    return kind


class _Reader:
    """The tokens of a type's name, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._place = 0
        self._depth = 0
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                self.fail()
                break
            self._tokens.append(found[1])
            at = found.end()

    def fail(self) -> None:
        found = f"found {self.peek()!r}" if self.peek() else "it ends early"
        raise InvalidInput(f"{self._text!r} names no Arrow type: {found}")

    def peek(self) -> str | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def next(self) -> str:
        token = self.peek()
        if token is None:
            self.fail()
        self._place += 1
        return str(token)

    def take(self, token: str) -> bool:
        found = self.peek() == token
        self._place += found
        return found

    def need(self, token: str) -> None:
        if not self.take(token):
            self.fail()

    def number(self) -> int:
        token = self.next()
        if not token.lstrip("-").isdigit():
            self.fail()
        return int(token)

    def kind(self) -> pa.DataType:
        self._depth += 1
        if self._depth > _DEEPEST:
            self.fail()
        name = self.next()
        if name == "Interval":
            self.need("(")
            self.need("MonthDayNano")
            self.need(")")
            name = "Interval(MonthDayNano)"
        found = _PLAIN.get(name)
        if found is None:
            found = self._with_parameters(name)
        self._depth -= 1
        return found

    def _with_parameters(self, name: str) -> pa.DataType:
        make = _MAKERS.get(name)
        if make is None:
            raise InvalidInput(f"{self._text!r} names no Arrow type", hint=nearest(name, _KNOWN))
        self.need("(")
        try:
            kind = make(self)
        except (pa.ArrowException, ValueError, KeyError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"{self._text!r} names no Arrow type: {error}") from None
        self.need(")")
        return kind

    def field(self, name: str = "item") -> pa.Field:
        nullable = not self.take("non-null")
        self.take("nullable")
        return pa.field(name, self.kind(), nullable)

    def named(self) -> pa.Field:
        name = self.next()
        if not name.startswith('"'):
            self.fail()
        self.need(":")
        return self.field(re.sub(r"\\(.)", r"\1", name[1:-1]))

    def unit(self) -> str:
        return _UNITS[self.next()]


def _timestamp(reader: _Reader) -> pa.DataType:
    unit = reader.unit()
    zone = None
    if reader.take(","):
        wrapped = reader.take("Some")
        if wrapped:
            reader.need("(")
        token = reader.next()
        zone = None if token == "None" else token.strip('"')
        if wrapped:
            reader.need(")")
    return pa.timestamp(unit, zone)


def _decimal(make: Callable[[int, int], pa.DataType]) -> Callable[[_Reader], pa.DataType]:
    def read(reader: _Reader) -> pa.DataType:
        precision = reader.number()
        reader.need(",")
        return make(precision, reader.number())

    return read


def _fixed_list(reader: _Reader) -> pa.DataType:
    size = reader.number()
    if not reader.take("x"):
        reader.need(",")
    return pa.list_(reader.field(), size)


def _struct(reader: _Reader) -> pa.DataType:
    fields = []
    while reader.peek() != ")":
        fields.append(reader.named())
        if not reader.take(","):
            break
    return pa.struct(fields)


def _dictionary(reader: _Reader) -> pa.DataType:
    index = reader.kind()
    reader.need(",")
    return pa.dictionary(index, reader.kind())


def _map(reader: _Reader) -> pa.DataType:
    entries = reader.named().type
    if not pat.is_struct(entries) or entries.num_fields != 2:
        reader.fail()
    ordered = False
    if reader.take(","):
        ordered = reader.next() == "sorted"
    return pa.map_(entries.field(0).type, entries.field(1).type, keys_sorted=ordered)


_MAKERS: dict[str, Callable[[_Reader], pa.DataType]] = {
    "Timestamp": _timestamp,
    "Time32": lambda reader: pa.time32(reader.unit()),
    "Time64": lambda reader: pa.time64(reader.unit()),
    "Duration": lambda reader: pa.duration(reader.unit()),
    "Decimal128": _decimal(pa.decimal128),
    "Decimal256": _decimal(pa.decimal256),
    "FixedSizeBinary": lambda reader: pa.binary(reader.number()),
    "List": lambda reader: pa.list_(reader.field()),
    "LargeList": lambda reader: pa.large_list(reader.field()),
    "FixedSizeList": _fixed_list,
    "Struct": _struct,
    "Dictionary": _dictionary,
    "Map": _map,
}

_KNOWN = [*_PLAIN, *_MAKERS]
