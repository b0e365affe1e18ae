"""From a schema to the shapes of its columns: which field is stored where, and what a projection leaves of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.shape import Leaf, List, Shape, Struct
from lancelet.errors import InvalidInput
from lancelet.format.fields import Field, Schema
from lancelet.format.versions import FileVersion

__all__ = [
    "column_numbers",
    "is_stored_as_one",
    "project",
    "shapes_of",
    "stored_fields",
    "stored_nodes",
    "stored_paths",
]

_BLOB = "lance-encoding:blob"
_PACKED = ("lance-encoding:packed", "packed")


def is_stored_as_one(field: Field) -> bool:
    """Whether a field, with all below it, is one column: anything but structs, lists and maps, and packed structs."""
    if field.logical_type == "struct":
        packed = any(field.metadata.get(key, "").lower() == "true" for key in _PACKED)
        return packed or _BLOB in field.metadata or not field.children
    return not field.children


def stored_fields(schema: Schema) -> Iterator[Field]:
    """The fields that have a column of their own since 2.1, in column order."""
    for top in schema.fields:
        yield from _stored(top)


def _stored(field: Field) -> Iterator[Field]:
    if is_stored_as_one(field):
        yield field
        return
    for child in field.children:
        yield from _stored(child)


def stored_nodes(schema: Schema) -> Iterator[Field]:
    """The fields that have a column of their own in 2.0, in column order: structs and lists have one too."""
    for top in schema.fields:
        yield from _nodes(top)


def _nodes(field: Field) -> Iterator[Field]:
    yield field
    if not is_stored_as_one(field):
        for child in field.children:
            yield from _nodes(child)


def stored_paths(schema: Schema, version: FileVersion) -> Iterator[tuple[str, Field]]:
    """The field of each column, in column order, with the dotted path that leads to it.

    >>> schema = Schema((Field("l", "list", children=(Field("item", "int32"),)),))
    >>> [path for path, _ in stored_paths(schema, FileVersion.V2_1)]
    ['l.item']
    """
    for top in schema.fields:
        yield from _paths(top, top.name, inner=version is FileVersion.V2_0)


def _paths(field: Field, path: str, *, inner: bool) -> Iterator[tuple[str, Field]]:
    whole = is_stored_as_one(field)
    if whole or inner:
        yield path, field
    for child in () if whole else field.children:
        yield from _paths(child, f"{path}.{child.name}", inner=inner)


def column_numbers(schema: Schema, version: FileVersion) -> dict[int, int]:
    """Column numbers by field id; in 0.1 they are the same.

    >>> schema = Schema((Field("l", "list", children=(Field("item", "int32"),)),)).with_ids()
    >>> column_numbers(schema, FileVersion.V2_0), column_numbers(schema, FileVersion.V2_1)
    ({0: 0, 1: 1}, {1: 0})
    """
    if version is FileVersion.V0_1:
        # The page table is a table of field ids.
        return {field.id: field.id for field in schema.walk()}
    fields = stored_nodes(schema) if version is FileVersion.V2_0 else stored_fields(schema)
    return {field.id: at for at, field in enumerate(fields)}


def shapes_of(schema: Schema, arrow: pa.Schema, columns: Mapping[int, int] | None = None) -> list[Shape]:
    """The shape of each top-level field.

    Columns are numbered in order over the whole schema, unless ``columns`` maps field ids to column numbers.
    """
    numbers = count()
    return [_shape(field, arrow.field(at), columns, numbers) for at, field in enumerate(schema.fields)]


def _shape(field: Field, arrow: pa.Field, columns: Mapping[int, int] | None, numbers: Iterator[int]) -> Shape:
    if is_stored_as_one(field):
        return Leaf(arrow, next(numbers) if columns is None else columns[field.id])
    kind = arrow.type
    own = -1 if columns is None else columns.get(field.id, -1)
    if pat.is_struct(kind):
        return Struct(
            arrow,
            tuple(_shape(child, kind.field(at), columns, numbers) for at, child in enumerate(field.children)),
            own,
        )
    if pat.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return List(arrow, _shape(field.children[0], entries, columns, numbers), own)
    return List(arrow, _shape(field.children[0], kind.value_field, columns, numbers), own)


def project(schema: Schema, paths: Sequence[str]) -> Schema:
    """The fields at dotted paths, in the order of the paths; several paths into one struct give that struct once.

    >>> point = Field("p", "struct", children=(Field("x", "float"), Field("y", "float")))
    >>> [field.name for field in project(Schema((point,)), ["p.y"]).fields[0].children]
    ['y']
    """
    wanted: dict[str, list[tuple[str, ...]]] = {}
    names = {field.name: field for field in schema.fields}
    for path in paths:
        # A name that holds a dot is preferred over a path.
        steps = (path,) if path in names else tuple(path.split("."))
        wanted.setdefault(steps[0], []).append(steps[1:])
    fields = []
    for name, tails in wanted.items():
        if name not in names:
            raise InvalidInput(f"no column {name!r}", column=name, hint=f"columns are: {', '.join(names)}")
        fields.append(_prune(names[name], tails))
    return Schema(tuple(fields), schema.metadata)


def _prune(field: Field, tails: list[tuple[str, ...]]) -> Field:
    if any(not tail for tail in tails):
        return field
    inner = {child.name: child for child in field.children}
    if field.logical_type != "struct" and len(field.children) == 1:
        # Paths may leave the items of lists unnamed.
        item = field.children[0]
        below = [tail[1:] if tail[0] == item.name else tail for tail in tails]
        return replace(field, children=(_prune(item, below),))
    kept: dict[str, list[tuple[str, ...]]] = {}
    for tail in tails:
        if tail[0] not in inner:
            raise InvalidInput(
                f"no field {tail[0]!r} in column {field.name!r}",
                column=field.name,
                hint=f"fields are: {', '.join(inner)}",
            )
        kept.setdefault(tail[0], []).append(tail[1:])
    return replace(
        field, children=tuple(_prune(child, kept[child.name]) for child in field.children if child.name in kept)
    )
