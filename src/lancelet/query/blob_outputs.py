"""Blobs among the outputs of a scan: where they are, and the type they have as bytes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelet.expr import Column, Expr
from lancelet.format.arrow import field_to_arrow
from lancelet.format.blobs import binary_schema, is_blob_v1, is_blob_v2
from lancelet.format.fields import Field, Schema

__all__ = ["BlobOutput", "blob_outputs", "holds_blobs", "is_blob"]


@dataclass(frozen=True, slots=True)
class BlobOutput:
    """An output that is a blob, or has blobs within it: its place, and the field of the table that it shows."""

    place: int
    field: Field

    def as_bytes(self, named: pa.Field) -> pa.Field:
        """The output's field with bytes in the place of descriptions."""
        made = field_to_arrow(binary_schema(Schema((self.field,))).fields[0])
        return pa.field(named.name, made.type, named.nullable, metadata=made.metadata)


def is_blob(field: Field) -> bool:
    """Whether the values of a field are blobs."""
    return is_blob_v1(field) or is_blob_v2(field)


def holds_blobs(field: Field) -> bool:
    """Whether a field is a blob or has one below it."""
    return any(map(is_blob, field.walk()))


def blob_outputs(schema: Schema, outputs: Sequence[tuple[str, Expr]]) -> tuple[BlobOutput, ...]:
    """The outputs with blobs; what is computed from a column holds none.

    >>> blob = Field("b", "large_binary", metadata={"lance-encoding:blob": "true"})
    >>> [found.place for found in blob_outputs(Schema((blob,)), [("x", Column(("b",), pa.large_binary()))])]
    [0]
    """
    found = []
    for place, (_, expr) in enumerate(outputs):
        field = _field_at(schema, expr.path) if isinstance(expr, Column) else None
        if field is not None and holds_blobs(field):
            found.append(BlobOutput(place, field))
    return tuple(found)


def _field_at(schema: Schema, path: Sequence[str]) -> Field | None:
    fields, found = schema.fields, None
    for step in path:
        found = next((item for item in fields if item.name == step), None)
        if found is None:
            return None
        fields = found.children
    return found
