"""Upkeep through the table object: old versions and files removed by tasks of Spark; clones, their files copied so."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from pyspark.sql import DataFrame

from lancelet.ops.job import Cost, Plan
from lancelet.spark.address import Address
from lancelet.spark.frames import parallelism
from lancelet.spark.jobs import journalled, run_tasks
from lancelet.spark.table_core import TableCore
from lancelet.storage.store import Store
from lancelet.table.cleanup import CleanupPlan, plan_cleanup, run_cleanup
from lancelet.table.cleanup_files import FileKind
from lancelet.table.cleanup_policy import CleanupPolicy
from lancelet.table.clone import (
    Copy,
    DeepClonePlan,
    commit_deep_clone,
    plan_deep_clone,
    refuse_table,
    run_copy,
    shallow_clone,
)

__all__ = ["CopyFiles", "RemoveFiles", "TableUpkeep", "VacuumFigures"]

#: Files that a task removes: one request of most stores.
_FILES = 1000


@dataclass(frozen=True, slots=True)
class VacuumFigures:
    """What a cleanup removed, or in a dry run would remove."""

    dry_run: bool
    num_versions: int
    num_bytes: int
    num_data_files: int
    num_transaction_files: int
    num_index_files: int
    num_deletion_files: int
    #: Why versions stay that are old.
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveFiles:
    """Remove files that no version names any more; once more does no harm."""

    id: str
    cost: Cost
    paths: tuple[str, ...]

    def run(self, store: Store) -> int:
        """Remove them, and say how many they are."""
        store.delete(list(self.paths))
        return len(self.paths)


@dataclass(frozen=True, slots=True)
class CopyFiles:
    """Copy files of a version to the table that is cloned into, whose store it works on; once more does no harm."""

    id: str
    cost: Cost
    source: Address
    copies: tuple[Copy, ...]

    def run(self, store: Store) -> int:
        """Copy them, and say how many bytes they are."""
        plan = DeepClonePlan(self.source.open(), self.copies)
        for copy in self.copies:
            run_copy(plan, copy, store, opener=self.source.opener())
        return plan.total_bytes


class TableUpkeep(TableCore):
    """What concerns files rather than rows."""

    def vacuum(
        self,
        retentionHours: float | None = None,
        *,
        dryRun: bool = False,
        retainVersions: int | None = None,
        deleteUnverified: bool = False,
        errorIfTagged: bool = True,
    ) -> VacuumFigures:
        """Remove versions older than so many hours, and the files that only they need; two weeks if nothing is said.

        With ``retainVersions`` only those before the last so many. Tagged versions and those that branches start from
        stay. ``deleteUnverified`` takes young files, too, that no version names: only where surely nobody is writing.
        """
        handle = self._writable()
        plan = plan_cleanup(
            handle.address.open(), _policy(retentionHours, retainVersions, deleteUnverified, errorIfTagged)
        )
        figures = _vacuumed(plan, dry_run=dryRun)
        if dryRun:
            return figures
        # Versions first, so that none is ever without its files.
        run_cleanup(replace(plan, files=()), opener=handle.address.opener())
        if len(plan.files) <= _FILES:
            plan.snapshot.store.delete([item.path for item in plan.files])
            return figures
        paths = [item.path for item in plan.files]
        tasks = tuple(
            RemoveFiles(f"remove-{start}", Cost(requests=1), tuple(paths[start : start + _FILES]))
            for start in range(0, len(paths), _FILES)
        )
        removal = Plan("vacuum", plan.snapshot.version, tasks)
        run_tasks(handle.spark, removal, handle.address, "vacuum", progress=handle.progress)
        return figures

    def vacuumFiles(
        self,
        retentionHours: float | None = None,
        *,
        retainVersions: int | None = None,
        deleteUnverified: bool = False,
        errorIfTagged: bool = True,
    ) -> DataFrame:
        """What :meth:`vacuum` would remove now, file by file: path, kind, size_bytes, reason."""
        policy = _policy(retentionHours, retainVersions, deleteUnverified, errorIfTagged)
        plan = plan_cleanup(self._writable().address.open(), policy)
        rows = [(item.path, "manifest", item.size, f"version {item.version} is old") for item in plan.versions]
        rows += [(item.path, item.kind.value, item.size, item.reason) for item in plan.files]
        return self.sparkSession.createDataFrame(rows, "path string, kind string, size_bytes long, reason string")

    def clone(
        self,
        target: str | os.PathLike[str],
        isShallow: bool = False,
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Make the version that is meant the first of another table, and return that table's object.

        A shallow clone shares the files, and breaks when they are cleaned up here: tag the version to keep them. For
        another one all files are copied by tasks. AlreadyExists where there is a table.
        """
        handle = self._handle
        options = handle.address.storage_options if storage_options is None else dict(storage_options)
        there = Address(uri=os.fspath(target), storage_options=options).absolute()
        source, store = self._snapshot(), there.main_store()
        refuse_table(store)
        if isShallow:
            shallow_clone(source, store)
        else:
            pinned = handle.address.pinned(source)
            copying = plan_deep_clone(source, opener=pinned.opener())
            with journalled(store, "spark clone") as journal:
                plan = _copy_plan(copying, pinned, 2 * parallelism(handle.spark))
                answers = run_tasks(handle.spark, plan, there, journal.job, progress=handle.progress)
                journal.committing()
                commit_deep_clone(source, store)
                journal.close(used={attempt for attempt, _ in answers})
        return type(self)(replace(handle, address=there))


def _policy(hours: float | None, retain: int | None, unverified: bool, error_if_tagged: bool) -> CleanupPolicy:
    return CleanupPolicy(
        older_than=None if hours is None else timedelta(hours=hours),
        retain_versions=retain,
        delete_unverified=unverified,
        error_if_tagged=error_if_tagged,
    )


def _vacuumed(plan: CleanupPlan, *, dry_run: bool) -> VacuumFigures:
    kinds = (FileKind.DATA, FileKind.TRANSACTION, FileKind.INDEX, FileKind.DELETION)
    kept = tuple(f"version {item.version}: {', '.join(item.referred_by)}" for item in plan.kept)
    data, transactions, indexes, deletions = map(plan.count, kinds)
    size = plan.total_bytes
    return VacuumFigures(dry_run, len(plan.versions), size, data, transactions, indexes, deletions, kept)


def _copy_plan(plan: DeepClonePlan, source: Address, tasks: int) -> Plan[int]:
    made = tuple(
        CopyFiles(f"copy-{number}", Cost(bytes_read=size, bytes_written=size, requests=2 * len(some)), source, some)
        for number, some in enumerate(_shares(plan.copies, tasks))
        if (size := sum(item.size for item in some)) >= 0
    )
    return Plan("clone", plan.source.version, made)


def _shares(copies: Sequence[Copy], count: int) -> Iterator[tuple[Copy, ...]]:
    """Copies in shares of about as many bytes; the largest go to the share that has least."""
    shares: list[list[Copy]] = [[] for _ in range(max(1, min(count, len(copies))))]
    sizes = [0] * len(shares)
    for copy in sorted(copies, key=lambda item: -item.size):
        least = sizes.index(min(sizes))
        shares[least].append(copy)
        sizes[least] += copy.size + 1
    yield from (tuple(share) for share in shares if share)
