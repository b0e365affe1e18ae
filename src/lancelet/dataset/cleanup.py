"""Cleanup of a dataset: old versions and the files that only they need, removed, or told of beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from lancelet.dataset.core import DatasetCore
from lancelet.errors import InvalidInput
from lancelet.storage.paths import join_uri
from lancelet.table.branches import list_branches
from lancelet.table.cleanup import CleanupPlan, plan_cleanup, run_cleanup
from lancelet.table.cleanup_files import FileKind
from lancelet.table.cleanup_policy import CleanupPolicy

__all__ = ["CleanupCandidateFile", "CleanupExplanation", "CleanupReferencedBranch", "CleanupStats", "DatasetCleanup"]


@dataclass(frozen=True)
class CleanupStats:
    """What a cleanup removed, or would remove."""

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    #: Always 0: a file that cannot be removed is an error.
    failed_deletes: int = 0


@dataclass(frozen=True)
class CleanupCandidateFile:
    """A file that a cleanup would remove; an unverified one is named by no version at all."""

    path: str
    kind: str
    unverified: bool
    size_bytes: int


@dataclass(frozen=True)
class CleanupReferencedBranch:
    """A branch that keeps the version it starts from; a candidate is one whose version is old."""

    name: str
    referenced_version: int
    cleanup_candidate: bool


@dataclass(frozen=True)
class CleanupExplanation:
    """What a cleanup would do now. Nothing is removed by asking."""

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: list[CleanupReferencedBranch]
    warnings: list[str]


class DatasetCleanup(DatasetCore):
    """Removal of what nobody needs any more."""

    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: list[int] | None = None,
        delete_concurrency: int | None = None,
    ) -> CleanupStats:
        """Remove old versions and the files that only they need: those that meet all conditions given.

        Without a condition versions older than two weeks go. The newest, tagged ones, and those that branches start
        from stay. Files that no version names go when they are a week old, with ``delete_unverified`` at once: only
        where surely nobody is writing. ``delete_concurrency`` is accepted and without effect: the store decides.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://cleaned")
        >>> dataset.insert({"x": [3]})
        >>> dataset.cleanup_old_versions(retain_versions=1).old_versions
        1
        """
        _check_concurrency(delete_concurrency)
        plan = self._plan_cleanup(
            older_than, retain_versions, versions, delete_unverified, error_if_tagged_old_versions
        )
        done = run_cleanup(plan, rate_limit=delete_rate_limit)
        return CleanupStats(
            done.bytes_removed,
            done.old_versions,
            done.data_files,
            done.transaction_files,
            done.index_files,
            done.deletion_files,
        )

    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: list[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupExplanation:
        """What :meth:`cleanup_old_versions` would remove now, with the first ``max_files`` files by name if asked for.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://cleanable")
        >>> dataset.insert({"x": [3]})
        >>> dataset.explain_cleanup_old_versions(retain_versions=1).stats.old_versions
        1
        """
        if max_files <= 0:
            raise InvalidInput(f"max_files is {max_files}, expected at least 1")
        _check_rate(delete_rate_limit)
        plan = self._plan_cleanup(
            older_than, retain_versions, versions, delete_unverified, error_if_tagged_old_versions
        )
        files = list(_candidates(plan)) if include_files else []
        return CleanupExplanation(
            read_version=self.version,
            stats=_stats(plan),
            candidate_files=files[:max_files],
            candidate_files_truncated=len(files) > max_files,
            candidate_file_limit=max_files,
            referenced_branches=self._referenced_branches(plan),
            warnings=[f"version {item.version} stays: {', '.join(item.referred_by)}" for item in plan.kept],
        )

    def _plan_cleanup(
        self,
        older_than: timedelta | None,
        retain_versions: int | None,
        versions: list[int] | None,
        delete_unverified: bool,
        error_if_tagged: bool,
    ) -> CleanupPlan:
        policy = CleanupPolicy(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=None if versions is None else frozenset(versions),
            delete_unverified=delete_unverified,
            error_if_tagged=error_if_tagged,
        )
        return plan_cleanup(self._snapshot, policy)

    def _referenced_branches(self, plan: CleanupPlan) -> list[CleanupReferencedBranch]:
        here = self._snapshot.branch
        old = {item.version for item in plan.kept}
        return [
            CleanupReferencedBranch(name, item.parent_version, item.parent_version in old)
            for name, item in sorted(list_branches(self._main(), options=self._location.options).items())
            if item.parent_branch == here
        ]


def _candidates(plan: CleanupPlan) -> Iterable[CleanupCandidateFile]:
    uri = plan.snapshot.store.uri
    for file in plan.files:
        kind = "manifest" if file.kind is FileKind.TEMPORARY else file.kind.value
        yield CleanupCandidateFile(join_uri(uri, file.path), kind, not file.verified, file.size)
    for version in plan.versions:
        yield CleanupCandidateFile(join_uri(uri, version.path), "manifest", False, version.size)


def _stats(plan: CleanupPlan) -> CleanupStats:
    kinds = (FileKind.DATA, FileKind.TRANSACTION, FileKind.INDEX, FileKind.DELETION)
    return CleanupStats(plan.total_bytes, len(plan.versions), *(plan.count(kind) for kind in kinds))


def _check_rate(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise InvalidInput(f"delete_rate_limit is {limit} files a second, expected at least 1")


def _check_concurrency(concurrency: int | None) -> None:
    if concurrency is not None and concurrency < 1:
        raise InvalidInput(f"delete_concurrency is {concurrency}, expected at least 1")
