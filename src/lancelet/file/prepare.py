"""Preparing batches: each column in the form in which its type is stored, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.json import with_stored_json
from lancelet.errors import InvalidInput

__all__ = ["prepared"]


def prepared(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.Array]:
    """The batch's columns in the schema's order; view types become plain, JSON text JSONB, the rest must fit."""
    names = batch.schema.names
    if sorted(names) != sorted(schema.names):
        missing = sorted(set(schema.names) - set(names))
        extra = sorted(set(names) - set(schema.names))
        raise InvalidInput(f"the batch lacks columns {missing} and has {extra} besides those of the file")
    for field in schema:
        yield _stored(batch.column(names.index(field.name)), field)


def _stored(array: pa.Array, field: pa.Field) -> pa.Array:
    kind = field.type
    try:
        array = with_stored_json(array, field)
    except InvalidInput as error:
        raise error.where(column=field.name) from None
    if isinstance(array, pa.ExtensionArray) and not isinstance(kind, pa.BaseExtensionType):
        array = array.storage
    if array.type != kind:
        if not _same_but_views(array.type, kind):
            raise InvalidInput(f"column has type {array.type}, expected {kind}", column=field.name)
        array = array.cast(kind)
    if not field.nullable and array.null_count:
        raise InvalidInput(f"column has {array.null_count:,} nulls but is declared non-nullable", column=field.name)
    return array


def _same_but_views(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether a cast changes nothing but how the bytes are laid out, or what inner fields are called."""
    if pat.is_string_view(found):
        return bool(pat.is_string(expected))
    if pat.is_binary_view(found):
        return bool(pat.is_binary(expected))
    if isinstance(found, pa.BaseExtensionType):
        return bool(found.storage_type == expected)
    if pat.is_dictionary(found) and pat.is_dictionary(expected):
        # Whether the values are in an order is not stored.
        return bool(found.index_type == expected.index_type) and (
            found.value_type == expected.value_type or _same_but_views(found.value_type, expected.value_type)
        )
    if found.num_fields != expected.num_fields or found.id != expected.id:
        return False
    if not found.num_fields:
        return bool(found == expected)
    return all(_same_but_views(found.field(at).type, expected.field(at).type) for at in range(found.num_fields))
