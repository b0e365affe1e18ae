"""Logical types: the strings by which Lance names the types of leaf fields, to and from Arrow types."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.fields import EXTENSION_METADATA, EXTENSION_NAME, FieldEncoding
from lancelet.format.wire import MAX_DEPTH

__all__ = ["BFLOAT16", "arrow_type", "field_encoding", "fixed_size_list_of_struct", "logical_type"]

#: The extension name of a 16-bit brain float, held as two bytes; as a list's item it is part of the logical type.
BFLOAT16 = "lance.bfloat16"

_PLAIN: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "duration:s": pa.duration("s"),
    "duration:ms": pa.duration("ms"),
    "duration:us": pa.duration("us"),
    "duration:ns": pa.duration("ns"),
}
# Views are stored in their plain form.
_NAMES: dict[pa.DataType, str] = {kind: name for name, kind in _PLAIN.items()} | {
    pa.string_view(): "string",
    pa.binary_view(): "binary",
}
_JSON = "json"
_VARIABLE = ("string", "binary", "large_string", "large_binary", _JSON)


def logical_type(kind: pa.DataType) -> str:
    """The logical type of a leaf; Unsupported if Lance has none.

    >>> logical_type(pa.timestamp("us", "UTC")), logical_type(pa.list_(pa.float32(), 8))
    ('timestamp:us:UTC', 'fixed_size_list:float:8')
    """
    name = _NAMES.get(kind)
    if name is not None:
        return name
    if pa.types.is_timestamp(kind):
        return f"timestamp:{kind.unit}:{kind.tz or '-'}"
    if pa.types.is_decimal128(kind) or pa.types.is_decimal256(kind):
        return f"decimal:{kind.bit_width}:{kind.precision}:{kind.scale}"
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed_size_binary:{kind.byte_width}"
    if pa.types.is_fixed_size_list(kind):
        return f"fixed_size_list:{_item_name(kind.value_field)}:{_positive(kind.list_size)}"
    if pa.types.is_dictionary(kind):
        return f"dict:{_dictionary_value(kind)}:{logical_type(kind.index_type)}:false"
    raise Unsupported(f"Arrow type {kind} has no counterpart in Lance", hint="cast the column first")


def _item_name(item: pa.Field) -> str:
    if (item.metadata or {}).get(EXTENSION_NAME.encode()) == BFLOAT16.encode():
        return BFLOAT16
    kind = item.type.storage_type if isinstance(item.type, pa.BaseExtensionType) else item.type
    if isinstance(item.type, pa.BaseExtensionType) and item.type.extension_name == BFLOAT16:
        return BFLOAT16
    if pa.types.is_dictionary(kind):
        raise Unsupported(f"a fixed-size list of {kind} has no counterpart in Lance", hint="cast the column first")
    return logical_type(kind)


def _positive(size: int) -> int:
    if size < 1:
        raise InvalidInput(f"a fixed-size list has size {size}, expected at least 1")
    return size


def _dictionary_value(kind: pa.DataType) -> str:
    name = logical_type(kind.value_type)
    # The parts of a logical type are separated by colons, and a dictionary's must be exactly four.
    if ":" in name or pa.types.is_dictionary(kind.value_type):
        raise Unsupported(f"a dictionary of {kind.value_type} cannot be named in Lance", hint="cast the column first")
    return name


def field_encoding(name: str) -> FieldEncoding:
    """How 0.1 files store a logical type. Struct and null have no encoding.

    >>> field_encoding("string").name, field_encoding("fixed_size_list:float:8").name
    ('VAR_BINARY', 'PLAIN')
    """
    if name in _VARIABLE:
        return FieldEncoding.VAR_BINARY
    if name in ("struct", "null"):
        return FieldEncoding.NONE
    return FieldEncoding.DICTIONARY if name.startswith("dict:") else FieldEncoding.PLAIN


def fixed_size_list_of_struct(name: str) -> int | None:
    """The size of a ``fixed_size_list:struct:N``, whose item is a child field; None for every other type."""
    prefix, _, size = name.rpartition(":")
    return _number(size, name, 1) if prefix == "fixed_size_list:struct" else None


@lru_cache(maxsize=4096)
def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of a leaf's logical type.

    >>> arrow_type("decimal:128:10:2"), arrow_type("dict:string:int8:false").index_type
    (Decimal128Type(decimal128(10, 2)), DataType(int8))
    """
    return _parse(name, 0)


def _parse(name: str, depth: int) -> pa.DataType:
    plain = _PLAIN.get(name)
    if plain is not None:
        return plain
    if name == _JSON:
        return pa.large_binary()
    if depth >= MAX_DEPTH:
        raise Corrupt(f"logical type {name[:80]!r} is nested more than {MAX_DEPTH} levels deep")
    head, _, rest = name.partition(":")
    parse = _PARAMETRIC.get(head)
    if parse is None or not rest:
        raise Unsupported(
            f"logical type {name!r} is unknown", hint="a newer implementation of Lance may have written it"
        )
    return parse(name, rest, depth + 1)


def _parse_timestamp(name: str, rest: str, _depth: int) -> pa.DataType:
    unit, _, zone = rest.partition(":")
    if unit not in ("s", "ms", "us", "ns") or not zone:
        raise Corrupt(f"logical type {name!r} is malformed, expected timestamp:<unit>:<zone or ->")
    return pa.timestamp(unit, None if zone == "-" else zone)


def _parse_decimal(name: str, rest: str, _depth: int) -> pa.DataType:
    parts = rest.split(":")
    if len(parts) != 3 or parts[0] not in ("128", "256"):
        raise Corrupt(f"logical type {name!r} is malformed, expected decimal:<128 or 256>:<precision>:<scale>")
    most = 38 if parts[0] == "128" else 76
    precision, scale = _number(parts[1], name, 1, most), _number(parts[2], name, -128, 127)
    return pa.decimal128(precision, scale) if parts[0] == "128" else pa.decimal256(precision, scale)


def _parse_fixed_size_binary(name: str, rest: str, _depth: int) -> pa.DataType:
    return pa.binary(_number(rest, name, 0))


def _parse_fixed_size_list(name: str, rest: str, depth: int) -> pa.DataType:
    inner, _, size = rest.rpartition(":")
    if inner == BFLOAT16:
        metadata = {EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""}
        return pa.list_(pa.field("item", pa.binary(2), metadata=metadata), _number(size, name, 1))
    return pa.list_(pa.field("item", _parse(inner, depth)), _number(size, name, 1))


def _parse_dictionary(name: str, rest: str, depth: int) -> pa.DataType:
    parts = rest.split(":")
    if len(parts) != 3:
        raise Corrupt(f"logical type {name!r} is malformed, expected dict:<values>:<indices>:<ordered>")
    index = _parse(parts[1], depth)
    if not pa.types.is_integer(index):
        raise Corrupt(f"logical type {name!r} has indices of type {parts[1]}, expected integers")
    return pa.dictionary(index, _parse(parts[0], depth))


_PARAMETRIC: dict[str, Callable[[str, str, int], pa.DataType]] = {
    "timestamp": _parse_timestamp,
    "decimal": _parse_decimal,
    "fixed_size_binary": _parse_fixed_size_binary,
    "fixed_size_list": _parse_fixed_size_list,
    "dict": _parse_dictionary,
}


def _number(text: str, name: str, least: int, most: int = 2**31 - 1) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and least <= int(text) <= most):
        raise Corrupt(f"logical type {name!r} has {text[:20]!r} where a number from {least} to {most} is expected")
    return int(text)
