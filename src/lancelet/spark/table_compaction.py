"""Compaction through the table object: fragments written anew by tasks of Spark, and the indexes that go along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lancelet.ops.compaction.commit import commit_compaction, discard_compacted, refuse_deferred
from lancelet.ops.compaction.compact import Figures, figures_of
from lancelet.ops.compaction.options import CompactionOptions, options_of
from lancelet.ops.compaction.plan import plan_compaction
from lancelet.ops.compaction.task import Compacted, CompactFragments
from lancelet.spark.jobs import Job, committed
from lancelet.spark.row_changes import PATIENCE
from lancelet.spark.table_core import TableCore
from lancelet.spark.table_indexes import bounded
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["CompactionFigures", "TableCompaction"]

_TASKS = "task string, fragments array<long>, bytes_read long, bytes_written long, memory long"


@dataclass(frozen=True, slots=True)
class CompactionFigures:
    """What was put in the place of what: the version that it made, or the one that is, if there was nothing to do."""

    version: int
    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0
    num_attempts: int = 1
    seconds: float = 0.0


class _NothingToDo(Exception):
    """There is no task."""


class TableCompaction(TableCore):
    """What lays rows out anew."""

    def compact(
        self,
        targetRowsPerFragment: int | None = None,
        *,
        maxBytesPerFile: int | None = None,
        deferIndexRemap: bool | None = None,
        options: Mapping[str, object] | None = None,
        message: str | None = None,
    ) -> CompactionFigures:
        """Put small fragments together, and write those anew of which many rows are deleted: a task for each new one.

        ``options`` are those of ``LanceDataset.optimize.compact_files`` by their names there; what is not said is as
        the table's config has it. Fragments that others change meanwhile stay as they are.

            table.compact(options={"materialize_deletions_threshold": 0.3})
        """
        handle = self._writable()

        def attempt(job: Job, snapshot: Snapshot) -> tuple[Outcome, tuple[Compacted, ...]]:
            given = _options(snapshot, targetRowsPerFragment, maxBytesPerFile, deferIndexRemap, options)
            if given.defer_index_remap:
                refuse_deferred(snapshot)
            plan = plan_compaction(bounded(snapshot), given)
            if not plan.tasks:
                raise _NothingToDo
            results = job.run(plan)
            done = commit_compaction(
                bounded(snapshot),
                results,
                defer_index_remap=given.defer_index_remap,
                partial=True,
                options=job.options,
                run=job.run,
                before=job.journal.committing,
            )
            if isinstance(done.outcome, Committed):
                discard_compacted(snapshot.store, done.overtaken)
            return done.outcome, done.taken

        try:
            made = committed(
                handle.spark,
                handle.address,
                "compact",
                attempt,
                attempts=PATIENCE,
                progress=handle.progress,
                message=message,
            )
        except _NothingToDo:
            return CompactionFigures(self.version)
        return _figures(made.committed.version, figures_of(made.value), made.attempts, made.seconds)

    def compactionTasks(
        self,
        targetRowsPerFragment: int | None = None,
        *,
        maxBytesPerFile: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> DataFrame:
        """What :meth:`compact` would do now, task by task: fragments, and bytes read, written and held."""
        snapshot = bounded(self._snapshot())
        given = _options(snapshot, targetRowsPerFragment, maxBytesPerFile, None, options)
        tasks = [task for task in plan_compaction(snapshot, given).tasks if isinstance(task, CompactFragments)]
        rows = [
            (task.id, _ids(task), task.cost.bytes_read, task.cost.bytes_written, task.cost.memory) for task in tasks
        ]
        return self.sparkSession.createDataFrame(rows, _TASKS)


def _ids(task: CompactFragments) -> Sequence[int]:
    return [item.id for item in task.fragments]


def _options(
    snapshot: Snapshot,
    rows: int | None,
    size: int | None,
    defer: bool | None,
    others: Mapping[str, object] | None,
) -> CompactionOptions:
    named = {"target_rows_per_fragment": rows, "max_bytes_per_file": size, "defer_index_remap": defer}
    said = {name: value for name, value in named.items() if value is not None}
    return options_of(snapshot.manifest.config, {**(others or {}), **said})


def _figures(version: int, found: Figures, attempts: int, seconds: float) -> CompactionFigures:
    return CompactionFigures(
        version,
        found.fragments_removed,
        found.fragments_added,
        found.files_removed,
        found.files_added,
        attempts,
        seconds,
    )
