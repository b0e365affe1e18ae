"""Compacting a table: planned, carried out on threads, committed; again where others were faster with the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lancelet.events import emit
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions
from lancelet.ops.compaction.commit import CompactionCommit, commit_compaction, discard_compacted, refuse_deferred
from lancelet.ops.compaction.options import CompactionOptions
from lancelet.ops.compaction.plan import plan_compaction
from lancelet.ops.compaction.task import Compacted
from lancelet.ops.executor import run_plan
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["Compaction", "Figures", "compact_files", "figures_of"]


@dataclass(frozen=True, slots=True)
class Figures:
    """How much a compaction took away and put in its place. Files of deleted rows count as files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


@dataclass(frozen=True, slots=True)
class Compaction:
    """What became of a compaction; without a commit where there was nothing to do."""

    committed: Committed | None
    figures: Figures


def figures_of(results: Iterable[Compacted]) -> Figures:
    """What results take away and add.

    >>> figures_of([])
    Figures(fragments_removed=0, fragments_added=0, files_removed=0, files_added=0)
    """
    found = list(results)
    old = [one for item in found for one in item.original]
    new = [one for item in found for one in item.new]
    return Figures(
        len(old),
        len(new),
        sum(len(one.files) + (one.deletion_file is not None) for one in old),
        sum(len(one.files) for one in new),
    )


def compact_files(
    snapshot: Snapshot,
    options: CompactionOptions | None = None,
    *,
    attempts: Attempts | None = None,
    commit_options: CommitOptions | None = None,
) -> Compaction:
    """Write fragments anew that need it. Fragments that others change meanwhile stay as they are.

    >>> import pyarrow as pa
    >>> from lancelet.ops.write import append, create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://compacted")
    >>> made = create(store, pa.table({"x": [1]}))
    >>> made = append(open_snapshot(store), pa.table({"x": [2]}))
    >>> compact_files(open_snapshot(store)).figures
    Figures(fragments_removed=2, fragments_added=1, files_removed=2, files_added=1)
    """
    given = options or CompactionOptions()
    if given.defer_index_remap:
        refuse_deferred(snapshot)

    def attempt(current: Snapshot) -> tuple[Outcome, tuple[Compacted, ...]]:
        done = _once(current, given, attempts, commit_options)
        return done.outcome, done.taken

    emit("compaction.start", uri=snapshot.uri, version=snapshot.version)
    try:
        committed, taken, _ = until_committed(snapshot, attempt, attempts)
    except _NothingToDo:
        return Compaction(None, Figures())
    return Compaction(committed, figures_of(taken))


class _NothingToDo(Exception):
    """There is no task."""


def _once(
    current: Snapshot, given: CompactionOptions, attempts: Attempts | None, options: CommitOptions | None
) -> CompactionCommit:
    plan = plan_compaction(current, given)
    if not plan.tasks:
        raise _NothingToDo
    working = current.options if given.num_threads is None else current.options.with_(threads=given.num_threads)
    results = [item.value for item in run_plan(plan, current.store, options=working)]
    try:
        done = commit_compaction(
            current,
            results,
            defer_index_remap=given.defer_index_remap,
            partial=True,
            attempts=attempts,
            options=options,
        )
    except NOT_COMMITTED:
        discard_compacted(current.store, results)
        raise
    discard_compacted(current.store, done.overtaken if isinstance(done.outcome, Committed) else results)
    return done
