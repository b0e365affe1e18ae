"""Stored rows of one fragment: its files opened, the deletions read, and columns of tables put together from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelet.encodings.shape import Shape
from lancelet.errors import Corrupt
from lancelet.file.data_file import DataFile as OpenFile
from lancelet.file.data_file import open_file
from lancelet.file.legacy import LegacyFile
from lancelet.file.opening import open_table_legacy
from lancelet.file.shapes import is_stored_as_one, shapes_of
from lancelet.format.arrow import field_to_arrow, schema_to_arrow
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.versions import FileVersion
from lancelet.rows.deletions import DeletionVector
from lancelet.table.deletions import deletions_of
from lancelet.table.paths import Places

__all__ = ["Part", "StoredFragment", "column_of", "deletions_of", "open_fragment", "present"]


@dataclass(frozen=True, slots=True)
class Part:
    """What one file holds of the columns asked for: some of the fields, whole or in part."""

    file: OpenFile | LegacyFile
    fields: tuple[Field, ...]
    shapes: tuple[Shape, ...]
    arrow: pa.Schema


@dataclass(frozen=True, slots=True)
class StoredFragment:
    """A fragment open for reading some columns: one part for each file that has any."""

    fragment: Fragment
    parts: tuple[Part, ...]
    physical_rows: int
    deleted: DeletionVector


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


def open_fragment(places: Places, schema: Schema, fragment: Fragment) -> StoredFragment:
    """Open those files of a fragment that hold anything of a schema; Corrupt where their rows are not as many."""
    parts = tuple(part for item in fragment.files if (part := _open_part(places, schema, item)) is not None)
    rows = fragment.physical_rows
    if rows is None:
        rows = parts[0].file.num_rows if parts else _rows_of(places, fragment)
    for part in parts:
        if part.file.num_rows != rows:
            found = f"the file has {part.file.num_rows} rows, its fragment {rows}"
            raise Corrupt(found, uri=part.file.uri, fragment=fragment.id)
    return StoredFragment(fragment, parts, rows, deletions_of(places, fragment, physical_rows=rows))


def _open_part(places: Places, schema: Schema, item: DataFile) -> Part | None:
    legacy = item.version is FileVersion.V0_1
    pairs = zip(item.fields, item.fields if legacy else item.column_indices, strict=True)
    columns = {number: column for number, column in pairs if number >= 0}
    held = frozenset(columns)
    fields = tuple(found for top in schema.fields if (found := present(top, held)) is not None)
    if not fields:
        return None
    store, path = places.data_file(item)
    stored = Schema(fields)
    file: OpenFile | LegacyFile
    if legacy:
        file = open_table_legacy(store, path, schema=stored, field_ids=item.fields)
    else:
        file = open_file(store, path, size=item.file_size)
    arrow = schema_to_arrow(stored)
    return Part(file, fields, tuple(shapes_of(stored, arrow, columns)), arrow)


def _rows_of(places: Places, fragment: Fragment) -> int:
    if not fragment.files:
        raise Corrupt(
            f"fragment {fragment.id} has no files and does not say how many rows it has", fragment=fragment.id
        )
    store, path = places.data_file(fragment.files[0])
    return open_file(store, path, size=fragment.files[0].file_size).num_rows


def column_of(field: Field, found: Sequence[tuple[Field, pa.ChunkedArray]], rows: int) -> pa.ChunkedArray:
    """A column from what each file holds of it; nulls where no file holds anything."""
    arrow = field_to_arrow(field)
    if not found:
        return pa.chunked_array([pa.nulls(rows, arrow.type)], arrow.type)
    if len(found) == 1 and found[0][0] == field:
        return found[0][1]
    pieces = [(held, column.combine_chunks()) for held, column in found]
    whole = _combined(field, [(held, _flat(array)) for held, array in pieces], rows)
    return pa.chunked_array([whole], arrow.type)


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
