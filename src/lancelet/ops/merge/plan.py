"""Plans of merges: a request held against a table and the columns of a source. Pure; no row is looked at."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr import Column, Expr, parse_filter
from lancelet.expr.tree import TRUE, walk
from lancelet.format.arrow import schema_from_arrow, schema_to_arrow
from lancelet.format.blobs import is_blob_v1, is_blob_v2
from lancelet.format.fields import Field, Schema
from lancelet.format.manifest import data_version
from lancelet.format.versions import FileVersion
from lancelet.ops.blob_input import is_marked_blob
from lancelet.ops.data_files import check_version
from lancelet.ops.destinations import chosen_bases
from lancelet.ops.fitting import fitting
from lancelet.ops.merge.request import Matched, MergeRequest, WriteMode
from lancelet.query.request import bound_schema
from lancelet.table.snapshot import Snapshot

__all__ = ["SOURCE", "TARGET", "MergePlan", "plan_merge"]

#: How conditions name the two sides.
SOURCE, TARGET = "source", "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """What is read, compared and written."""

    request: MergeRequest
    read_version: int
    #: The columns of the key, each a column or a field inside structs.
    keys: tuple[Column, ...]
    #: The table's fields, those of them that the source has, and the names of the top-level columns that it lacks.
    schema: Schema
    given: Schema
    missing: tuple[str, ...]
    #: The columns of the source, as they are put aside.
    source: pa.Schema
    #: Over ``source`` and ``target``; None for no condition.
    condition: Expr | None
    #: Which rows of the table go where the source does not have them; None for none.
    unmatched: Expr | None
    #: The columns of the table that the condition looks at.
    looked_at: tuple[str, ...]
    mode: WriteMode
    version: FileVersion
    targets: tuple[int | None, ...]

    @property
    def acts_on_matched(self) -> bool:
        """Whether rows on both sides are changed."""
        return self.request.matched in (Matched.UPDATE, Matched.DELETE)


def plan_merge(snapshot: Snapshot, source: pa.Schema, request: MergeRequest) -> MergePlan:
    """How a source of some columns is merged into a version of a table."""
    schema = snapshot.schema
    keys = _keys(snapshot, request)
    found = schema_from_arrow(source)
    given = fitting(schema, found, updates_only=not request.insert)
    for key in keys:
        if not any(item.name == key.path[0] for item in given.fields):
            raise InvalidInput(f"the source lacks column {key.path[0]!r} of the key", column=key.path[0])
    missing = tuple(item.name for item in schema.fields if not _is_given(item, given))
    condition = _condition(snapshot, given, request)
    version = data_version(snapshot.manifest)
    if request.data_storage_version is not None:
        version = FileVersion.parse(request.data_storage_version)
    check_version(version, schema)
    bases = snapshot.manifest.base_paths
    return MergePlan(
        request=request,
        read_version=snapshot.version,
        keys=keys,
        schema=schema,
        given=given,
        missing=missing,
        source=_source_schema(given, found),
        condition=condition,
        unmatched=_unmatched(snapshot, request),
        looked_at=_looked_at(condition),
        mode=_mode(request, given, keys, missing),
        version=version,
        targets=chosen_bases(bases, request.target_bases, request.target_all_bases, own=snapshot.uri),
    )


def _keys(snapshot: Snapshot, request: MergeRequest) -> tuple[Column, ...]:
    names = request.on or _primary_key(snapshot.schema)
    if not names:
        hint = "name the columns of the key, or mark a primary key in the table's schema"
        raise InvalidInput("the merge has no key", uri=snapshot.uri, hint=hint)
    arrow = schema_to_arrow(snapshot.schema)
    return tuple(_key(name, arrow, snapshot) for name in names)


def _key(name: str, schema: pa.Schema, snapshot: Snapshot) -> Column:
    path = (name,) if name in schema.names else tuple(name.split("."))
    kind: pa.DataType = pa.struct(list(schema))
    for step in path:
        place = kind.get_field_index(step) if pa.types.is_struct(kind) else -1
        if place < 0:
            hint = f"there are: {', '.join(schema.names)}"
            raise InvalidInput(f"there is no column {name!r} for the key", uri=snapshot.uri, column=name, hint=hint)
        kind = kind.field(place).type
    return Column(path, kind)


def _primary_key(schema: Schema) -> tuple[str, ...]:
    marked = [item for item in schema.fields if item.primary_key]
    return tuple(item.name for item in sorted(marked, key=lambda item: (item.primary_key_position, item.id)))


def _is_given(item: Field, given: Schema) -> bool:
    """Whether the source has all of a column: where it has a part, the rest is the table's."""
    return item in given.fields


def _source_schema(given: Schema, found: Schema) -> pa.Schema:
    """The columns of the source with the types of the table; blobs as the source has them."""
    known = {item.name: item for item in found.fields}
    arrow = schema_to_arrow(given)
    fields = []
    for item, field in zip(given.fields, arrow, strict=True):
        if any(is_blob_v2(inner) or is_marked_blob(inner) or is_blob_v1(inner) for inner in item.walk()):
            fields.append(schema_to_arrow(Schema((known[item.name],))).field(0))
        else:
            fields.append(pa.field(field.name, field.type, metadata=field.metadata))
    return pa.schema(fields)


def _condition(snapshot: Snapshot, given: Schema, request: MergeRequest) -> Expr | None:
    if request.condition is None or not isinstance(request.condition, str):
        return request.condition
    target = bound_schema(snapshot.schema)
    sides = pa.schema(
        [
            pa.field(SOURCE, pa.struct(list(schema_to_arrow(given))), False),
            pa.field(TARGET, pa.struct(list(target)), False),
        ]
    )
    return parse_filter(request.condition, sides)


def _looked_at(condition: Expr | None) -> tuple[str, ...]:
    if condition is None:
        return ()
    paths = [node.path for node in walk(condition) if isinstance(node, Column)]
    return tuple(dict.fromkeys(path[1] for path in paths if path[0] == TARGET and len(path) > 1))


def _unmatched(snapshot: Snapshot, request: MergeRequest) -> Expr | None:
    wanted = request.delete_unmatched
    if isinstance(wanted, bool):
        return TRUE if wanted else None
    return parse_filter(wanted, bound_schema(snapshot.schema)) if isinstance(wanted, str) else wanted


def _mode(request: MergeRequest, given: Schema, keys: tuple[Column, ...], missing: tuple[str, ...]) -> WriteMode:
    if request.write_mode is not WriteMode.REWRITE_COLUMNS:
        return WriteMode.REWRITE_ROWS
    own = {key.path[0] for key in keys}
    reasons = {
        "it puts rows in": request.insert,
        "it does not update matched rows": request.matched is not Matched.UPDATE,
        "it deletes rows that the source lacks": request.deletes_unmatched,
        "the source has all columns": not missing,
        "the source has no column besides the key": all(item.name in own for item in given.fields),
        "the source has blobs": any(is_blob_v1(item) or is_blob_v2(item) for item in given.walk()),
    }
    for reason, holds in reasons.items():
        if holds:
            hint = "leave the write mode to lancelet, or rewrite rows"
            raise InvalidInput(f"the merge cannot rewrite columns: {reason}", hint=hint)
    return WriteMode.REWRITE_COLUMNS
