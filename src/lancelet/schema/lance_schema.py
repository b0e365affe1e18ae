"""LanceSchema and LanceField: a table's columns with the ids that data files know them by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lancelet.format.arrow import field_to_arrow, schema_from_arrow, schema_to_arrow
from lancelet.format.fields import Field, Schema
from lancelet.schema.paths import parse_field_path

__all__ = ["LanceField", "LanceSchema"]


class LanceField:
    """A field of a table, with its id and what is said about keys.

    >>> LanceSchema.from_pyarrow(pa.schema({"a": pa.int8()})).field("a").id()
    0
    """

    __slots__ = ("_field",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, field: Field) -> None:
        self._field = field

    def __eq__(self, other: object) -> bool:
        return self._field == other._field if isinstance(other, LanceField) else NotImplemented

    def __reduce__(self) -> tuple[object, ...]:
        return LanceField, (self._field,)

    def __repr__(self) -> str:
        item = self._field
        null = "" if item.nullable else " not null"
        return f"LanceField({item.name!r}: {item.logical_type}{null}, id={item.id})"

    def name(self) -> str:
        """What it is called."""
        return self._field.name

    def id(self) -> int:
        """By what number data files know it; -1 before it has one."""
        return self._field.id

    def children(self) -> list[LanceField]:
        """The fields within it."""
        return [LanceField(item) for item in self._field.children]

    @property
    def metadata(self) -> dict[str, str]:
        """What is said about it."""
        return dict(self._field.metadata)

    def to_arrow(self) -> pa.Field:
        """The Arrow field."""
        return field_to_arrow(self._field)

    def is_unenforced_primary_key(self) -> bool:
        """Whether it is part of the key by which rows are told apart, which nobody checks."""
        return self._field.primary_key

    def unenforced_primary_key_position(self) -> int | None:
        """Its place in that key; None where it is no part of it, 0 where no order was given."""
        return self._field.primary_key_position if self._field.primary_key else None

    def is_unenforced_clustering_key(self) -> bool:
        """Whether it is part of the key by which rows lie near each other, which nobody checks."""
        return self._field.clustering_key or self._field.clustering_key_position > 0

    def unenforced_clustering_key_position(self) -> int | None:
        """Its place in that key; None where it is no part of it."""
        return self._field.clustering_key_position if self.is_unenforced_clustering_key() else None


class LanceSchema:
    """The fields of a table.

    >>> schema = LanceSchema.from_pyarrow(pa.schema({"p": pa.struct({"x": pa.int8()})}))
    >>> schema.field("p.x"), schema.to_pyarrow().names
    (LanceField('x': int8, id=1), ['p'])
    """

    __slots__ = ("_schema",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def __eq__(self, other: object) -> bool:
        return self._schema == other._schema if isinstance(other, LanceSchema) else NotImplemented

    def __reduce__(self) -> tuple[object, ...]:
        return LanceSchema, (self._schema,)

    def __repr__(self) -> str:
        return f"LanceSchema([{', '.join(map(repr, self.fields()))}])"

    @property
    def stored(self) -> Schema:
        """The schema as manifests hold it."""
        return self._schema

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """The Lance schema of an Arrow schema, its fields numbered from 0."""
        return LanceSchema(schema_from_arrow(schema))

    def to_pyarrow(self) -> pa.Schema:
        """The Arrow schema."""
        return schema_to_arrow(self._schema)

    def fields(self) -> list[LanceField]:
        """The top-level fields."""
        return [LanceField(item) for item in self._schema.fields]

    def field(self, name: str) -> LanceField | None:
        """The field at a path such as ``a.b``; None if there is none."""
        return _found(self._schema, parse_field_path(name), str)

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """The field at a path, else the one whose path differs in upper and lower case alone; None if there is none."""
        names = parse_field_path(name)
        return _found(self._schema, names, str) or _found(self._schema, names, str.lower)

    def unenforced_primary_key(self) -> list[LanceField]:
        """The fields by which rows are told apart, in their order in the key."""
        keys = [item for item in self._schema.walk() if item.primary_key]
        return [LanceField(item) for item in sorted(keys, key=lambda item: (item.primary_key_position, item.id))]

    def unenforced_clustering_key(self) -> list[LanceField]:
        """The fields by which rows lie near each other, in their order in the key."""
        keys = [item for item in self._schema.walk() if LanceField(item).is_unenforced_clustering_key()]
        return [LanceField(item) for item in sorted(keys, key=lambda item: (item.clustering_key_position, item.id))]


def _found(schema: Schema, names: Sequence[str], same: Callable[[str], str]) -> LanceField | None:
    fields: Sequence[Field] = schema.fields
    found: Field | None = None
    for name in names:
        found = next((item for item in fields if same(item.name) == same(name)), None)
        if found is None:
            return None
        fields = found.children
    return None if found is None else LanceField(found)
