"""Bringing indexes up to date: rows that none of their segments covers are put in, and segments merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancelet.errors import InvalidInput
from lancelet.events import emit
from lancelet.format import operations as op
from lancelet.format.indexes import IndexMetadata
from lancelet.index.kinds import kind_of
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions, commit_operation
from lancelet.ops.executor import run_plan
from lancelet.ops.index.describe import segments_named
from lancelet.ops.index.merge import MergeSegments, kind_of_segments, merge_task
from lancelet.ops.index.reuse import behind, coverage_now, needed_moves, trimmed_history
from lancelet.ops.index.segments import discard_segment
from lancelet.ops.job import Plan, Result
from lancelet.rows.bitmaps import BitMap
from lancelet.table.index_upkeep import SYSTEM_INDEXES
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["OptimizeRequest", "commit_optimize", "optimize_indexes", "plan_optimize"]


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """What is to be done to which indexes."""

    #: Of each index so many of its last segments are merged with new rows; with 0 these get a segment of their own.
    num_indices_to_merge: int = 1
    #: None for all indexes that this release builds.
    index_names: tuple[str, ...] | None = None
    #: Whether all segments are built anew from the column, as one.
    retrain: bool = False

    def __post_init__(self) -> None:
        if self.num_indices_to_merge < 0:
            raise InvalidInput(f"num_indices_to_merge is {self.num_indices_to_merge}, expected at least 0")


def plan_optimize(snapshot: Snapshot, request: OptimizeRequest) -> Plan[IndexMetadata]:
    """A task for each index that is not up to date, or whose segments are to be merged; maybe none."""
    tasks = []
    for name in _names(snapshot, request):
        task = _task(snapshot, name, request)
        if task is not None:
            tasks.append(task)
    return Plan("optimize indexes", snapshot.version, tuple(tasks))


def _names(snapshot: Snapshot, request: OptimizeRequest) -> list[str]:
    if request.index_names is not None:
        for name in request.index_names:
            kind_of_segments(segments_named(snapshot, name))
        return list(dict.fromkeys(request.index_names))
    names = []
    for item in snapshot.indexes():
        if item.name in SYSTEM_INDEXES or item.name in names:
            continue
        if item.details is None or kind_of(item.details) is None:
            emit("index.not_optimized", index=item.name, uri=snapshot.uri, reason="this release does not build it")
            continue
        names.append(item.name)
    return names


def _task(snapshot: Snapshot, name: str, request: OptimizeRequest) -> MergeSegments | None:
    segments = segments_named(snapshot, name)
    existing = BitMap(snapshot.manifest.fragments.ids().tolist())
    if request.retrain:
        return merge_task(snapshot, name, segments, tuple(existing))
    new = existing - BitMap.union(BitMap(), *coverage_now(snapshot, segments))
    count = request.num_indices_to_merge
    last, late = segments[-count:] if count else (), behind(snapshot, segments)
    chosen = tuple(item for item in segments if item in last or item in late)
    if not new and len(chosen) < 2 and not late:
        return None
    # A segment of its own is made as the last one is.
    return merge_task(snapshot, name, chosen or segments[-1:], tuple(new), like_only=not chosen)


def commit_optimize(
    snapshot: Snapshot,
    plan: Plan[IndexMetadata],
    results: Sequence[Result[IndexMetadata]],
    options: CommitOptions | None = None,
) -> Outcome:
    """Make what the tasks of a plan built a version, in which it stands for the segments that were merged."""
    gone = tuple(
        item for task in plan.tasks if isinstance(task, MergeSegments) and not task.like_only for item in task.segments
    )
    made = tuple(result.value for result in results)
    lasting = [item for item in snapshot.indexes() if item not in gone]
    told, untold = trimmed_history(snapshot, lasting)
    return commit_operation(snapshot, op.CreateIndex((*made, *told), (*gone, *untold)), options)


def optimize_indexes(
    snapshot: Snapshot,
    request: OptimizeRequest | None = None,
    *,
    attempts: Attempts | None = None,
    options: CommitOptions | None = None,
) -> Committed | None:
    """Bring indexes up to date; None where they are. Worked out anew where others moved rows or changed the indexes.

    >>> import pyarrow as pa
    >>> from lancelet.ops.index.create import create_scalar_index
    >>> from lancelet.ops.write import append, create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://optimized")
    >>> made = create(store, pa.table({"x": [3, 1, 2]}))
    >>> made = create_scalar_index(open_snapshot(store), "x", "BTREE")
    >>> made = append(open_snapshot(store), pa.table({"x": [7]}))
    >>> optimize_indexes(open_snapshot(store)).version, optimize_indexes(open_snapshot(store))
    (4, None)
    """
    given = request or OptimizeRequest()
    if not plan_optimize(snapshot, given).tasks and needed_moves(snapshot, snapshot.indexes()) is None:
        return None

    def attempt(current: Snapshot) -> tuple[Outcome, None]:
        plan = plan_optimize(current, given)
        results = run_plan(plan, current.store, options=current.options)
        return _committed(current, plan, results, options), None

    return until_committed(snapshot, attempt, attempts)[0]


def _committed(
    snapshot: Snapshot,
    plan: Plan[IndexMetadata],
    results: Sequence[Result[IndexMetadata]],
    options: CommitOptions | None,
) -> Outcome:
    """Commit, and remove the files where it is certain that no version names them."""
    try:
        outcome = commit_optimize(snapshot, plan, results, options)
    except NOT_COMMITTED:
        _discard(snapshot, results)
        raise
    if isinstance(outcome, Conflict):
        _discard(snapshot, results)
    return outcome


def _discard(snapshot: Snapshot, results: Sequence[Result[IndexMetadata]]) -> None:
    for result in results:
        discard_segment(snapshot.store, result.value.uuid)
