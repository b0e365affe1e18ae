"""Writing rows: a table made, rows put behind those there are, or all rows replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.arrow import schema_from_arrow, schema_to_arrow
from lancelet.format.fields import Schema
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import BasePath, data_version
from lancelet.format.names import NamingScheme
from lancelet.format.transaction import Transaction
from lancelet.format.versions import DEFAULT_VERSION, FileVersion
from lancelet.ops.blob_input import table_schema
from lancelet.ops.committing import CommitOptions, commit_transaction, tidy_up
from lancelet.ops.data_files import Destination, Limits, Rows, WriteProgress, batches_of, check_version, discard
from lancelet.ops.data_files import write_fragments as write_files
from lancelet.ops.destinations import base_uris, chosen_bases, destinations
from lancelet.ops.fitting import conformed, fitting
from lancelet.ops.prefetch import ahead_of
from lancelet.storage.store import Store
from lancelet.table.commit import create_table
from lancelet.table.outcome import Committed, Conflict, Outcome
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
    "transaction_of",
]


class Mode(Enum):
    """What becomes of the rows there are."""

    CREATE = "create"
    APPEND = "append"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What is to be written, and how. Pure, and pickles: any process may write some of the rows."""

    mode: Mode
    #: The table's schema afterwards.
    schema: Schema
    #: The fields that files get: all, but for an append of fewer columns.
    stored: Schema
    version: FileVersion
    limits: Limits = field(default_factory=Limits)
    stable_row_ids: bool = False
    #: All base paths of the table, and the ids of those that new files go to in turn; None for the table's own folder.
    bases: tuple[BasePath, ...] = ()
    targets: tuple[int | None, ...] = (None,)
    #: For a new table: entries of its config, and how its manifests are named.
    config: Mapping[str, str] = field(default_factory=dict, hash=False)
    naming: NamingScheme = NamingScheme.V2


def plan_create(
    schema: pa.Schema,
    *,
    data_storage_version: str | FileVersion = DEFAULT_VERSION,
    stable_row_ids: bool = False,
    limits: Limits | None = None,
    bases: Sequence[BasePath] = (),
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    config: Mapping[str, str] | None = None,
    naming: NamingScheme = NamingScheme.V2,
) -> WritePlan:
    """A new table of an Arrow schema. Base paths without an id are numbered from 1.

    >>> plan = plan_create(pa.schema({"x": pa.int8()}), data_storage_version="2.1")
    >>> plan.mode.value, plan.version.label, plan.schema.fields[0].id
    ('create', '2.1', 0)
    """
    version = FileVersion.parse(data_storage_version)
    made = table_schema(schema_from_arrow(schema), version)
    check_version(version, made)
    known = tuple(replace(item, id=item.id or place) for place, item in enumerate(bases, 1))
    return WritePlan(
        mode=Mode.CREATE,
        schema=made,
        stored=made,
        version=version,
        limits=limits or Limits(),
        stable_row_ids=stable_row_ids,
        bases=known,
        targets=chosen_bases(known, target_bases, target_all_bases),
        config=dict(config or {}),
        naming=naming,
    )


def plan_overwrite(
    snapshot: Snapshot,
    schema: pa.Schema,
    *,
    data_storage_version: str | FileVersion | None = None,
    limits: Limits | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
) -> WritePlan:
    """All rows and columns of a table replaced; files are of the table's version unless another is given."""
    version = (
        data_version(snapshot.manifest) if data_storage_version is None else FileVersion.parse(data_storage_version)
    )
    made = table_schema(schema_from_arrow(schema), version)
    allocated = snapshot.manifest.max_allocated_field_id
    if allocated is not None:
        # The table says that ids of fields are never used again.
        made = made.with_ids(allocated + 1)
    check_version(version, made)
    known = snapshot.manifest.base_paths
    return WritePlan(
        mode=Mode.OVERWRITE,
        schema=made,
        stored=made,
        version=version,
        limits=limits or Limits(),
        bases=known,
        targets=chosen_bases(known, target_bases, target_all_bases, own=snapshot.uri),
    )


def plan_append(
    snapshot: Snapshot,
    schema: pa.Schema,
    *,
    data_storage_version: str | FileVersion | None = None,
    limits: Limits | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
) -> WritePlan:
    """Rows behind those there are; InvalidInput where they do not fit the table's columns.

    Another version than the table's is that of the new files alone.
    """
    stored = fitting(snapshot.schema, schema_from_arrow(schema))
    usual = data_version(snapshot.manifest)
    version = usual if data_storage_version is None else FileVersion.parse(data_storage_version)
    if (version is FileVersion.V0_1) != (usual is FileVersion.V0_1):
        raise InvalidInput(
            f"files of version {version.label} cannot stand beside those of {usual.label}", uri=snapshot.uri
        )
    check_version(version, stored)
    known = snapshot.manifest.base_paths
    return WritePlan(
        mode=Mode.APPEND,
        schema=snapshot.schema,
        stored=stored,
        version=version,
        limits=limits or Limits(),
        bases=known,
        targets=chosen_bases(known, target_bases, target_all_bases, own=snapshot.uri),
    )


def run_write(
    plan: WritePlan, store: Store, rows: Rows, *, progress: WriteProgress | None = None
) -> tuple[Fragment, ...]:
    """Write the data files. Nothing of them can be seen before :func:`commit_write`."""
    batches = batches_of(rows, plan.limits.rows_per_batch)
    if isinstance(rows, pa.RecordBatchReader):
        batches = ahead_of(batches)
    arrow = schema_to_arrow(plan.stored)
    return tuple(
        write_files(
            _places(plan, store),
            plan.stored,
            plan.version,
            conformed(batches, arrow),
            plan.limits,
            bases=base_uris(plan.bases),
            progress=progress,
        )
    )


def _places(plan: WritePlan, store: Store) -> tuple[Destination, ...]:
    return destinations(store, plan.bases, plan.targets)


def transaction_of(
    plan: WritePlan,
    fragments: Sequence[Fragment],
    *,
    read_version: int = 0,
    properties: Mapping[str, str] | None = None,
) -> Transaction:
    """What commits the files that were written: from a version of the table, or, from 0, as a new table."""
    made = tuple(fragments)
    operation: op.Operation = op.Append(made)
    if plan.mode is not Mode.APPEND:
        bases = plan.bases if plan.mode is Mode.CREATE else ()
        operation = op.Overwrite(made, plan.schema, config=plan.config, initial_bases=bases)
    return Transaction(read_version, operation, properties=dict(properties or {}))


def commit_write(
    plan: WritePlan,
    target: Store | Snapshot,
    fragments: Sequence[Fragment],
    *,
    message: str | None = None,
    options: CommitOptions | None = None,
) -> Outcome:
    """Make what was written a version: of the table that a snapshot is of, or of a new one in a store."""
    given = options or CommitOptions(message=message)
    properties = given.all_properties()
    if isinstance(target, Snapshot):
        made = transaction_of(plan, fragments, read_version=target.version, properties=properties)
        version = None if plan.mode is Mode.APPEND else plan.version
        return commit_transaction(target, made, given, data_version=version)
    outcome = create_table(
        target,
        transaction_of(plan, fragments, properties=properties),
        stable_row_ids=plan.stable_row_ids,
        data_version=plan.version,
        scheme=plan.naming,
        commit_lock=given.commit_lock,
    )
    if isinstance(outcome, Committed):
        tidy_up(target, outcome.manifest, plan.naming)
    return outcome


def _write(plan: WritePlan, target: Store | Snapshot, rows: Rows, message: str | None) -> Outcome:
    store = target.store if isinstance(target, Snapshot) else target
    fragments = run_write(plan, store, rows)
    outcome = commit_write(plan, target, fragments, message=message)
    if isinstance(outcome, Conflict):
        # Nobody will commit these files any more.
        discard(_places(plan, store), [file for item in fragments for file in item.files])
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
