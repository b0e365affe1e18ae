"""Columns that are indexed: found by their paths, named by their ids, and what an index over them is called."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr import Column
from lancelet.format.fields import Field, Schema
from lancelet.format.indexes import IndexMetadata
from lancelet.ops.index.errors import IndexExists, NoSuchColumn
from lancelet.query.request import bound_schema, column_named
from lancelet.table.snapshot import Snapshot

__all__ = ["IndexedColumn", "check_name", "column_of", "default_name", "indexed_column", "path_of_field"]

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
    """The column at a dotted path, whose names may be written in other letters if that is clear.

    Names with dots in them stand between backticks. NoSuchColumn with the nearest name where there is none.
    """
    steps = _steps(path)
    columns = dict(_reachable(snapshot.schema.fields, ()))
    if steps not in columns:
        wanted = tuple(step.lower() for step in steps)
        alike = [found for found in columns if tuple(step.lower() for step in found) == wanted]
        if len(alike) != 1:
            raise _unknown(snapshot, path)
        steps = alike[0]
    return column_of(snapshot, columns[steps].id)


def column_of(snapshot: Snapshot, field_id: int) -> IndexedColumn:
    """The column of a field; NoSuchColumn where there is none with the id, or none that can be indexed."""
    for steps, field in _reachable(snapshot.schema.fields, ()):
        if field.id == field_id:
            kind: pa.DataType = pa.struct(list(bound_schema(snapshot.schema)))
            for step in steps:
                kind = kind.field(kind.get_field_index(step)).type
            return IndexedColumn(Column(steps, kind), field_id, _written(steps))
    raise NoSuchColumn(f"there is no column with id {field_id}", uri=snapshot.uri, version=snapshot.version)


def _reachable(fields: Iterable[Field], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    """The fields that are not within lists, each with the names that lead to it."""
    for item in fields:
        steps = (*above, item.name)
        yield steps, item
        if item.logical_type == "struct":
            yield from _reachable(item.children, steps)


def _unknown(snapshot: Snapshot, path: str) -> NoSuchColumn:
    try:
        column_named(path, bound_schema(snapshot.schema))
    except InvalidInput as error:
        return NoSuchColumn(error.message, column=error.column, hint=error.hint)
    return NoSuchColumn(f"{path!r} is known of rows, but not stored, so it cannot be indexed", column=path)


def _steps(path: str) -> tuple[str, ...]:
    """The names in a dotted path; two backticks within a name between backticks mean one."""
    names = re.findall(r"`((?:[^`]|``)*)`(?:\.|$)|([^.]*)(?:\.|$)", path)
    # The pattern matches nothing once more at the end, unless that is where a name should be.
    names = names if path.endswith(".") or len(names) == 1 else names[:-1]
    return tuple(quoted.replace("``", "`") if quoted else plain for quoted, plain in names)


def path_of_field(schema: Schema, field_id: int) -> str | None:
    """The dotted path of a field, names with dots or backticks in them between backticks; None if unknown.

    >>> inner = Field("y.z", "int8", id=2)
    >>> path_of_field(Schema((Field("A b", "struct", id=1, children=(inner,)),)), 2)
    'A b.`y.z`'
    """
    steps = _steps_to(schema.fields, field_id)
    return None if steps is None else _written(steps)


def _steps_to(fields: tuple[Field, ...], field_id: int) -> tuple[str, ...] | None:
    for item in fields:
        if item.id == field_id:
            return (item.name,)
        below = _steps_to(item.children, field_id)
        if below is not None:
            return (item.name, *below)
    return None


def _written(steps: tuple[str, ...]) -> str:
    """A path as users write it; that of one name is the name as it is."""
    return steps[0] if len(steps) == 1 else ".".join(map(_quoted, steps))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`" if "." in name or "`" in name else name


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
        raise IndexExists(f"index {name!r} exists over another column", hint="choose another name")
    if taken and not replace:
        raise IndexExists(f"index {name!r} exists", hint="choose another name, or use replace=True")
