"""Types and constants of Substrait messages, as Arrow's."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
from google.protobuf import wrappers_pb2

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.protos import substrait_pb2 as wire

__all__ = ["constant_of", "type_of"]

_WHERE = "a Substrait message"
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_PLAIN: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "fp32": pa.float32(),
    "fp64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us"),
    "timestamp_tz": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "fixed_char": pa.string(),
    "varchar": pa.string(),
}
#: What the same kind means where a message says that it is a variation.
_VARIATIONS: dict[tuple[str, int], pa.DataType] = {
    **{(f"i{bits}", 1): getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
    ("string", 1): pa.large_string(),
    ("string", 2): pa.string_view(),
    ("binary", 1): pa.large_binary(),
    ("binary", 2): pa.binary_view(),
    ("date", 1): pa.date64(),
}
#: Types of Arrow's that Substrait has no name for, as Arrow's extension of it calls them.
_NAMED: dict[str, pa.DataType] = {
    **{f"u{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
    "fp16": pa.float16(),
    "null": pa.null(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
    "date_millis": pa.date64(),
    "time_seconds": pa.time32("s"),
    "time_millis": pa.time32("ms"),
    "time_nanos": pa.time64("ns"),
}
#: The name of a type that a message declares.
TypeNames: TypeAlias = dict[int, str]


def type_of(message: wire.Type, names: TypeNames) -> pa.DataType:
    """The type that a message means; Unsupported if Arrow has none like it."""
    kind = message.WhichOneof("kind")
    if kind is None:
        raise Corrupt(f"{_WHERE} has an empty type")
    found = getattr(message, kind)
    plain = _VARIATIONS.get((kind, getattr(found, "type_variation_reference", 0))) or _PLAIN.get(kind)
    if plain is not None:
        return plain
    make = _MAKERS.get(kind)
    if make is None:
        raise Unsupported(f"type {kind} of {_WHERE} is not read")
    return make(found, names)


def _unit(digits: int) -> str:
    if digits not in _UNITS:
        raise InvalidInput(f"{_WHERE} counts {digits} digits of a second, expected 0, 3, 6 or 9")
    return _UNITS[digits]


def _user_type(message: wire.Type.UserDefined, names: TypeNames) -> pa.DataType:
    name = names.get(message.type_reference, "")
    if name not in _NAMED:
        raise Unsupported(f"type {name!r} of {_WHERE} is not read")
    return _NAMED[name]


_MAKERS: dict[str, Callable[[Any, TypeNames], pa.DataType]] = {
    "fixed_binary": lambda found, _: pa.binary(found.length),
    "decimal": lambda found, _: _decimal_type(found.precision, found.scale),
    "precision_timestamp": lambda found, _: pa.timestamp(_unit(found.precision)),
    "precision_timestamp_tz": lambda found, _: pa.timestamp(_unit(found.precision), "UTC"),
    "list": lambda found, names: pa.list_(type_of(found.type, names)),
    "map": lambda found, names: pa.map_(type_of(found.key, names), type_of(found.value, names)),
    "struct": lambda found, names: pa.struct([(f"c{at}", type_of(each, names)) for at, each in enumerate(found.types)]),
    "user_defined": _user_type,
}


def _decimal_type(precision: int, scale: int) -> pa.DataType:
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise InvalidInput(
            f"{_WHERE} names decimal({precision}, {scale}), expected at most 38 digits of which scale are"
        )
    return pa.decimal128(precision, scale)


def constant_of(message: wire.Expression.Literal, names: TypeNames) -> pa.Scalar:
    """The constant that a message holds."""
    kind = message.WhichOneof("literal_type")
    if kind is None:
        raise Corrupt(f"{_WHERE} has an empty constant")
    found = getattr(message, kind)
    make = _CONSTANTS.get(kind)
    try:
        if make is not None:
            return make(found, names)
        return _plain_constant(kind, found, message.type_variation_reference)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{_WHERE} has a constant that is no {kind}: {error}") from None


def _plain_constant(kind: str, found: object, variation: int) -> pa.Scalar:
    kind = {"boolean": "bool"}.get(kind, kind)
    wanted = _VARIATIONS.get((kind, variation)) or _PLAIN.get(kind)
    if wanted is None:
        raise Unsupported(f"constants of type {kind} in {_WHERE} are not read")
    if isinstance(found, int) and pa.types.is_unsigned_integer(wanted):
        found %= 1 << wanted.bit_width
    if not pa.types.is_temporal(wanted):
        return pa.scalar(found, wanted)
    return pa.scalar(found, pa.int32() if wanted.bit_width == 32 else pa.int64()).cast(wanted)


def _decimal(message: wire.Expression.Literal.Decimal, _: TypeNames) -> pa.Scalar:
    kind = _decimal_type(message.precision, message.scale)
    count = int.from_bytes(message.value, "little", signed=True)
    return pa.scalar(Decimal((int(count < 0), tuple(map(int, str(abs(count)))), -message.scale)), kind)


def _items(message: wire.Expression.Literal.Items, names: TypeNames) -> pa.Scalar:
    items = [constant_of(each, names) for each in message.values]
    if not items:
        raise Corrupt(f"{_WHERE} has a list without items or type")
    values = pa.array([each.as_py() for each in items], items[0].type)
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)[0]


def _fields(message: wire.Expression.Literal.Fields, names: TypeNames) -> pa.Scalar:
    items = [constant_of(each, names) for each in message.fields]
    arrays = [pa.repeat(each, 1) for each in items]
    return pa.StructArray.from_arrays(arrays, [f"c{place}" for place in range(len(items))])[0]


def _at(message: wire.Expression.Literal.PrecisionTime, zone: str | None) -> pa.Scalar:
    return pa.scalar(message.value, pa.int64()).cast(pa.timestamp(_unit(message.precision), zone))


_WRAPPED: dict[str, tuple[type[Any], pa.DataType]] = {
    "StringValue": (wrappers_pb2.StringValue, pa.string()),
    "BytesValue": (wrappers_pb2.BytesValue, pa.binary()),
    "UInt32Value": (wrappers_pb2.UInt32Value, pa.uint32()),
    "UInt64Value": (wrappers_pb2.UInt64Value, pa.uint64()),
    "Int32Value": (wrappers_pb2.Int32Value, pa.int32()),
    "Int64Value": (wrappers_pb2.Int64Value, pa.int64()),
    "FloatValue": (wrappers_pb2.FloatValue, pa.float32()),
    "DoubleValue": (wrappers_pb2.DoubleValue, pa.float64()),
}


def _wrapped(message: wire.Expression.Literal.UserDefined, _: TypeNames) -> pa.Scalar:
    name = message.value.type_url.rpartition(".")[2]
    if name not in _WRAPPED:
        raise Unsupported(f"constants of {message.value.type_url!r} in {_WHERE} are not read")
    wrapper, kind = _WRAPPED[name]
    inner = wrapper()
    if not message.value.Unpack(inner):
        raise Corrupt(f"{_WHERE} has a constant that is no {name}")
    return pa.scalar(inner.value, kind)


_CONSTANTS: dict[str, Callable[[Any, TypeNames], pa.Scalar]] = {
    "var_char": lambda found, _: pa.scalar(found.value),
    "fixed_binary": lambda found, _: pa.scalar(found, pa.binary(len(found))),
    "decimal": _decimal,
    "null": lambda found, names: pa.scalar(None, type_of(found, names)),
    "list": _items,
    "empty_list": lambda found, names: pa.scalar([], pa.list_(type_of(found.type, names))),
    "struct": _fields,
    "user_defined": _wrapped,
    "precision_timestamp": lambda found, _: _at(found, None),
    "precision_timestamp_tz": lambda found, _: _at(found, "UTC"),
}
