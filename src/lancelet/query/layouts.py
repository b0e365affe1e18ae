"""Layouts: which files of a fragment hold which of the fields asked for, worked out once for all fragments alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelet.encodings.shape import Leaf, Shape
from lancelet.errors import Corrupt
from lancelet.file.shapes import is_stored_as_one, shapes_of
from lancelet.format.arrow import field_to_arrow, schema_to_arrow
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import (
    SPILLED_CREATED_AT,
    SPILLED_LAST_UPDATED_AT,
    SPILLED_ROW_IDS,
    DataFile,
    Fragment,
)
from lancelet.format.versions import FileVersion
from lancelet.query.keys import KeyShapes
from lancelet.query.reads import Reads
from lancelet.query.request import CREATED_AT, LAST_UPDATED_AT, ROW_ID

__all__ = ["FragmentLayout", "Part", "Projection", "column_of", "present"]

_SPILLED = {ROW_ID: SPILLED_ROW_IDS, CREATED_AT: SPILLED_CREATED_AT, LAST_UPDATED_AT: SPILLED_LAST_UPDATED_AT}


@dataclass(frozen=True, slots=True)
class Part:
    """What one file of a fragment, by its place in the list of files, holds of the fields asked for."""

    place: int
    fields: tuple[Field, ...]
    shapes: tuple[Shape, ...]
    #: Whether the file is of version 0.1.
    legacy: bool


@dataclass(frozen=True, slots=True)
class FragmentLayout:
    """Where the columns of a fragment lie."""

    parts: tuple[Part, ...]
    #: For each field asked for the columns that make it: the number of the part, and the place in it.
    sources: tuple[tuple[tuple[int, int], ...], ...]
    #: Whether each field is one of those columns as it is.
    whole: tuple[bool, ...]
    #: Lineage that is a column of a file: the place of the file, and the shape.
    spilled: Mapping[str, tuple[int, Leaf]]


class Projection:
    """Fields to read, and the layouts of fragments met so far: mostly all fragments have one and the same."""

    def __init__(self, reads: Reads, *, as_keys: bool = False) -> None:
        self.reads = reads
        #: Where texts are to be read as keys of their dictionaries, if they have any: how.
        self.keys = KeyShapes() if as_keys else None
        self._layouts: dict[object, FragmentLayout] = {}

    def layout(self, fragment: Fragment) -> FragmentLayout:
        """Where a fragment keeps the fields."""
        files = fragment.files
        if len(files) == 1:
            key: object = (files[0].fields, files[0].column_indices)
        else:
            key = tuple((item.fields, item.column_indices) for item in files)
        found = self._layouts.get(key)
        if found is None:
            found = self._layouts[key] = _layout(self.reads.schema, files)
        return found


def present(field: Field, columns: frozenset[int]) -> Field | None:
    """What a file with columns for some field ids holds of a field; None if nothing.

    >>> point = Field("p", "struct", id=0, children=(Field("x", "float", id=1), Field("y", "float", id=2)))
    >>> found = present(point, frozenset([2]))
    >>> [child.name for child in found.children]
    ['y']
    """
    if is_stored_as_one(field):
        return field if field.id in columns else None
    children = tuple(found for child in field.children if (found := present(child, columns)) is not None)
    return replace(field, children=children) if children else None


def _layout(schema: Schema, files: Sequence[DataFile]) -> FragmentLayout:
    parts = tuple(part for place, item in enumerate(files) if (part := _part(schema, place, item)) is not None)
    sources, whole = [], []
    for top in schema.fields:
        found = tuple(
            (number, at)
            for number, part in enumerate(parts)
            for at, held in enumerate(part.fields)
            if held.id == top.id
        )
        sources.append(found)
        whole.append(len(found) == 1 and parts[found[0][0]].fields[found[0][1]] == top)
    return FragmentLayout(parts, tuple(sources), tuple(whole), _spilled(files))


def _part(schema: Schema, place: int, item: DataFile) -> Part | None:
    # In files of version 0.1 the field ids are the column numbers.
    legacy = item.version is FileVersion.V0_1
    pairs = zip(item.fields, item.fields if legacy else item.column_indices, strict=True)
    columns = {number: column for number, column in pairs if number >= 0}
    held = frozenset(columns)
    fields = tuple(found for top in schema.fields if (found := present(top, held)) is not None)
    if not fields:
        return None
    stored = Schema(fields)
    return Part(place, fields, tuple(shapes_of(stored, schema_to_arrow(stored), columns)), legacy)


def _spilled(files: Sequence[DataFile]) -> dict[str, tuple[int, Leaf]]:
    found = {}
    for place, item in enumerate(files):
        for name, number in _SPILLED.items():
            if number in item.fields:
                column = item.column_indices[item.fields.index(number)]
                found[name] = place, Leaf(pa.field(name, pa.uint64(), nullable=False), column)
    return found


def column_of(field: Field, found: Sequence[tuple[Field, pa.ChunkedArray]], rows: int) -> pa.ChunkedArray:
    """A column from what each file holds of it; nulls where no file holds anything."""
    kind = field_to_arrow(field).type
    if not found:
        return pa.chunked_array([pa.nulls(rows, kind)], kind)
    whole = _combined(field, [(held, _flat(column.combine_chunks())) for held, column in found], rows)
    return pa.chunked_array([whole], kind)


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks else pa.array([], array.type)


def _combined(field: Field, found: Sequence[tuple[Field, pa.Array]], rows: int) -> pa.Array:
    kind = field_to_arrow(field).type
    if not found:
        return pa.nulls(rows, kind)
    if len(found) == 1 and found[0][0] == field:
        return found[0][1]
    if field.logical_type != "struct":
        raise Corrupt(f"the parts of {field.name!r} lie in {len(found)} files, expected them in one", column=field.name)
    children = [
        _combined(
            child,
            [
                (inner, array.field(place))
                for held, array in found
                for place, inner in enumerate(held.children)
                if inner.id == child.id
            ],
            rows,
        )
        for child in field.children
    ]
    # Each file says of every row whether the struct is null.
    missing = np.asarray(found[0][1].is_null())
    mask = pa.array(missing) if missing.any() else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
