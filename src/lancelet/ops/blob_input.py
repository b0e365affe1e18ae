"""Blobs as users write them: plain binary columns that are marked become the structs in which 2.2 tables keep blobs."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.format.blobs import BLOB_KEY, BLOB_V2, is_blob_v1, is_blob_v2
from lancelet.format.fields import EXTENSION_NAME, Field, Schema
from lancelet.format.types import field_encoding
from lancelet.format.versions import FileVersion

__all__ = ["BLOB_VALUES", "blob_values", "is_marked_blob", "table_schema"]

#: The extension of columns whose values are blobs of the second kind.
BLOB_VALUES = BLOB_V2
#: What such a column holds: the bytes themselves, or where they are to be found.
_CHILDREN = tuple(
    Field(name, kind, encoding=field_encoding(kind)) for name, kind in (("data", "large_binary"), ("uri", "string"))
)


def is_marked_blob(field: Field) -> bool:
    """Whether a plain binary field is marked as one of blobs."""
    return is_blob_v1(field)


def table_schema(schema: Schema, version: FileVersion) -> Schema:
    """The schema of a new table: from 2.2 on, marked binary fields become structs of blobs. Fields get new ids.

    >>> marked = Field("b", "large_binary", metadata={"lance-encoding:blob": "true"})
    >>> [(item.name, item.id) for item in table_schema(Schema((marked,)), FileVersion.V2_2).walk()]
    [('b', 0), ('data', 1), ('uri', 2)]
    """
    if version < FileVersion.V2_2 or not any(map(is_blob_v1, schema.walk())):
        return schema
    return replace(schema, fields=tuple(map(_as_struct, schema.fields))).with_ids()


def _as_struct(field: Field) -> Field:
    if is_blob_v1(field):
        kept = {key: value for key, value in field.metadata.items() if key != BLOB_KEY}
        metadata = {**kept, EXTENSION_NAME: BLOB_V2}
        return replace(
            field, logical_type="struct", children=_CHILDREN, metadata=metadata, encoding=field_encoding("struct")
        )
    if is_blob_v2(field) or not field.children:
        return field
    return replace(field, children=tuple(map(_as_struct, field.children)))


def blob_values(array: pa.Array) -> pa.Array:
    """A column of blobs in the form that a file's writer takes; plain bytes are wrapped.

    >>> blob_values(pa.array([b"abc", None])).field("data").to_pylist()
    [b'abc', None]
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pat.is_struct(array.type):
        return array
    if not (pat.is_binary(array.type) or pat.is_large_binary(array.type) or pat.is_binary_view(array.type)):
        raise InvalidInput(f"a blob column has type {array.type}, expected binary or a struct of data and uri")
    data = array.cast(pa.large_binary())
    mask = data.is_null() if data.null_count else None
    return pa.StructArray.from_arrays([data, pa.nulls(len(data), pa.string())], names=["data", "uri"], mask=mask)
