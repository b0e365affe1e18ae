"""Writing from any source into any table: plan, run and commit in one call, cleaned up where it does not succeed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lancelet.errors import AlreadyExists
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import BasePath
from lancelet.format.names import NamingScheme
from lancelet.format.transaction import Transaction
from lancelet.format.versions import DEFAULT_VERSION, FileVersion
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions
from lancelet.ops.data_files import Limits, Rows, WriteProgress, discard
from lancelet.ops.destinations import destinations
from lancelet.ops.sources import Source, reader_of
from lancelet.ops.write import (
    Mode,
    WritePlan,
    commit_write,
    plan_append,
    plan_create,
    plan_overwrite,
    run_write,
    transaction_of,
)
from lancelet.storage.store import Store
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot, find_latest, open_snapshot

__all__ = ["WriteOptions", "write", "write_uncommitted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How rows are written. What is for new tables alone says nothing of tables that are there."""

    limits: Limits = field(default_factory=Limits)
    #: The version of data files; None for the table's, or the newest stable one.
    data_storage_version: str | FileVersion | None = None
    #: For a new table.
    stable_row_ids: bool = False
    naming: NamingScheme = NamingScheme.V2
    config: Mapping[str, str] = field(default_factory=dict, hash=False)
    bases: tuple[BasePath, ...] = ()
    #: Base paths that data files go to in turn, by name or path; or all, with the table's own folder or without.
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None
    commit: CommitOptions = field(default_factory=CommitOptions)
    attempts: Attempts = field(default_factory=Attempts)


def write(
    target: Store | Snapshot,
    source: Source,
    mode: Mode | str = Mode.CREATE,
    *,
    schema: pa.Schema | None = None,
    options: WriteOptions | None = None,
    progress: WriteProgress | None = None,
) -> Committed:
    """Write rows into a table and commit them; where there is none, also appending and overwriting make it.

    ``schema`` is that of sources which do not tell their own. AlreadyExists where a table to be made is there.

    >>> from lancelet.storage import open_store
    >>> store = open_store("memory://written")
    >>> write(store, {"x": [1, 2]}).version, write(store, [{"x": 3}], "append").version
    (1, 2)
    """
    given = options or WriteOptions()
    rows = _rows(source, schema)
    place, plan = _planned(target, rows.schema, Mode(mode), given)
    store = place.store if isinstance(place, Snapshot) else place
    fragments = run_write(plan, store, rows, progress=progress)
    try:
        return _committed(place, plan, fragments, rows.schema, given)
    except NOT_COMMITTED:
        places = destinations(store, plan.bases, plan.targets)
        discard(places, [file for item in fragments for file in item.files])
        raise


def write_uncommitted(
    target: Store | Snapshot,
    source: Source,
    mode: Mode | str = Mode.APPEND,
    *,
    schema: pa.Schema | None = None,
    options: WriteOptions | None = None,
    progress: WriteProgress | None = None,
) -> tuple[Transaction, tuple[Fragment, ...]]:
    """Write the files alone; returns what would commit them, and the new fragments.

    >>> from lancelet.storage import open_store
    >>> transaction, fragments = write_uncommitted(open_store("memory://unseen"), {"x": [1, 2]}, "create")
    >>> type(transaction.operation).__name__, fragments[0].physical_rows
    ('Overwrite', 2)
    """
    given = options or WriteOptions()
    rows = _rows(source, schema)
    place, plan = _planned(target, rows.schema, Mode(mode), given)
    store, version = (place.store, place.version) if isinstance(place, Snapshot) else (place, 0)
    fragments = run_write(plan, store, rows, progress=progress)
    properties = given.commit.all_properties()
    return transaction_of(plan, fragments, read_version=version, properties=properties), fragments


def _rows(source: Source, schema: pa.Schema | None) -> Rows:
    # Rows in memory are written as they are; only streams are read ahead.
    return source if isinstance(source, pa.Table | pa.RecordBatch) else reader_of(source, schema)


def _planned(
    target: Store | Snapshot, schema: pa.Schema, mode: Mode, given: WriteOptions
) -> tuple[Store | Snapshot, WritePlan]:
    """The plan, and the snapshot or store that it is for."""
    if not isinstance(target, Snapshot):
        there = find_latest(target)
        if there is not None:
            target = open_snapshot(target)
    if not isinstance(target, Snapshot):
        return target, plan_create(
            schema,
            data_storage_version=given.data_storage_version or DEFAULT_VERSION,
            stable_row_ids=given.stable_row_ids,
            limits=given.limits,
            bases=given.bases,
            target_bases=given.target_bases,
            target_all_bases=given.target_all_bases,
            config=given.config,
            naming=given.naming,
        )
    if mode is Mode.CREATE:
        raise _exists(target)
    return target, _plan(target, schema, mode, given)


def _plan(snapshot: Snapshot, schema: pa.Schema, mode: Mode, given: WriteOptions) -> WritePlan:
    return (plan_append if mode is Mode.APPEND else plan_overwrite)(
        snapshot,
        schema,
        data_storage_version=given.data_storage_version,
        limits=given.limits,
        target_bases=given.target_bases,
        target_all_bases=given.target_all_bases,
    )


def _exists(snapshot: Snapshot) -> AlreadyExists:
    return AlreadyExists(
        "there is a table already",
        uri=snapshot.uri,
        version=snapshot.version,
        hint="append to it, overwrite it, or name another place",
    )


def _committed(
    place: Store | Snapshot, plan: WritePlan, fragments: tuple[Fragment, ...], schema: pa.Schema, given: WriteOptions
) -> Committed:
    if not isinstance(place, Snapshot):
        outcome = commit_write(plan, place, fragments, options=given.commit)
        if isinstance(outcome, Committed):
            return outcome
        # Another made the table meanwhile.
        raise _exists(open_snapshot(place))

    def attempt(snapshot: Snapshot) -> tuple[Outcome, None]:
        # The files are written: they serve as long as the newest schema has the same place for them.
        again = plan if snapshot is place else _plan(snapshot, schema, plan.mode, given)
        if again.stored != plan.stored:
            return outcomes[-1], None
        outcomes.append(commit_write(replace(again, targets=plan.targets), snapshot, fragments, options=given.commit))
        return outcomes[-1], None

    outcomes: list[Outcome] = []
    return until_committed(place, attempt, given.attempts)[0]
