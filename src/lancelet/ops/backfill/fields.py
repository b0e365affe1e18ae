"""New fields of a table: behind those there are, or within structs that are there, numbered and checked. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.blobs import is_blob_v1, is_blob_v2
from lancelet.format.fields import Field, Schema
from lancelet.format.manifest import data_version
from lancelet.format.versions import FileVersion
from lancelet.ops.blob_input import table_schema
from lancelet.ops.data_files import check_version
from lancelet.table.snapshot import Snapshot

__all__ = ["NewFields", "check_parts", "new_fields", "next_field_id"]

#: Metadata of a schema that tells of one data frame, not of the table.
_OF_FRAMES = ("pandas",)


@dataclass(frozen=True, slots=True)
class NewFields:
    """The fields that new files get, and the table's schema with them."""

    schema: Schema
    stored: Schema
    version: FileVersion
    #: Whether rows without values for the fields fit the schema: those that others write at the same time.
    may_miss: bool


def next_field_id(snapshot: Snapshot) -> int:
    """The id for the next new field: above those of the schema, of columns in files, and of any that are reserved."""
    manifest = snapshot.manifest
    held = (number for item in manifest.fragments for file in item.files for number in file.fields)
    highest = max((item.id for item in manifest.schema.walk()), default=-1)
    return max(highest, max(held, default=-1), manifest.max_allocated_field_id or -1) + 1


def new_fields(snapshot: Snapshot, schema: pa.Schema) -> NewFields:
    """New columns behind those there are, and new fields behind those of structs; InvalidInput for a name taken."""
    version = data_version(snapshot.manifest)
    made = table_schema(schema_from_arrow(schema), version)
    merging = _Merging(count(next_field_id(snapshot)))
    fields, stored = merging.merged(snapshot.schema.fields, made.fields, -1, "")
    new = Schema(stored)
    check_version(version, new)
    check_parts(version, snapshot.schema, new)
    metadata = {key: value for key, value in made.metadata.items() if key not in _OF_FRAMES}
    whole = replace(snapshot.schema, fields=fields, metadata={**metadata, **snapshot.schema.metadata})
    return NewFields(whole, new, version, all(item.nullable for item in merging.added))


def check_parts(version: FileVersion, schema: Schema, stored: Schema) -> None:
    """Unsupported where a new file of an old version would hold some fields of a struct that another file has."""
    known = {item.id for item in schema.fields}
    for item in stored.fields:
        if item.id in known and version < FileVersion.V2_1:
            found = f"fields of a struct lie in one file in version {version.label}"
            raise Unsupported(found, column=item.name, hint="write the rows into a new table of version 2.1 or later")


class _Merging:
    """Fields put into a tree of fields."""

    def __init__(self, ids: Iterator[int]) -> None:
        self._ids = ids
        #: The fields that nothing of was there.
        self.added: list[Field] = []

    def merged(
        self, fields: Sequence[Field], new: Sequence[Field], parent: int, path: str
    ) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        """The fields with the new ones, and of those what files are to hold."""
        places = {item.name: place for place, item in enumerate(fields)}
        whole, stored = list(fields), []
        for item in new:
            where = f"{path}{item.name}"
            if item.name not in places:
                self.added.append(item)
                made = self._numbered(item, parent)
                whole.append(made)
                stored.append(made)
                continue
            old = fields[places[item.name]]
            if not (_is_open(old) and _is_open(item)):
                raise InvalidInput(f"there is a column {where!r} already", column=where)
            children, held = self.merged(old.children, item.children, old.id, f"{where}.")
            whole[places[item.name]] = replace(old, children=children)
            if held:
                stored.append(replace(old, children=held))
        return tuple(whole), tuple(stored)

    def _numbered(self, item: Field, parent: int) -> Field:
        own = next(self._ids)
        return replace(
            item, id=own, parent_id=parent, children=tuple(self._numbered(child, own) for child in item.children)
        )


def _is_open(item: Field) -> bool:
    """Whether fields can be put into a field."""
    return item.logical_type == "struct" and not is_blob_v1(item) and not is_blob_v2(item)
