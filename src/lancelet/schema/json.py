"""Arrow schemas as JSON, with Lance's names of types.

{"fields": [{"name", "type": {"type"[, "fields"][, "length"]}, "nullable"[, "metadata"]}][, "metadata"]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from lancelet.errors import InvalidInput, LanceletError, Unsupported
from lancelet.format.extensions import resolved, stored_field
from lancelet.format.types import arrow_type, logical_type

__all__ = ["Json", "json_to_schema", "schema_to_json"]

#: What the json module reads and writes.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

_FIXED_BINARY, _FIXED_LIST = "fixed_size_binary", "fixed_size_list"
_LISTS = {"list": pa.list_, "large_list": pa.large_list}


def schema_to_json(schema: pa.Schema) -> dict[str, Json]:
    """A schema as a tree that the json module can write.

    >>> schema_to_json(pa.schema([pa.field("x", pa.list_(pa.int8(), 2), nullable=False)]))["fields"][0]["type"]
    {'type': 'fixed_size_list', 'fields': [{'name': 'item', 'type': {'type': 'int8'}, 'nullable': True}], 'length': 2}
    """
    return {"fields": [_field_to_json(item) for item in schema], **_metadata_to_json(schema.metadata)}


def json_to_schema(schema_json: Mapping[str, Json]) -> pa.Schema:
    """The schema that such a tree describes; InvalidInput where it does not.

    >>> json_to_schema({"fields": [{"name": "x", "type": {"type": "date32:day"}, "nullable": False}]}).field("x")
    pyarrow.Field<x: date32[day] not null>
    """
    fields = _list_of(_member(schema_json, "fields", "the schema"), "fields of the schema")
    made = [_field_from_json(item, f"field {place}") for place, item in enumerate(fields)]
    return resolved(pa.schema(made, metadata=_metadata_from_json(schema_json, "the schema")))


def _field_to_json(field: pa.Field) -> dict[str, Json]:
    stored = stored_field(field)
    try:
        kind = _type_to_json(stored.type)
    except LanceletError as error:
        raise error.where(column=field.name) from None
    return {
        "name": stored.name,
        "type": kind,
        "nullable": stored.nullable,
        **_metadata_to_json(stored.metadata),
    }


def _type_to_json(kind: pa.DataType) -> dict[str, Json]:
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field_to_json(item) for item in kind]}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        name = "list" if pa.types.is_list(kind) else "large_list"
        return {"type": name, "fields": [_field_to_json(kind.value_field)]}
    if pa.types.is_fixed_size_list(kind):
        return {"type": _FIXED_LIST, "fields": [_field_to_json(kind.value_field)], "length": kind.list_size}
    if pa.types.is_map(kind):
        return {"type": "map", "fields": [_field_to_json(kind.key_field), _field_to_json(kind.item_field)]}
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return {"type": _FIXED_BINARY, "length": kind.byte_width}
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        raise Unsupported(f"Arrow type {kind} has no counterpart in Lance", hint="cast the column first")
    return {"type": logical_type(kind)}


def _field_from_json(value: Json, where: str) -> pa.Field:
    name = _member(value, "name", where)
    nullable = _member(value, "nullable", where)
    if not isinstance(name, str) or not isinstance(nullable, bool):
        raise InvalidInput(f"{where} has name {name!r} and nullable {nullable!r}, expected text and true or false")
    kind = _type_from_json(_member(value, "type", where), f"field {name!r}")
    metadata = _metadata_from_json(value, f"field {name!r}")
    # pyarrow cannot say of nulls that they are never null.
    return pa.field(name, kind, nullable or pa.types.is_null(kind), metadata=metadata)


def _type_from_json(value: Json, where: str) -> pa.DataType:
    name = _member(value, "type", f"the type of {where}")
    if not isinstance(name, str):
        raise InvalidInput(f"the type of {where} is named {name!r}, expected text")
    if name in ("struct", "map", _FIXED_LIST, *_LISTS):
        return _nested_from_json(value, name, where)
    if name == _FIXED_BINARY:
        return pa.binary(_length(value, where))
    if ":struct" in name or name.startswith((_FIXED_LIST, _FIXED_BINARY)) or name == "json":
        raise InvalidInput(f"the type of {where} is {name!r}, which is no name of a type in JSON")
    try:
        return arrow_type(name)
    except LanceletError as error:
        raise InvalidInput(f"the type of {where} is unknown: {error}") from None


def _nested_from_json(value: Json, name: str, where: str) -> pa.DataType:
    given = _list_of(_member(value, "fields", f"the type of {where}"), f"fields of {where}")
    fields = [_field_from_json(item, f"field {place} of {where}") for place, item in enumerate(given)]
    if name == "struct":
        return pa.struct(fields)
    wanted = 2 if name == "map" else 1
    if len(fields) != wanted:
        raise InvalidInput(f"the {name} of {where} has {len(fields)} fields, expected {wanted}")
    if name == "map":
        return pa.map_(fields[0], fields[1])
    return pa.list_(fields[0], _length(value, where)) if name == _FIXED_LIST else _LISTS[name](fields[0])


def _length(value: Json, where: str) -> int:
    length = _member(value, "length", f"the type of {where}")
    if isinstance(length, bool) or not isinstance(length, int) or not 0 <= length < 2**31:
        raise InvalidInput(f"the type of {where} has length {length!r}, expected a whole number below 2**31")
    return length


def _member(value: Json, name: str, where: str) -> Json:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{where} is {type(value).__name__}, expected an object")
    if name not in value:
        raise InvalidInput(f"{where} has no {name!r}", hint=f"it has {sorted(value)}")
    return value[name]


def _list_of(value: Json, where: str) -> Sequence[Json]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInput(f"the {where} are {type(value).__name__}, expected a list")
    return value


def _metadata_to_json(metadata: Mapping[bytes, bytes] | None) -> dict[str, Json]:
    if not metadata:
        return {}
    try:
        return {"metadata": {key.decode(): text.decode() for key, text in metadata.items()}}
    except UnicodeDecodeError as error:
        raise InvalidInput(f"metadata is not text: {error}") from None


def _metadata_from_json(value: Json, where: str) -> dict[str, str] | None:
    found = value.get("metadata") if isinstance(value, Mapping) else None
    if found is None:
        return None
    if not isinstance(found, Mapping) or not all(isinstance(text, str) for text in found.values()):
        raise InvalidInput(f"the metadata of {where} is {found!r}, expected names and texts")
    return {key: text for key, text in found.items() if isinstance(text, str)}
