"""Blob fields: which they are, what stands in their place in a data file, and what a file version can hold."""

from __future__ import annotations

from dataclasses import replace

from lancelet.errors import Unsupported
from lancelet.format.fields import Field, FieldEncoding, Schema
from lancelet.format.types import fixed_size_list_of_struct
from lancelet.format.versions import FileVersion

__all__ = [
    "BLOB_KEY",
    "BLOB_V2",
    "binary_schema",
    "check_storable",
    "described_schema",
    "file_schema",
    "is_blob_v1",
    "is_blob_v2",
]

#: Field metadata of a blob as files hold it, and of a blob of the first kind everywhere.
BLOB_KEY = "lance-encoding:blob"
#: Extension name of a blob of the second kind.
BLOB_V2 = "lance.blob.v2"

_DESCRIPTION = tuple(
    Field(name, kind, nullable=False, encoding=encoding)
    for name, kind, encoding in (
        ("kind", "uint8", FieldEncoding.PLAIN),
        ("position", "uint64", FieldEncoding.PLAIN),
        ("size", "uint64", FieldEncoding.PLAIN),
        ("blob_id", "uint32", FieldEncoding.PLAIN),
        ("blob_uri", "string", FieldEncoding.VAR_BINARY),
    )
)
_DESCRIPTION_METADATA = {"lance-encoding:packed": "true", BLOB_KEY: "true"}
#: What stands for a blob of the first kind.
_PLACE = tuple(Field(name, "uint64", encoding=FieldEncoding.PLAIN) for name in ("position", "size"))
_VARIABLE = ("string", "binary", "large_string", "large_binary", "json")


def is_blob_v1(field: Field) -> bool:
    """Whether the field is binary and marked as a blob."""
    marked = field.metadata.get(BLOB_KEY, "").lower() == "true"
    return marked and field.logical_type in ("binary", "large_binary")


def is_blob_v2(field: Field) -> bool:
    """Whether the field is a struct with the blob extension."""
    return field.logical_type == "struct" and field.extension_name == BLOB_V2


def file_schema(schema: Schema) -> Schema:
    """The schema as a data file states it: each blob of the second kind becomes the description of where it lies.

    Ids are those of the given schema; the description's own fields have none.

    >>> blob = Field("b", "struct", metadata={"ARROW:extension:name": "lance.blob.v2"})
    >>> [field.name for field in file_schema(Schema((blob,)).with_ids()).walk()]
    ['b', 'kind', 'position', 'size', 'blob_id', 'blob_uri']
    """
    return replace(schema, fields=tuple(map(_file_field, schema.fields)))


def _file_field(field: Field) -> Field:
    if is_blob_v2(field):
        return replace(field, children=_DESCRIPTION, metadata=dict(_DESCRIPTION_METADATA))
    return replace(field, children=tuple(map(_file_field, field.children))) if field.children else field


def described_schema(schema: Schema) -> Schema:
    """The schema in which every blob, of whichever kind, is the description of where it lies.

    >>> blob = Field("b", "large_binary", metadata={"lance-encoding:blob": "true"})
    >>> [field.name for field in described_schema(Schema((blob,))).walk()]
    ['b', 'position', 'size']
    """
    return replace(schema, fields=tuple(map(_described_field, schema.fields)))


def _described_field(field: Field) -> Field:
    if is_blob_v1(field):
        return replace(field, logical_type="struct", children=_PLACE, metadata={BLOB_KEY: "true"})
    if is_blob_v2(field) or not field.children:
        return _file_field(field)
    return replace(field, children=tuple(map(_described_field, field.children)))


def binary_schema(schema: Schema) -> Schema:
    """The schema in which every blob, of whichever kind, is its bytes.

    >>> blob = Field("b", "struct", metadata={"ARROW:extension:name": "lance.blob.v2", "k": "v"})
    >>> [(field.logical_type, dict(field.metadata)) for field in binary_schema(Schema((blob,))).walk()]
    [('large_binary', {'k': 'v'})]
    """
    return replace(schema, fields=tuple(map(_binary_field, schema.fields)))


def _binary_field(field: Field) -> Field:
    if is_blob_v2(field):
        kept = {key: text for key, text in field.metadata.items() if not key.startswith("ARROW:extension:")}
        return replace(field, logical_type="large_binary", children=(), metadata=kept)
    return replace(field, children=tuple(map(_binary_field, field.children))) if field.children else field


def check_storable(schema: Schema, version: FileVersion) -> None:
    """Raise Unsupported if a file of ``version`` cannot hold a field, whatever its values.

    >>> check_storable(Schema((Field("m", "map"),)), FileVersion.V2_1)
    Traceback (most recent call last):
    lancelet.errors.Unsupported: type map needs file version 2.2, the file has version 2.1 [column=m]
    """
    for top in schema.fields:
        _check_field(top, version, top.name, in_list=False)


def _check_field(field: Field, version: FileVersion, path: str, *, in_list: bool) -> None:
    name = field.logical_type
    of_struct = fixed_size_list_of_struct(name)
    later = name == "map" or of_struct is not None or is_blob_v2(field) or name == "fixed_size_binary:0"
    if later and version < FileVersion.V2_2:
        found = BLOB_V2 if is_blob_v2(field) else name
        raise Unsupported(f"type {found} needs file version 2.2, the file has version {version.label}", column=path)
    if name.startswith("fixed_size_list:"):
        innermost = name.rsplit("fixed_size_list:", 1)[1].split(":", 1)[0]
        if innermost in (*_VARIABLE, "dict"):
            raise Unsupported(f"no file version can hold {name}", column=path, hint="use a list of any size")
        if version is FileVersion.V0_1 and innermost == "null":
            raise Unsupported(f"file version 0.1 cannot hold {name}", column=path)
        if of_struct is not None and (in_list or any(_is_list(inner) for inner in field.walk() if inner is not field)):
            raise Unsupported(f"{name} cannot be combined with other lists", column=path)
    in_list = in_list or _is_list(field)
    for child in field.children:
        _check_field(child, version, f"{path}.{child.name}", in_list=in_list)


def _is_list(field: Field) -> bool:
    return field.logical_type.partition(".")[0] in ("list", "large_list", "map")
