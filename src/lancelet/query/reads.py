"""What expressions read: the stored fields, pruned to the parts that are named, and the columns known of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelet.expr import Call, Column, Expr
from lancelet.file.shapes import is_stored_as_one
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.fields import Field, Schema
from lancelet.query.request import SYSTEM_COLUMNS

__all__ = ["NO_READS", "Reads", "paths_of", "reads_at", "reads_of"]


@dataclass(frozen=True, slots=True)
class Reads:
    """Columns to read together. Pure: where they lie is not known yet."""

    #: Stored fields, in the order of the table, without the parts of structs that nobody asks for.
    schema: Schema
    #: The same to Arrow.
    arrow: pa.Schema
    #: Names of columns that are known of rows.
    system: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.schema.fields or self.system)

    def without(self, fields: Sequence[Field]) -> Reads:
        """The same without some of the stored fields."""
        kept = tuple(item for item in self.schema.fields if item not in fields)
        if len(kept) == len(self.schema.fields):
            return self
        schema = replace(self.schema, fields=kept)
        return Reads(schema, schema_to_arrow(schema), self.system)


#: Nothing is read.
NO_READS = Reads(Schema(()), pa.schema([]), ())


def paths_of(exprs: Iterable[Expr]) -> set[tuple[str, ...]]:
    """The paths of all columns in some expressions.

    >>> paths_of([Column(("s", "x"), pa.int8())])
    {('s', 'x')}
    """
    found: set[tuple[str, ...]] = set()
    waiting = list(exprs)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Column):
            found.add(node.path)
        elif isinstance(node, Call):
            waiting.extend(node.arguments)
    return found


def reads_of(stored: Schema, exprs: Iterable[Expr]) -> Reads:
    """What it takes to compute expressions over a table whose files hold ``stored``.

    >>> point = Field("p", "struct", children=(Field("x", "float"), Field("y", "float")))
    >>> found = reads_of(Schema((point,)), [Column(("p", "y"), pa.float32()), Column(("_rowid",), pa.uint64())])
    >>> found.arrow.field("p").type.names, found.system
    (['y'], ('_rowid',))
    """
    return reads_at(stored, paths_of(exprs))


def reads_at(stored: Schema, paths: set[tuple[str, ...]]) -> Reads:
    """The columns at some paths."""
    tops = {path[0] for path in paths}
    named = [top for top in stored.fields if top.name in tops]
    fields = tuple(item for top in named if (item := _pruned(top, paths, 0)) is not None)
    names = {top.name for top in named}
    system = tuple(name for name in SYSTEM_COLUMNS if (name,) in paths and name not in names)
    schema = Schema(fields, stored.metadata)
    return Reads(schema, schema_to_arrow(schema), system)


def _pruned(field: Field, paths: set[tuple[str, ...]], depth: int) -> Field | None:
    """What paths, all of which lead here so far, ask for of a field; None if nothing."""
    here = {path for path in paths if path[depth] == field.name}
    if not here:
        return None
    if is_stored_as_one(field) or any(len(path) == depth + 1 for path in here):
        return field
    children = (_pruned(child, here, depth + 1) for child in field.children)
    return replace(field, children=tuple(child for child in children if child is not None))
