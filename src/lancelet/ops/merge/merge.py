"""Merging rows into a table: the source read once, as many attempts as conflicts ask for, one commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelet.format import operations as op
from lancelet.format.transaction import Transaction
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions, commit_operation
from lancelet.ops.data_files import discard
from lancelet.ops.merge.carrying_out import MergeResult, MergeStats, run_merge
from lancelet.ops.merge.plan import MergePlan, plan_merge
from lancelet.ops.merge.request import Duplicates, Matched, MergeRequest, WriteMode
from lancelet.ops.merge.rewrite_columns import written_fields
from lancelet.ops.merge.source import MergeSource, gathered
from lancelet.ops.moving import MoveResult, commit_move, field_ids, move_operation
from lancelet.ops.prefetch import ahead_of
from lancelet.ops.sources import Source, reader_of
from lancelet.query.facts import facts_of
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = [
    "Duplicates",
    "Matched",
    "MergeRequest",
    "MergeStats",
    "Merged",
    "WriteMode",
    "commit_merge",
    "merge_insert",
    "merge_uncommitted",
]

#: The share of the memory budget that rows of a source may take before they go to disk.
_SHARE = 8


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of a merge."""

    committed: Committed
    stats: MergeStats


def merge_insert(
    snapshot: Snapshot,
    source: Source,
    request: MergeRequest,
    *,
    schema: pa.Schema | None = None,
    attempts: Attempts | None = None,
    options: CommitOptions | None = None,
) -> Merged:
    """Merge rows into a table by key, worked out anew where others changed the same rows first.

    >>> from lancelet.ops.write import create
    >>> from lancelet.query.scan import scan
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://merged")
    >>> made = create(store, pa.table({"id": [1, 2], "x": ["a", "b"]}))
    >>> stats = merge_insert(open_snapshot(store), {"id": [2, 3], "x": ["B", "C"]}, MergeRequest.upsert(["id"])).stats
    >>> stats.num_updated_rows, stats.num_inserted_rows
    (1, 1)
    >>> scan(open_snapshot(store)).read_all().to_pydict()
    {'id': [1, 2, 3], 'x': ['a', 'B', 'C']}
    """
    with _opened(snapshot, source, request, schema) as (first, rows):

        def attempt(current: Snapshot) -> tuple[Outcome, MergeStats]:
            plan = first if current is snapshot else plan_merge(current, rows.schema, request)
            result = run_merge(plan, current, rows)
            return commit_merge(current, plan, result, options=options), result.stats

        committed, stats, made = until_committed(snapshot, attempt, attempts)
    return Merged(committed, replace(stats, num_attempts=made))


def merge_uncommitted(
    snapshot: Snapshot,
    source: Source,
    request: MergeRequest,
    *,
    schema: pa.Schema | None = None,
    options: CommitOptions | None = None,
) -> tuple[Transaction, MergeStats, MergeResult]:
    """Write the files of a merge alone; returns what would commit it, what it does, and what was written."""
    with _opened(snapshot, source, request, schema) as (plan, rows):
        result = run_merge(plan, snapshot, rows)
    properties = (options or CommitOptions()).all_properties()
    made = Transaction(snapshot.version, _operation(snapshot, plan, result), properties=properties)
    return made, replace(result.stats, num_attempts=1), result


@contextmanager
def _opened(
    snapshot: Snapshot, source: Source, request: MergeRequest, schema: pa.Schema | None
) -> Iterator[tuple[MergePlan, MergeSource]]:
    """The plan, and the source read to its end; what was put aside is removed at the end."""
    reader = reader_of(source, schema)
    plan = plan_merge(snapshot, reader.schema, request)
    batches = reader if isinstance(source, pa.Table | pa.RecordBatch) else ahead_of(reader)
    rows = gathered(plan, batches, most=max(snapshot.options.memory_budget // _SHARE, 2**12))
    try:
        yield plan, rows
    finally:
        rows.close()


def commit_merge(
    snapshot: Snapshot, plan: MergePlan, result: MergeResult, *, options: CommitOptions | None = None
) -> Outcome:
    """Make what was written for a merge a version. Files that did not come into the table are removed."""
    if plan.mode is WriteMode.REWRITE_ROWS:
        moved = MoveResult(result.removed, result.new_fragments)
        fields = _changed_fields(plan)
        return commit_move(snapshot, moved, fields, inserted=result.inserted, options=options, targets=plan.targets)
    try:
        outcome = commit_operation(snapshot, _operation(snapshot, plan, result), options)
    except NOT_COMMITTED:
        _discard_columns(snapshot, result)
        raise
    if isinstance(outcome, Conflict):
        _discard_columns(snapshot, result)
    return outcome


def _discard_columns(snapshot: Snapshot, result: MergeResult) -> None:
    discard(snapshot.store, [item.files[-1] for item in result.patched])


def _changed_fields(plan: MergePlan) -> Sequence[int]:
    return field_ids(plan.schema, [item.name for item in plan.schema.fields])


def _operation(snapshot: Snapshot, plan: MergePlan, result: MergeResult) -> op.Update:
    if plan.mode is WriteMode.REWRITE_ROWS:
        return move_operation(
            MoveResult(result.removed, result.new_fragments), _changed_fields(plan), inserted=result.inserted
        )
    stable = facts_of(snapshot.manifest).stable_row_ids
    return op.Update(
        updated_fragments=result.patched,
        fields_modified=tuple(item.id for item in written_fields(plan).walk()) if result.patched else (),
        mode=op.UpdateMode.REWRITE_COLUMNS,
        updated_offset_bitmaps=dict(result.patched_offsets) if stable else {},
    )
