"""Writing rows: a table made, rows put behind those there are, or all rows replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import data_version
from lancelet.format.transaction import COMMIT_MESSAGE, Transaction
from lancelet.format.versions import DEFAULT_VERSION, FileVersion
from lancelet.ops.data_files import Limits, Rows, batches_of, check_version, discard, write_fragments
from lancelet.storage.store import Store
from lancelet.table.commit import commit, create_table
from lancelet.table.outcome import Conflict, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = [
    "Mode",
    "WritePlan",
    "append",
    "commit_write",
    "create",
    "fitting",
    "overwrite",
    "plan_append",
    "plan_create",
    "plan_overwrite",
    "run_write",
]


class Mode(Enum):
    """What becomes of the rows there are."""

    CREATE = "create"
    APPEND = "append"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What is to be written, and how. Pure."""

    mode: Mode
    #: The table's schema afterwards.
    schema: Schema
    #: The fields that files get: all, but for an append of fewer columns.
    stored: Schema
    version: FileVersion
    limits: Limits = field(default_factory=Limits)
    stable_row_ids: bool = False


def plan_create(
    schema: pa.Schema,
    *,
    data_storage_version: str | FileVersion = DEFAULT_VERSION,
    stable_row_ids: bool = False,
    limits: Limits | None = None,
) -> WritePlan:
    """A new table of an Arrow schema.

    >>> plan = plan_create(pa.schema({"x": pa.int8()}), data_storage_version="2.1")
    >>> plan.mode.value, plan.version.label, plan.schema.fields[0].id
    ('create', '2.1', 0)
    """
    made, version = schema_from_arrow(schema), FileVersion.parse(data_storage_version)
    check_version(version, made)
    return WritePlan(
        mode=Mode.CREATE,
        schema=made,
        stored=made,
        version=version,
        limits=limits or Limits(),
        stable_row_ids=stable_row_ids,
    )


def plan_overwrite(
    snapshot: Snapshot,
    schema: pa.Schema,
    *,
    data_storage_version: str | FileVersion | None = None,
    limits: Limits | None = None,
) -> WritePlan:
    """All rows and columns of a table replaced; files are of the table's version unless another is given."""
    version = (
        data_version(snapshot.manifest) if data_storage_version is None else FileVersion.parse(data_storage_version)
    )
    made = schema_from_arrow(schema)
    allocated = snapshot.manifest.max_allocated_field_id
    if allocated is not None:
        # The table says that ids of fields are never used again.
        made = made.with_ids(allocated + 1)
    check_version(version, made)
    return WritePlan(mode=Mode.OVERWRITE, schema=made, stored=made, version=version, limits=limits or Limits())


def plan_append(snapshot: Snapshot, schema: pa.Schema, *, limits: Limits | None = None) -> WritePlan:
    """Rows behind those there are; InvalidInput where they do not fit the table's columns."""
    stored = fitting(snapshot.schema, schema_from_arrow(schema))
    version = data_version(snapshot.manifest)
    check_version(version, stored)
    return WritePlan(
        mode=Mode.APPEND, schema=snapshot.schema, stored=stored, version=version, limits=limits or Limits()
    )


def fitting(table: Schema, rows: Schema) -> Schema:
    """The fields of a table that rows have values for; InvalidInput where the rows do not fit.

    Columns may come in any order; those that may be null may be missing.

    >>> table = Schema((Field("a", "int32"), Field("b", "string", nullable=False))).with_ids()
    >>> [item.id for item in fitting(table, Schema((Field("b", "string"),))).fields]
    [1]
    >>> fitting(table, Schema((Field("a", "int64"), Field("b", "string"))))
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: column has type int64, expected int32 [column=a]
    """
    given = {item.name: item for item in rows.fields}
    known = {item.name for item in table.fields}
    extra = [name for name in given if name not in known]
    if extra:
        raise InvalidInput(f"the table has no column {extra[0]!r}", column=extra[0], hint=f"it has: {sorted(known)}")
    for item in table.fields:
        if item.name in given:
            _check_type(item, given[item.name], item.name)
        elif not item.nullable:
            raise InvalidInput(f"the rows lack column {item.name!r}, which may not be null", column=item.name)
    return Schema(tuple(item for item in table.fields if item.name in given), table.metadata)


def _check_type(expected: Field, found: Field, path: str) -> None:
    if found.logical_type != expected.logical_type:
        raise InvalidInput(f"column has type {found.logical_type}, expected {expected.logical_type}", column=path)
    names = [child.name for child in found.children], [child.name for child in expected.children]
    # What the items of lists and maps are called makes no difference.
    if (expected.logical_type == "struct" and names[0] != names[1]) or len(names[0]) != len(names[1]):
        raise InvalidInput(f"column has fields {names[0]}, expected {names[1]}", column=path)
    for inner, other in zip(expected.children, found.children, strict=True):
        _check_type(inner, other, f"{path}.{inner.name}")


def run_write(plan: WritePlan, store: Store, rows: Rows) -> tuple[Fragment, ...]:
    """Write the data files. Nothing of them can be seen before :func:`commit_write`."""
    batches = batches_of(rows, plan.limits.rows_per_batch)
    return tuple(write_fragments(store, plan.stored, plan.version, batches, plan.limits))


def commit_write(
    plan: WritePlan, target: Store | Snapshot, fragments: tuple[Fragment, ...], *, message: str | None = None
) -> Outcome:
    """Make what was written a version: of the table that a snapshot is of, or of a new one in a store."""
    properties: Mapping[str, str] = {} if message is None else {COMMIT_MESSAGE: message}
    if isinstance(target, Snapshot):
        operation: op.Operation = op.Append(fragments)
        if plan.mode is not Mode.APPEND:
            operation = op.Overwrite(fragments, plan.schema)
        version = None if plan.mode is Mode.APPEND else plan.version
        return commit(target, Transaction(target.version, operation, properties=properties), data_version=version)
    made = Transaction(0, op.Overwrite(fragments, plan.schema), properties=properties)
    return create_table(target, made, stable_row_ids=plan.stable_row_ids, data_version=plan.version)


def _write(plan: WritePlan, target: Store | Snapshot, rows: Rows, message: str | None) -> Outcome:
    store = target.store if isinstance(target, Snapshot) else target
    fragments = run_write(plan, store, rows)
    outcome = commit_write(plan, target, fragments, message=message)
    if isinstance(outcome, Conflict):
        # Nobody will commit these files any more.
        discard(store, [file for item in fragments for file in item.files])
    return outcome


def create(
    store: Store,
    rows: Rows,
    *,
    data_storage_version: str | FileVersion = DEFAULT_VERSION,
    stable_row_ids: bool = False,
    limits: Limits | None = None,
    message: str | None = None,
) -> Outcome:
    """Make a table of some rows.

    >>> from lancelet.storage import open_store
    >>> create(open_store("memory://created"), pa.table({"x": [1, 2]})).version
    1
    """
    plan = plan_create(
        rows.schema, data_storage_version=data_storage_version, stable_row_ids=stable_row_ids, limits=limits
    )
    return _write(plan, store, rows, message)


def append(snapshot: Snapshot, rows: Rows, *, limits: Limits | None = None, message: str | None = None) -> Outcome:
    """Put rows behind those there are."""
    plan = plan_append(snapshot, rows.schema, limits=limits)
    return _write(plan, snapshot, rows, message)


def overwrite(
    snapshot: Snapshot,
    rows: Rows,
    *,
    data_storage_version: str | FileVersion | None = None,
    limits: Limits | None = None,
    message: str | None = None,
) -> Outcome:
    """Replace all rows, and the columns with them; versions before stay as they are."""
    plan = plan_overwrite(snapshot, rows.schema, data_storage_version=data_storage_version, limits=limits)
    return _write(plan, snapshot, rows, message)
