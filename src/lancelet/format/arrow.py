"""Schemas to and from Arrow: nested types become child fields, JSON and keys become what Lance says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from lancelet.errors import Corrupt, InvalidInput, LanceletError
from lancelet.format.extensions import resolved, stored_field
from lancelet.format.fields import EXTENSION_NAME, Field, Schema
from lancelet.format.types import BFLOAT16, arrow_type, field_encoding, fixed_size_list_of_struct, logical_type

__all__ = ["field_from_arrow", "field_to_arrow", "schema_from_arrow", "schema_to_arrow"]

_PRIMARY_KEY = "lance-schema:unenforced-primary-key"
_PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
_CLUSTERING_KEY_POSITION = "lance-schema:unenforced-clustering-key:position"
_TRUE = ("true", "1", "yes", "on")
_ARROW_JSON, _LANCE_JSON = "arrow.json", "lance.json"


def schema_from_arrow(schema: pa.Schema) -> Schema:
    """The Lance schema of an Arrow schema, its fields numbered depth first from 0.

    >>> [field.logical_type for field in schema_from_arrow(pa.schema({"a": pa.list_(pa.int8())})).walk()]
    ['list', 'int8']
    """
    made = Schema(tuple(map(field_from_arrow, schema)), _text(schema.metadata, "schema")).with_ids()
    names: set[str] = set()
    for top in made.fields:
        if top.name in names:
            raise InvalidInput(f"field name {top.name!r} occurs twice, expected it once", column=top.name)
        if "." in top.name:
            raise InvalidInput(
                f"field name {top.name!r} contains a dot", column=top.name, hint="dots separate the names in a path"
            )
        names.add(top.name)
        _check_primary_key(top, blocked=None)
    return made


def field_from_arrow(field: pa.Field) -> Field:
    """The Lance field of an Arrow field, without ids."""
    field = stored_field(field)
    metadata = _text(field.metadata, field.name)
    try:
        name, children = _shape(field.type)
    except LanceletError as error:
        raise error.where(column=field.name) from None
    if _is_json(field.type, metadata.get(EXTENSION_NAME)):
        name = "json"
        metadata[EXTENSION_NAME] = _LANCE_JSON
    position = _u32(metadata.get(_PRIMARY_KEY_POSITION))
    return Field(
        name=field.name,
        logical_type=name,
        nullable=field.nullable,
        children=children,
        metadata=metadata,
        encoding=field_encoding(name),
        primary_key=position is not None or metadata.get(_PRIMARY_KEY, "").lower() in _TRUE,
        primary_key_position=position or 0,
        clustering_key_position=_u32(metadata.get(_CLUSTERING_KEY_POSITION)) or 0,
    )


def _is_json(kind: pa.DataType, extension: str | None) -> bool:
    if extension == _ARROW_JSON:
        return kind in (pa.string(), pa.large_string())
    return extension == _LANCE_JSON and kind == pa.large_binary()


def _shape(kind: pa.DataType) -> tuple[str, tuple[Field, ...]]:
    if pa.types.is_struct(kind):
        return "struct", tuple(field_from_arrow(kind.field(place)) for place in range(kind.num_fields))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = field_from_arrow(kind.value_field)
        name = "list" if pa.types.is_list(kind) else "large_list"
        # A list of lists of structs is a plain list: only the list right around the struct is marked.
        return f"{name}.struct" if item.logical_type == "struct" else name, (item,)
    if pa.types.is_map(kind):
        if kind.keys_sorted:
            raise InvalidInput("a map with sorted keys cannot be stored", hint="cast it to a map without that mark")
        children = (field_from_arrow(kind.key_field), field_from_arrow(kind.item_field))
        return "map", (Field("entries", "struct", nullable=False, children=children),)
    if pa.types.is_fixed_size_list(kind) and pa.types.is_struct(kind.value_type):
        return f"fixed_size_list:struct:{kind.list_size}", (field_from_arrow(kind.value_field),)
    return logical_type(kind), ()


def _check_primary_key(field: Field, blocked: str | None) -> None:
    if field.primary_key:
        if field.children:
            blocked = "it is not a leaf"
        elif field.nullable:
            blocked = blocked or "it is nullable"
        if blocked:
            raise InvalidInput(f"field {field.name!r} cannot be part of the primary key: {blocked}", column=field.name)
    if field.logical_type != "struct" and field.children:
        blocked = "it is within a list or map"
    elif field.nullable:
        blocked = blocked or "it is within a nullable field"
    for child in field.children:
        _check_primary_key(child, blocked)


def schema_to_arrow(schema: Schema) -> pa.Schema:
    """The Arrow schema of a Lance schema, as other Lance implementations report it.

    >>> schema_to_arrow(Schema((Field("a", "fixed_size_binary:2"),))).field("a").type
    FixedSizeBinaryType(fixed_size_binary[2])
    """
    made = pa.schema([_field_to_arrow(top) for top in schema.fields], metadata=_bytes(schema.metadata))
    exchanged = any(
        item.extension_name or item.logical_type == "map" or BFLOAT16 in item.logical_type for item in schema.walk()
    )
    return resolved(made) if exchanged else made


def field_to_arrow(field: Field) -> pa.Field:
    """The Arrow field of a Lance field."""
    return schema_to_arrow(Schema((field,))).field(0)


def _field_to_arrow(field: Field) -> pa.Field:
    metadata = dict(field.metadata)
    if field.logical_type == "json":
        metadata[EXTENSION_NAME] = _LANCE_JSON
    try:
        kind = _type_to_arrow(field)
    except LanceletError as error:
        raise error.where(column=field.name) from None
    # pyarrow cannot say of nulls that they are never null.
    return pa.field(field.name, kind, field.nullable or pa.types.is_null(kind), metadata=_bytes(metadata))


def _type_to_arrow(field: Field) -> pa.DataType:
    name = field.logical_type
    if name == "struct":
        return pa.struct([_field_to_arrow(child) for child in field.children])
    if name in ("list", "list.struct"):
        return pa.list_(_field_to_arrow(_only_child(field)))
    if name in ("large_list", "large_list.struct"):
        return pa.large_list(_field_to_arrow(_only_child(field)))
    if name == "map":
        entries = _only_child(field)
        if len(entries.children) != 2:
            raise Corrupt(f"field {field.name!r} is a map of {len(entries.children)} children, expected key and value")
        key, value = entries.children
        return pa.map_(_field_to_arrow(replace(key, nullable=False)), _field_to_arrow(value))
    size = fixed_size_list_of_struct(name)
    if size is not None:
        return pa.list_(_field_to_arrow(_only_child(field)), size)
    if field.children:
        raise Corrupt(f"field {field.name!r} of type {name!r} has {len(field.children)} children, expected none")
    return arrow_type(name)


def _only_child(field: Field) -> Field:
    if len(field.children) != 1:
        found = f"field {field.name!r} of type {field.logical_type!r} has {len(field.children)} children"
        raise Corrupt(f"{found}, expected one")
    return field.children[0]


def _u32(text: str | None) -> int | None:
    digits = (text or "").removeprefix("+")
    valid = digits.isascii() and digits.isdigit() and len(digits) <= 64 and int(digits) < 2**32
    return int(digits) if valid else None


def _text(metadata: Mapping[bytes, bytes] | None, owner: str) -> dict[str, str]:
    try:
        return {key.decode(): value.decode() for key, value in (metadata or {}).items()}
    except UnicodeDecodeError as error:
        raise InvalidInput(f"metadata of {owner!r} is not text: {error}") from None


def _bytes(metadata: Mapping[str, str]) -> dict[bytes, bytes] | None:
    encoded = {key.encode(): value.encode("utf-8", "surrogateescape") for key, value in metadata.items()}
    return encoded or None
