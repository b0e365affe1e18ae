"""Columns that are indexed: found by their paths, named by their ids, and what an index over them is called."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from lancelet.errors import AlreadyExists, InvalidInput
from lancelet.expr import Column
from lancelet.format.fields import Field, Schema
from lancelet.format.indexes import IndexMetadata
from lancelet.query.request import bound_schema, column_named
from lancelet.table.snapshot import Snapshot

__all__ = ["IndexedColumn", "check_name", "default_name", "indexed_column", "path_of_field"]

#: Names that begin so belong to indexes of the system.
_RESERVED = "__lance_"


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """A stored column: how a scan names it, its field, and its path as users write it."""

    column: Column
    field_id: int
    path: str

    @property
    def type(self) -> pa.DataType:
        """The type of its values."""
        return self.column.type


def indexed_column(snapshot: Snapshot, path: str) -> IndexedColumn:
    """The column at a dotted path, whose first name may be written in other letters if that is clear.

    InvalidInput with the nearest name where there is none.
    """
    schema = bound_schema(snapshot.schema)
    alike = [item.name for item in snapshot.schema.fields if item.name.lower() == path.lower()]
    known = any(item.name == path for item in snapshot.schema.fields)
    column = column_named(alike[0] if len(alike) == 1 and not known else path, schema)
    field: Field | None = None
    inner = snapshot.schema.fields
    for step in column.path:
        field = next((item for item in inner if item.name == step), None)
        if field is None:
            raise InvalidInput(f"{path!r} is known of rows, but not stored, so it cannot be indexed", column=path)
        inner = field.children
    if field is None:
        raise InvalidInput("no column is named", column=path)
    found = path_of_field(snapshot.schema, field.id)
    return IndexedColumn(column, field.id, path if found is None else found)


def path_of_field(schema: Schema, number: int) -> str | None:
    """The dotted path of a field, names that are no plain words between backticks below the top; None if unknown.

    >>> inner = Field("y.z", "int8", id=2)
    >>> path_of_field(Schema((Field("A b", "struct", id=1, children=(inner,)),)), 2)
    '`A b`.`y.z`'
    """
    steps = _steps(schema.fields, number)
    if steps is None:
        return None
    # A path of one step is the name as it is.
    return steps[0] if len(steps) == 1 else ".".join(map(_quoted, steps))


def _steps(fields: tuple[Field, ...], number: int) -> tuple[str, ...] | None:
    for item in fields:
        if item.id == number:
            return (item.name,)
        below = _steps(item.children, number)
        if below is not None:
            return (item.name, *below)
    return None


def _quoted(name: str) -> str:
    return name if name.replace("_", "a").isalnum() else f"`{name.replace('`', '``')}`"


def default_name(column: IndexedColumn, indexes: Collection[IndexMetadata], type_url: str) -> str:
    """What an index is called unless the user says: by its column, with a number where that name is taken.

    The name is not taken by an index of the same type over the same column: that one is replaced.
    """
    base = f"{column.path}_idx"
    number = 1
    while True:
        name = base if number == 1 else f"{base}_{number}"
        taken = [item for item in indexes if item.name == name]
        if all(
            item.fields == (column.field_id,)
            and item.details is not None
            and item.details.type_url.lower() == type_url.lower()
            for item in taken
        ):
            return name
        number += 1


def check_name(name: str, column: IndexedColumn, indexes: Collection[IndexMetadata], *, replace: bool) -> None:
    """Raise where no index of a name may be made over a column."""
    if not name or name.startswith(_RESERVED):
        raise InvalidInput(f"{name!r} is no name for an index", hint=f"names must not begin with {_RESERVED}")
    taken = [item for item in indexes if item.name == name]
    if any(item.fields != (column.field_id,) for item in taken):
        raise AlreadyExists(f"index {name!r} exists over another column", hint="choose another name")
    if taken and not replace:
        raise AlreadyExists(f"index {name!r} exists", hint="choose another name, or use replace=True")
