"""Committing a compaction: ids for the new fragments, the indexes that go along, and one version with all of that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

from lancelet.errors import InvalidInput, Unsupported
from lancelet.events import emit
from lancelet.format import operations as op
from lancelet.format.fragment_reuse import ReuseHistory, ReuseVersion
from lancelet.format.fragments import Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.index.system.reuse import group_of, read_reuse_history, reuse_index, reuse_metadata
from lancelet.ops.attempts import Attempts
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions, commit_operation
from lancelet.ops.compaction.indexes import moved_indexes
from lancelet.ops.compaction.plan import coverage_of
from lancelet.ops.compaction.task import Compacted
from lancelet.ops.data_files import Destination, discard
from lancelet.ops.executor import run_plan
from lancelet.ops.index.segments import discard_segment, stable_row_ids
from lancelet.ops.job import Plan
from lancelet.rows.bitmaps import BitMap
from lancelet.rows.moves import Move
from lancelet.storage.store import Store
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["CompactionCommit", "commit_compaction", "discard_compacted", "refuse_deferred"]

#: Who carries out the tasks that write indexes anew, and returns what they bring in the plan's order.
Remapping: TypeAlias = Callable[[Plan[op.RewrittenIndex]], Sequence[op.RewrittenIndex]]


@dataclass(frozen=True, slots=True)
class CompactionCommit:
    """What became of results: the version that has them, and those whose fragments others changed meanwhile."""

    outcome: Outcome
    taken: tuple[Compacted, ...]
    overtaken: tuple[Compacted, ...] = ()


@dataclass(frozen=True, slots=True)
class _Manner:
    """How a commit is made."""

    options: CommitOptions | None
    run: Remapping | None
    before: Callable[[], None] | None


def refuse_deferred(snapshot: Snapshot) -> None:
    """Raise where nobody can be told of rows that move: where rows have stable ids, and by newer ways of telling."""
    if stable_row_ids(snapshot):
        raise Unsupported(
            "indexes of a table whose rows have stable ids cannot be left as they are",
            uri=snapshot.uri,
            hint="compact without defer_index_remap: most indexes there need no rewriting",
        )
    told = reuse_index(snapshot.indexes())
    if told is not None and (told.index_version or 0) > 0:
        found = f"the fragment reuse index is of version {told.index_version}, which is not written"
        raise Unsupported(found, uri=snapshot.uri, hint="bring indexes up to date first (optimize_indices)")


def commit_compaction(
    snapshot: Snapshot,
    results: Sequence[Compacted],
    *,
    defer_index_remap: bool = False,
    partial: bool = False,
    attempts: Attempts | None = None,
    options: CommitOptions | None = None,
    run: Remapping | None = None,
    before: Callable[[], None] | None = None,
) -> CompactionCommit:
    """Make what tasks wrote a version, on top of all that others committed beside it.

    A result counts as long as its fragments are what they were when they were read, whatever else has happened.
    Where they are not, nothing is committed, but with ``partial`` the results that still count. Files of a conflict
    stay: who has results may commit those that still count. ``run`` carries out the tasks that write indexes anew,
    on threads if nothing is said; ``before`` is called when all is written, and the commit comes next.
    """
    _check_distinct(results)
    reserved: dict[int, int] = {}
    given = attempts or Attempts()
    number = 0
    while True:
        number += 1
        current = open_snapshot(snapshot.store, options=snapshot.options)
        coverage = coverage_of(current)
        counts = [_unchanged(current, item) and _undivided(coverage, item) for item in results]
        alive = [item for item, there in zip(results, counts, strict=True) if there]
        stale = tuple(item for item, there in zip(results, counts, strict=True) if not there)
        if not alive or (stale and not partial):
            reason = "fragments were changed that were being compacted"
            return CompactionCommit(Conflict(True, current.version, "another commit", reason), (), stale)
        outcome = _attempt(current, alive, reserved, _Manner(options, run, before), defer=defer_index_remap)
        if isinstance(outcome, Committed) or not outcome.retryable or number > given.retries:
            for item in stale:
                emit("compaction.overtaken", uri=snapshot.uri, fragments=[one.id for one in item.original])
            return CompactionCommit(outcome, tuple(alive), stale)
        emit("operation.again", uri=snapshot.uri, attempt=number, version=outcome.version, reason=outcome.reason)


def _attempt(
    current: Snapshot,
    results: Sequence[Compacted],
    reserved: dict[int, int],
    manner: _Manner,
    *,
    defer: bool,
) -> Outcome:
    if defer:
        refuse_deferred(current)
    current = _reserve(current, results, reserved, manner.options)
    numbered = [tuple(replace(one, id=reserved[id(one)]) for one in item.new) for item in results]
    moves = [item.move(tuple(one.id for one in new)) for item, new in zip(results, numbered, strict=True)]
    groups = tuple(
        op.RewriteGroup(_now(current, item.original), new) for item, new in zip(results, numbered, strict=True)
    )
    todo = moved_indexes(current, results, moves, defer=defer)
    rewritten = _on_threads(current, todo.plan) if manner.run is None else manner.run(todo.plan)
    written = [item.new_id for item in rewritten]
    try:
        reuse = _told(current, moves) if todo.deferred else None
        written += [] if reuse is None else [reuse.uuid]
        if manner.before is not None:
            manner.before()
        outcome = commit_operation(
            current,
            op.Rewrite(groups, tuple(rewritten)),
            manner.options,
            reuse_index=reuse,
            index_coverage=dict(todo.coverage),
        )
    except NOT_COMMITTED:
        _discard_segments(current.store, written)
        raise
    if isinstance(outcome, Conflict):
        _discard_segments(current.store, written)
    return outcome


def _on_threads(current: Snapshot, plan: Plan[op.RewrittenIndex]) -> list[op.RewrittenIndex]:
    return [item.value for item in run_plan(plan, current.store, options=current.options, progress=False)]


def _reserve(
    current: Snapshot, results: Sequence[Compacted], reserved: dict[int, int], options: CommitOptions | None
) -> Snapshot:
    """Give every new fragment an id that nobody else gets, by a commit of its own; those that have one keep it."""
    missing = [one for item in results for one in item.new if id(one) not in reserved]
    if not missing:
        return current
    lock = None if options is None else options.commit_lock
    outcome = commit_operation(current, op.ReserveFragments(len(missing)), CommitOptions(commit_lock=lock))
    if isinstance(outcome, Conflict):
        raise outcome.error(current.uri)
    last = outcome.manifest.max_fragment_id or 0
    for number, one in zip(range(last - len(missing) + 1, last + 1), missing, strict=True):
        reserved[id(one)] = number
    return open_snapshot(current.store, version=outcome.version, options=current.options)


def _told(current: Snapshot, moves: Iterable[Move]) -> IndexMetadata:
    """The fragment reuse index with what moves now behind what moved before."""
    before = reuse_index(current.indexes())
    history = ReuseHistory()
    if before is not None:
        if (before.index_version or 0) > 0:
            refuse_deferred(current)
        history = read_reuse_history(*Places.of(current).index(before), before)
    new = ReuseVersion(current.version, tuple(map(group_of, moves)))
    told = ReuseHistory((*history.versions, new))
    return reuse_metadata(current.store, told, version=current.version, created_at=int(time.time() * 1000))


def _now(current: Snapshot, fragments: Iterable[Fragment]) -> tuple[Fragment, ...]:
    """Fragments as the version has them."""
    known = current.manifest.fragments
    return tuple(known[known.place_of(item.id) or 0] for item in fragments)


def _unchanged(current: Snapshot, result: Compacted) -> bool:
    """Whether the rows that were read are still all that there is in their fragments, and where it is."""
    known = current.manifest.fragments
    for item in result.original:
        place = known.place_of(item.id)
        if place is None or _contents(known[place]) != _contents(item):
            return False
    return True


def _undivided(coverage: Sequence[BitMap], result: Compacted) -> bool:
    """Whether each index covers all that was put together, or nothing of it: also one that was made meanwhile."""
    own = BitMap([item.id for item in result.original])
    return all(own <= known or not own & known for known in coverage)


def _contents(item: Fragment) -> tuple[object, ...]:
    """What says which rows and values a fragment has."""
    deleted = item.deletion_file
    return (
        tuple((file.path, file.fields, file.column_indices, file.base_id) for file in item.files),
        None if deleted is None else (deleted.kind, deleted.read_version, deleted.id),
        item.overlays,
    )


def _check_distinct(results: Sequence[Compacted]) -> None:
    seen: set[int] = set()
    for item in results:
        for fragment in item.original:
            if fragment.id in seen:
                found = f"fragment {fragment.id} is replaced by more than one result"
                raise InvalidInput(found, fragment=fragment.id, hint="commit one result of each task")
            seen.add(fragment.id)


def discard_compacted(store: Store, results: Iterable[Compacted]) -> None:
    """Remove the files of results that nobody will commit."""
    for item in results:
        discard([Destination(store)], [file for one in item.new for file in one.files])


def _discard_segments(store: Store, uuids: Iterable[UUID]) -> None:
    for uuid in uuids:
        discard_segment(store, uuid)
