"""Committing writes: one transaction for what all tasks wrote, looked for where its answer was lost, files settled."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID, uuid5

from lancelet.errors import AlreadyExists, LanceletError, NotFound, Storage
from lancelet.errors import Conflict as ConflictError
from lancelet.format.fragments import Fragment
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions, commit_transaction, tidy_up
from lancelet.ops.journal import REMOVING, JobJournal, claim_fate
from lancelet.ops.write import Mode, WritePlan, plan_append, transaction_of
from lancelet.spark.writing import JOB, Writing, Written
from lancelet.storage.store import Store
from lancelet.table.commit import create_table
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["LEASE", "commit_writing", "discard_writing"]

#: Seconds after which a job without a sign of life is taken for dead where no process lives as long as the job.
LEASE = 86_400.0
#: Seconds after which the store is asked again what became of a commit; twice as many each further time.
_FIRST_WAIT = 0.2
_NAMESPACE = UUID("6f0c7a56-27a5-4c5e-9d60-1f1f0a6f3a11")


def commit_writing(
    writing: Writing,
    written: Sequence[Written],
    *,
    journal: JobJournal | None = None,
    store: Store | None = None,
    looks: int = 6,
) -> Committed:
    """Make what tasks have written a version; what attempts wrote that were not needed is removed.

    AlreadyExists or Conflict where it cannot be made, after which nothing of it is left. Where the store does not
    even say what became of it, asked so many times, its error; and the files stay until a cleanup has looked.
    """
    store = store or writing.address.store()
    told = journal or JobJournal(store, "write", lease=LEASE, job=writing.job)
    told.committing()
    try:
        outcome = _committed(writing, written, store, looks)
    except NOT_COMMITTED:
        told.close(used=())
        raise
    ours = outcome.transaction.properties.get(JOB) == writing.job
    # Another attempt at the same may have been faster: then none of these files is needed.
    told.close(used=[item.attempt for item in written] if ours else ())
    return outcome


def _committed(writing: Writing, written: Sequence[Written], store: Store, looks: int) -> Committed:
    fragments = [fragment for item in written for fragment in item.fragments]
    if not writing.exists:
        outcome = _settled(lambda: _create(writing, fragments, store), writing, store, looks)
        if isinstance(outcome, Committed):
            return outcome
        # Somebody made the table meanwhile: rows are put behind theirs, or replace them.
    snapshot = _read_version(writing, store)
    plan = writing.plan if writing.exists else _for_table_of_others(writing, snapshot)
    outcome = _settled(lambda: _commit(writing, plan, fragments, snapshot), writing, store, looks)
    if isinstance(outcome, Conflict):
        raise outcome.error(store.uri)
    return outcome


def _read_version(writing: Writing, store: Store) -> Snapshot:
    try:
        return open_snapshot(store, version=writing.address.version)
    except NotFound:
        found = "the version that the write was planned from was cleaned up meanwhile"
        raise ConflictError(found, uri=store.uri, version=writing.address.version, retryable=True) from None


def _for_table_of_others(writing: Writing, snapshot: Snapshot) -> WritePlan:
    """The plan for a table that another made while the rows for a new one were written."""
    if writing.asked is Mode.CREATE:
        raise AlreadyExists("another has made a table here meanwhile", uri=snapshot.uri, version=snapshot.version)
    if writing.asked is Mode.APPEND and plan_append(snapshot, writing.target).stored != writing.plan.stored:
        found = "another has made a table with other columns here meanwhile"
        raise AlreadyExists(found, uri=snapshot.uri, version=snapshot.version)
    return replace(writing.plan, mode=writing.asked)


def _options(writing: Writing) -> CommitOptions:
    return CommitOptions(message=writing.message, properties=writing.properties)


def _create(writing: Writing, fragments: Sequence[Fragment], store: Store) -> Outcome:
    plan = writing.plan
    made = transaction_of(plan, fragments, properties=_options(writing).all_properties())
    outcome = create_table(
        store,
        replace(made, uuid=_uuid(writing)),
        stable_row_ids=plan.stable_row_ids,
        data_version=plan.version,
        scheme=plan.naming,
    )
    if isinstance(outcome, Committed):
        tidy_up(store, outcome.manifest, plan.naming)
    return outcome


def _commit(writing: Writing, plan: WritePlan, fragments: Sequence[Fragment], snapshot: Snapshot) -> Outcome:
    options = _options(writing)
    made = transaction_of(plan, fragments, read_version=snapshot.version, properties=options.all_properties())
    version = None if plan.mode is Mode.APPEND else plan.version
    return commit_transaction(snapshot, replace(made, uuid=_uuid(writing)), options, data_version=version)


def _uuid(writing: Writing) -> str:
    # The same each time the commit is tried: one that is in already is found by it.
    return str(uuid5(_NAMESPACE, writing.same or writing.job))


def _settled(commit: Callable[[], Outcome], writing: Writing, store: Store, looks: int) -> Outcome:
    """The outcome of a commit, asked for again where the store failed: the transaction's id tells whether it is in."""
    wait = _FIRST_WAIT
    for look in range(looks):
        try:
            outcome = commit()
        except Storage as error:
            if look == looks - 1 or not error.retryable:
                raise error.where(hint="the commit may or may not have been made; look before trying again") from None
            time.sleep(wait)
            wait *= 2
            continue
        if isinstance(outcome, Conflict) and not writing.exists and (mine := _made_by_us(writing, store)) is not None:
            return mine
        return outcome
    raise NotFound("the commit was never tried", uri=store.uri)


def _made_by_us(writing: Writing, store: Store) -> Committed | None:
    """The first version of the table, if it is this job's: a lost answer looks like another's success."""
    try:
        first = open_snapshot(store, version=1)
    except LanceletError:
        return None
    transaction = first.transaction()
    if transaction is None or transaction.uuid != _uuid(writing):
        return None
    return Committed(first.manifest, transaction)


def discard_writing(writing: Writing, *, journal: JobJournal | None = None, store: Store | None = None) -> None:
    """Remove what the tasks of a write that failed have written, unless its commit was begun: then nobody knows."""
    store = store or writing.address.store()
    told = journal or JobJournal(store, "write", lease=LEASE, job=writing.job)
    if claim_fate(store, writing.job, REMOVING) == REMOVING:
        # Entries of attempts stay, because tasks that were told to stop may write yet.
        told.close(used=())
