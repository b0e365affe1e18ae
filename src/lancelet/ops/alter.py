"""Altering columns: other names, whether they may be null, and other types.

Names and nullability are the manifest's alone. A column of another type is stored anew: it gets a new field id, and a
file beside those of each fragment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.format import operations as op
from lancelet.format.arrow import field_from_arrow
from lancelet.format.blobs import is_blob_v1, is_blob_v2
from lancelet.format.fields import Field, Schema
from lancelet.format.manifest import data_version
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.backfill.backfill import PATIENT, backfill, backfill_once
from lancelet.ops.backfill.casts import Path, cast_requests, cast_rows, null_at
from lancelet.ops.backfill.fields import NewFields, check_parts, next_field_id
from lancelet.ops.columns import check_names
from lancelet.ops.committing import CommitOptions, commit_operation
from lancelet.ops.data_files import check_version
from lancelet.query.count import count_request
from lancelet.query.request import ScanRequest, bound_schema
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["Alteration", "Casts", "alter_columns", "cast_column"]


@dataclass(frozen=True, slots=True)
class Alteration:
    """What becomes of the column at a dotted path; None leaves things as they are.

    >>> Alteration("a")
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: nothing is to be altered [column=a]; give a name, nullable, or a data type
    """

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None

    def __post_init__(self) -> None:
        if self.name is None and self.nullable is None and self.data_type is None:
            hint = "give a name, nullable, or a data type"
            raise InvalidInput("nothing is to be altered", column=self.path, hint=hint)
        if self.name is not None and (not self.name or "." in self.name):
            found = f"a column cannot be named {self.name!r}"
            raise InvalidInput(found, column=self.path, hint="give a name without dots")

    def then(self, later: Alteration) -> Alteration:
        """Both, of which the later counts where both say something."""
        return Alteration(
            self.path,
            self.name if later.name is None else later.name,
            self.nullable if later.nullable is None else later.nullable,
            self.data_type if later.data_type is None else later.data_type,
        )


@dataclass(frozen=True, slots=True)
class Casts:
    """Alterations, at least one of them to another type: what gives the columns of those their values."""

    alterations: tuple[Alteration, ...]

    @property
    def serial(self) -> bool:
        """Anybody may cast."""
        return False

    def key(self) -> str:
        """The columns and their types."""
        return json.dumps([(path, str(kind)) for path, kind in self._kinds().items()])

    def _kinds(self) -> dict[Path, pa.DataType]:
        return {tuple(item.path.split(".")): item.data_type for item in self.alterations if item.data_type is not None}

    def fields(self, snapshot: Snapshot) -> NewFields:
        """The schema with all that is altered; the fields of other types are new ones."""
        return _plan(snapshot, self.alterations)

    def request(self, snapshot: Snapshot) -> ScanRequest:
        """The columns to be cast."""
        columns = cast_requests(self._kinds(), bound_schema(snapshot.schema))
        return ScanRequest(columns=columns, batch_size=2**16)

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns as other types, in the structs that they are in."""
        names = {tuple(item.path.split(".")): item.name for item in self.alterations if item.name is not None}
        return cast_rows(batch, self._kinds(), names)


def alter_columns(
    snapshot: Snapshot,
    alterations: Sequence[Alteration],
    *,
    attempts: Attempts = PATIENT,
    options: CommitOptions | None = None,
) -> Committed:
    """Alter columns, all in one commit, on top of what others commit meanwhile.

    >>> from lancelet.ops.write import create
    >>> from lancelet.query.scan import scan
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://altered")
    >>> made = create(store, pa.table({"x": [1, 2]}))
    >>> _ = alter_columns(open_snapshot(store), [Alteration("x", name="y", data_type=pa.int8())])
    >>> scan(open_snapshot(store)).read_all()["y"].type
    DataType(int8)
    """
    casts = [item for item in alterations if item.data_type is not None]
    stricter = [item for item in alterations if item.nullable is False]
    if casts and stricter:
        found = "columns are cast and made non-nullable at one time"
        raise InvalidInput(found, column=stricter[0].path, hint="cast first, then say that there are no nulls")
    if casts:
        return backfill(snapshot, Casts(_merged(alterations)), attempts=attempts, options=options)

    def attempt(current: Snapshot) -> tuple[Outcome, None]:
        fields = _plan(current, _merged(alterations))
        for item in stricter:
            _check_no_nulls(current, item.path)
        operation = op.Project(fields.schema, preserves_nullability=fields.may_miss)
        return commit_operation(current, operation, options), None

    return until_committed(snapshot, attempt, attempts)[0]


def cast_column(snapshot: Snapshot, column: str, kind: pa.DataType, *, message: str | None = None) -> Outcome:
    """Store a column anew as another type, in one attempt; InvalidInput where a value of a live row does not fit."""
    casts = Casts((Alteration(column, data_type=kind),))
    return backfill_once(snapshot, casts, options=CommitOptions(message=message))


def _merged(alterations: Sequence[Alteration]) -> tuple[Alteration, ...]:
    """One alteration for each column."""
    found: dict[str, Alteration] = {}
    for item in alterations:
        before = found.get(item.path)
        found[item.path] = item if before is None else before.then(item)
    return tuple(found.values())


def _plan(snapshot: Snapshot, alterations: Sequence[Alteration]) -> NewFields:
    schema = snapshot.schema
    changes: dict[int, Alteration] = {}
    for item in alterations:
        old = schema.find(item.path)
        if old is None:
            hint = f"there are {[top.name for top in schema.fields]}"
            raise InvalidInput(f"there is no column {item.path!r}", column=item.path, hint=hint)
        if item.data_type is not None:
            _check_cast(snapshot, old, item)
        changes[old.id] = item
    altering = _Altering(changes, next_field_id(snapshot))
    fields = tuple(altering.altered(item, -1) for item in schema.fields)
    check_names(fields, "the table")
    stored = Schema(_only(fields, altering.made))
    if stored.fields:
        version = data_version(snapshot.manifest)
        check_version(version, stored)
        check_parts(version, schema, stored)
    # Rows that others write meanwhile may have nulls, or lack values of the new type.
    may_miss = not stored.fields and all(item.nullable is not False for item in alterations)
    return NewFields(replace(schema, fields=fields), stored, data_version(snapshot.manifest), may_miss)


class _Altering:
    """Alterations being carried out on a tree of fields."""

    def __init__(self, changes: dict[int, Alteration], first: int) -> None:
        self._changes = changes
        self._next: Callable[[], int] = count(first).__next__
        #: Ids of the fields that are new.
        self.made: set[int] = set()

    def altered(self, old: Field, parent: int) -> Field:
        """A field as it is from now on."""
        change = self._changes.get(old.id)
        if change is not None and change.data_type is not None:
            made = self._cast(old, change.data_type, parent)
        else:
            children = tuple(self.altered(child, old.id) for child in old.children)
            check_names(children, repr(old.name))
            made = replace(old, children=children)
        if change is None:
            return made
        nullable = old.nullable if change.nullable is None else change.nullable
        return replace(made, name=change.name or old.name, nullable=nullable)

    def _cast(self, old: Field, kind: pa.DataType, parent: int) -> Field:
        made = field_from_arrow(pa.field(old.name, kind, old.nullable))
        made = self._numbered(replace(made, metadata={**old.metadata, **made.metadata}), parent)
        return replace(
            made,
            primary_key=old.primary_key,
            primary_key_position=old.primary_key_position,
            clustering_key=old.clustering_key,
            clustering_key_position=old.clustering_key_position,
        )

    def _numbered(self, item: Field, parent: int) -> Field:
        own = self._next()
        self.made.add(own)
        children = tuple(self._numbered(child, own) for child in item.children)
        return replace(item, id=own, parent_id=parent, children=children)


def _only(fields: Sequence[Field], ids: set[int]) -> tuple[Field, ...]:
    """The fields with some ids, and those around them."""
    found = []
    for item in fields:
        if item.id in ids:
            found.append(item)
        elif children := _only(item.children, ids):
            found.append(replace(item, children=children))
    return tuple(found)


def _check_cast(snapshot: Snapshot, old: Field, item: Alteration) -> None:
    kind = item.data_type
    if is_blob_v1(old) or is_blob_v2(old) or old.logical_type in ("struct", "map", "json"):
        raise Unsupported(f"a column of type {old.logical_type} is not cast", column=item.path)
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        raise Unsupported(f"no column is cast to {kind}", column=item.path, hint="cast the fields within it")
    around = item.path.split(".")[:-1]
    if any((above := snapshot.schema.find(".".join(around[:depth]))) and above.logical_type != "struct"
           for depth in range(1, len(around) + 1)):  # fmt: skip
        hint = "cast the whole list"
        raise Unsupported("items of lists and maps are not cast by themselves", column=item.path, hint=hint)
    ids = {inner.id for inner in old.walk()}
    names = sorted({index.name for index in snapshot.indexes() if ids.intersection(index.fields)})
    if names:
        hint = "drop the index, cast, and build it again"
        raise InvalidInput(
            f"the column has index {', '.join(names)}, which knows its values", column=item.path, hint=hint
        )


def _check_no_nulls(snapshot: Snapshot, path: str) -> None:
    """InvalidInput where a live row has a null in a column; within a struct that is null there are none."""
    field = snapshot.schema.find(path)
    if field is None or not field.nullable:
        return
    around = path.split(".")[:-1]
    if any((above := snapshot.schema.find(".".join(around[:depth]))) and above.logical_type != "struct"
           for depth in range(1, len(around) + 1)):  # fmt: skip
        raise Unsupported("whether items of lists and maps may be null is not changed", column=path)
    where = null_at(path.split("."), bound_schema(snapshot.schema))
    found = count_request(snapshot, ScanRequest(columns=(), filter=where, use_scalar_index=False))
    if found:
        hint = "give them values, or delete the rows"
        raise InvalidInput(f"{found} rows are null in a column that is to have no nulls", column=path, hint=hint)
