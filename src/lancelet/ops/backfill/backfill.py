"""Backfills: what is left to be done for each fragment, the tasks that do it, and one commit.

Where others commit meanwhile, the work done stays good for every fragment of which the rows and the columns looked
at are the same: only rows that are new, or lie elsewhere since, are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lancelet.config import Options
from lancelet.format import operations as op
from lancelet.format.fragments import TOMBSTONE, DataFile, Fragment
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.backfill.checkpoint import Checkpoint
from lancelet.ops.backfill.fields import NewFields
from lancelet.ops.backfill.filled import Filled, SourceKeys, fits, renumbered
from lancelet.ops.backfill.task import BackfillTask
from lancelet.ops.backfill.values import Values
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions, commit_operation
from lancelet.ops.data_files import discard
from lancelet.ops.executor import run_plan
from lancelet.ops.job import Cost, Plan, Task, gather
from lancelet.ops.working import TASK_BYTES, AtVersion, bytes_of, grouped, selected
from lancelet.query.stored import open_fragment
from lancelet.storage.store import Store
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["PATIENT", "BackfillPlan", "backfill", "backfill_once", "commit_backfill", "merge_columns", "plan_backfill"]

#: A backfill may take hours, after which a commit of others is no reason to give up.
PATIENT = Attempts(20, math.inf)


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """The tasks, what they make of the schema, and the fragments that are done already."""

    fields: NewFields
    plan: Plan[tuple[Filled, ...]]
    done: tuple[Filled, ...] = ()


def plan_backfill(
    snapshot: Snapshot,
    values: Values,
    *,
    done: Iterable[Filled] = (),
    checkpoint: Checkpoint | None = None,
    fragments: Sequence[int] | None = None,
    task_bytes: int = TASK_BYTES,
) -> BackfillPlan:
    """What is left to be done. ``done`` are fragments of an attempt before, from this version or one before it."""
    fields = values.fields(snapshot)
    keys = SourceKeys(snapshot.schema, values.request(snapshot), values.key(), fields)
    known: dict[int, Filled] = dict(checkpoint.filled(snapshot.store)) if checkpoint is not None else {}
    known.update((item.fragment, item) for item in done)
    wanted = selected(snapshot, fragments) if fields.stored.fields else []
    kept, left = _kept(snapshot, known, wanted, keys)
    tasks = tuple(
        BackfillTask(
            f"columns of fragments from {group[0].id}",
            _cost(group, fields),
            AtVersion.of(snapshot),
            group,
            values,
            fields,
            checkpoint,
        )
        for group in grouped(left, task_bytes)
    )
    plan = Plan("backfill", snapshot.version, tasks)
    return BackfillPlan(fields, plan, tuple(renumbered(item, fields) for item in kept))


def _kept(
    snapshot: Snapshot, known: Mapping[int, Filled], fragments: Iterable[Fragment], keys: SourceKeys
) -> tuple[list[Filled], list[Fragment]]:
    """Of the fragments those that are done, and the others."""
    places = Places.of(snapshot)
    kept, left = [], []
    for item in fragments:
        before = known.get(item.id)
        if before is not None and fits(before, item, keys.of(item, before.physical_rows), places):
            kept.append(before)
        else:
            left.append(item)
    return kept, left


def _cost(fragments: Sequence[Fragment], fields: NewFields) -> Cost:
    size = sum(map(bytes_of, fragments))
    return Cost(bytes_read=size, bytes_written=size, requests=len(fragments) * (1 + len(fields.stored.fields)))


def commit_backfill(
    snapshot: Snapshot, fields: NewFields, filled: Iterable[Filled], *, options: CommitOptions | None = None
) -> Outcome:
    """Make the new columns of all fragments a version. After a conflict the files are there still: plan again."""
    return commit_operation(snapshot, merge_columns(snapshot, fields, filled), options)


def merge_columns(snapshot: Snapshot, fields: NewFields, filled: Iterable[Filled]) -> op.Merge:
    """The operation that puts files beside those of fragments; files without any field left are gone."""
    made = {item.fragment: item for item in filled}
    kept = {item.id for item in fields.schema.walk()}
    places = Places.of(snapshot)
    fragments = []
    for item in snapshot.manifest.fragments:
        files = tuple(file for file in item.files if any(n in kept or n < TOMBSTONE for n in file.fields))
        new = made.get(item.id)
        if new is not None and new.file is not None:
            files = (*files, new.file)
        rows = item.physical_rows or (new.physical_rows if new else open_fragment(places, item).physical_rows)
        fragments.append(replace(item, files=files, physical_rows=rows))
    return op.Merge(tuple(fragments), fields.schema, preserves_nullability=fields.may_miss)


@dataclass(frozen=True, slots=True)
class _Noting:
    """A task of this process, whose results are noted at once: another that fails must not leave their files behind."""

    task: Task[tuple[Filled, ...]]
    notes: list[Filled]

    @property
    def id(self) -> str:
        return self.task.id

    @property
    def cost(self) -> Cost:
        return self.task.cost

    def run(self, store: Store) -> tuple[Filled, ...]:
        found = self.task.run(store)
        self.notes.extend(found)
        return found


def _carry_out(plan: BackfillPlan, snapshot: Snapshot, values: Values, notes: list[Filled]) -> None:
    """Carry the tasks out; ``notes`` gets what they have done, also where one of them fails."""
    options: Options = snapshot.options
    if values.serial:
        options = options.with_(threads=1)
    noting = replace(plan.plan, tasks=tuple(_Noting(task, notes) for task in plan.plan.tasks))
    gather(noting, run_plan(noting, snapshot.store, options=options, progress=False))


def backfill(
    snapshot: Snapshot,
    values: Values,
    *,
    checkpoint: Checkpoint | None = None,
    attempts: Attempts = PATIENT,
    options: CommitOptions | None = None,
) -> Committed:
    """Put columns in with computed values, and commit them on top of what others commit meanwhile.

    With a checkpoint, what is done when that fails stays, for the next call with the same one.

    >>> import pyarrow as pa
    >>> from lancelet.ops.backfill.values import Expressions
    >>> from lancelet.ops.write import create
    >>> from lancelet.query.scan import scan
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://backfilled")
    >>> made = create(store, pa.table({"x": [1, 2]}))
    >>> backfill(open_snapshot(store), Expressions((("double", "x * 2"),))).version
    2
    >>> scan(open_snapshot(store)).read_all().to_pydict()
    {'x': [1, 2], 'double': [2, 4]}
    """
    done: list[Filled] = []
    useless: list[DataFile] = []

    def attempt(current: Snapshot) -> tuple[Outcome, None]:
        plan = plan_backfill(current, values, done=tuple(done), checkpoint=checkpoint)
        good = {item.fragment for item in plan.done}
        useless.extend(_files(item for item in done if item.fragment not in good))
        done[:] = plan.done
        try:
            _carry_out(plan, current, values, done)
        except BaseException:
            if checkpoint is None:
                discard(current.store, [*useless, *_files(done)])
            raise
        return commit_backfill(current, plan.fields, done, options=options), None

    try:
        committed, _, _ = until_committed(snapshot, attempt, attempts)
    except NOT_COMMITTED:
        if checkpoint is None:
            discard(snapshot.store, [*useless, *_files(done)])
        raise
    discard(snapshot.store, useless)
    if checkpoint is not None:
        checkpoint.clear(snapshot.store)
    return committed


def backfill_once(snapshot: Snapshot, values: Values, *, options: CommitOptions | None = None) -> Outcome:
    """One attempt. Files that did not come into the table are removed."""
    plan = plan_backfill(snapshot, values)
    made: list[Filled] = []
    try:
        _carry_out(plan, snapshot, values, made)
    except BaseException:
        discard(snapshot.store, _files(made))
        raise
    try:
        outcome = commit_backfill(snapshot, plan.fields, made, options=options)
    except NOT_COMMITTED:
        discard(snapshot.store, _files(made))
        raise
    if isinstance(outcome, Conflict):
        discard(snapshot.store, _files(made))
    return outcome


def _files(filled: Iterable[Filled]) -> list[DataFile]:
    return [item.file for item in filled if item.file is not None]
