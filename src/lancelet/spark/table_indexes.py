"""Indexes through the table object: segments built by tasks of Spark, committed together, kept up to date, dropped."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from lancelet.dataset.index_request import kind_of_request
from lancelet.format.indexes import IndexMetadata
from lancelet.ops.index.create import commit_create_index, plan_create_index
from lancelet.ops.index.describe import described_indexes, indexed_fragments, live_rows
from lancelet.ops.index.drop import drop_index
from lancelet.ops.index.optimize import OptimizeRequest, commit_optimize, plan_optimize
from lancelet.ops.job import Plan, Result
from lancelet.spark.frames import parallelism
from lancelet.spark.jobs import Job, Made, committed
from lancelet.spark.row_changes import PATIENCE
from lancelet.spark.table_core import TableCore
from lancelet.table.outcome import Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["IndexFigures", "TableIndexes", "bounded"]

#: Rows that are worth a segment of their own, and what a task holds at most where nothing else is said.
_ROWS, _MEMORY = 2**20, 512 * 2**20
_INDEXES = (
    "name string, type string, columns array<string>, num_segments long, num_rows_indexed long, "
    "num_rows_unindexed long, size_bytes long"
)


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """What was built: the version that it made (the one that is, if there was nothing to do), and how much is in it."""

    version: int
    names: tuple[str, ...]
    num_segments: int
    num_rows: int
    num_bytes: int
    num_attempts: int
    #: From the call to the commit, and what all tasks of the last attempt took together.
    seconds: float


class _UpToDate(Exception):
    """There is nothing to do."""


class TableIndexes(TableCore):
    """What concerns indexes. Segments cover groups of fragments; each is built by a task."""

    def createIndex(
        self,
        column: str,
        indexType: str = "BTREE",
        name: str | None = None,
        *,
        replace: bool = True,
        segments: int | None = None,
        parameters: Mapping[str, object] | None = None,
        message: str | None = None,
    ) -> IndexFigures:
        """Index a column; scans whose filters ask for values of it read the index instead of the column from then on.

        ``segments`` is how many tasks build it, at most one for each fragment; by default one for each million rows,
        as many as run at once. Types and their ``parameters`` are those of ``LanceDataset.create_scalar_index``.

            table.createIndex("label", "BITMAP")
        """
        handle = self._writable()
        kind, said = kind_of_request(indexType, dict(parameters or {}))

        def attempt(job: Job, snapshot: Snapshot) -> tuple[Outcome, tuple[IndexMetadata, ...]]:
            plan = plan_create_index(
                bounded(snapshot),
                column,
                kind,
                name=name,
                replace=replace,
                segments=segments or min(parallelism(handle.spark), _wanted(snapshot)),
                parameters=said,
            )
            made = job.run(plan)
            job.journal.committing()
            return commit_create_index(snapshot, _results(plan, made), job.options), made

        return self._figures(
            committed(
                handle.spark,
                handle.address,
                "index",
                attempt,
                attempts=PATIENCE,
                progress=handle.progress,
                message=message,
            )
        )

    def optimizeIndices(
        self,
        indexNames: Sequence[str] | None = None,
        *,
        numIndicesToMerge: int = 1,
        retrain: bool = False,
        message: str | None = None,
    ) -> IndexFigures:
        """Put rows into indexes that were written after them: a task for each index that is not up to date.

        New rows are merged with an index's last segment, or its last ``numIndicesToMerge``; with 0 they get a segment
        of their own. ``retrain`` builds each index anew. Nothing is committed where all are up to date.
        """
        handle = self._writable()
        request = OptimizeRequest(numIndicesToMerge, None if indexNames is None else tuple(indexNames), retrain)

        def attempt(job: Job, snapshot: Snapshot) -> tuple[Outcome, tuple[IndexMetadata, ...]]:
            plan = plan_optimize(bounded(snapshot), request)
            if not plan.tasks:
                raise _UpToDate
            made = job.run(plan)
            job.journal.committing()
            return commit_optimize(snapshot, plan, _results(plan, made), job.options), made

        try:
            made = committed(
                handle.spark,
                handle.address,
                "optimize indexes",
                attempt,
                attempts=PATIENCE,
                progress=handle.progress,
                message=message,
            )
        except _UpToDate:
            return IndexFigures(self.version, (), 0, 0, 0, 1, 0.0)
        return self._figures(made)

    def dropIndex(self, name: str) -> int:
        """Drop an index, and return the version without it. Its files stay for older versions, until a cleanup."""
        return drop_index(self._writable().address.open(), name).version

    def indexes(self) -> DataFrame:
        """The indexes: name, type, columns, and how many rows they cover and do not cover."""
        snapshot = self._snapshot()
        total = snapshot.count_rows() or 0
        rows = [
            (
                item.name,
                item.label,
                list(item.columns),
                len(item.segments),
                item.rows,
                total - item.rows,
                item.size_bytes,
            )
            for item in described_indexes(snapshot)
        ]
        return self.sparkSession.createDataFrame(rows, _INDEXES)

    def _figures(self, made: Made[tuple[IndexMetadata, ...]]) -> IndexFigures:
        snapshot = replace(self._handle.address, version=made.committed.version).open()
        return IndexFigures(
            made.committed.version,
            tuple(sorted({item.name for item in made.value})),
            len(made.value),
            sum(live_rows(snapshot, indexed_fragments(item)) for item in made.value),
            sum(file.size_bytes for item in made.value for file in item.files),
            made.attempts,
            made.seconds,
        )


def _wanted(snapshot: Snapshot) -> int:
    """How many segments the rows are worth."""
    return max(1, int(snapshot.manifest.fragments.physical_rows().sum()) // _ROWS)


def bounded(snapshot: Snapshot) -> Snapshot:
    """The snapshot with no more memory for each task than a Python worker has, who is not alone on its machine."""
    if "LANCELET_MEMORY_BUDGET" in os.environ:
        return snapshot
    budget = min(snapshot.options.memory_budget, _MEMORY)
    return replace(snapshot, options=snapshot.options.with_(memory_budget=budget))


def _results(plan: Plan[IndexMetadata], made: Sequence[IndexMetadata]) -> list[Result[IndexMetadata]]:
    return [Result(task.id, value) for task, value in zip(plan.tasks, made, strict=True)]
