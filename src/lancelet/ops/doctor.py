"""The doctor: what a table needs, and what that would cost, told from manifests and listings; nothing is changed.

fragments   too small, or with too many deleted rows: compaction
indexes     rows that they do not cover, segments that add up, types that nobody here knows: optimizing
versions    that are old, and the files that only they name: cleanup
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from lancelet.errors import Unsupported
from lancelet.format.indexes import IndexMetadata
from lancelet.index.kinds import kind_of
from lancelet.ops.compaction.options import options_of
from lancelet.ops.compaction.plan import plan_compaction
from lancelet.ops.compaction.task import CompactFragments
from lancelet.ops.index.describe import indexed_fragments, label_of, live_rows
from lancelet.ops.index.optimize import OptimizeRequest, plan_optimize
from lancelet.ops.job import Cost, readable_bytes
from lancelet.rows.bitmaps import BitMap
from lancelet.table.cleanup import plan_cleanup
from lancelet.table.cleanup_policy import CleanupPolicy
from lancelet.table.index_upkeep import SYSTEM_INDEXES
from lancelet.table.snapshot import Snapshot
from lancelet.table.versions import list_versions

__all__ = ["Diagnosis", "Finding", "Need", "examined"]

#: So many segments of one index make searches slower than merging them costs.
_MOST_SEGMENTS = 8
#: So many versions make opening the newest one, and cleaning up, slow in some stores.
_MOST_VERSIONS = 1000
_OLD = timedelta(days=14)
_NOTHING = Cost()


class Need(Enum):
    """What a table may need."""

    COMPACT = "compact"
    REINDEX = "reindex"
    CLEAN_UP = "clean up"
    KNOW = "know"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to be done: what was found, how it is done, and what doing it is expected to take."""

    need: Need
    found: str
    #: What to call; None where there is nothing to be done but to know of it.
    remedy: str | None
    cost: Cost = _NOTHING
    #: Rows that are written or indexed anew.
    rows: int = 0
    #: Bytes of the table that go.
    bytes_freed: int = 0

    def __str__(self) -> str:
        lines = [f"{self.need.value}: {self.found}"]
        if self.remedy is not None:
            freed = f", frees {readable_bytes(self.bytes_freed)}" if self.bytes_freed else ""
            rows = f"{self.rows:,} rows, " if self.rows else ""
            lines += [f"    {self.remedy}", f"    {rows}{self.cost}{freed}"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a version of a table needs; :func:`str` makes it a text."""

    uri: str
    version: int
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is to be done."""
        return all(item.remedy is None for item in self.findings)

    @property
    def cost(self) -> Cost:
        """What all of it would take."""
        return sum((item.cost for item in self.findings), Cost())

    def __str__(self) -> str:
        head = f"{self.uri}, version {self.version:,}"
        return "\n".join([f"{head}: nothing to do" if self.healthy else head, *map(str, self.findings)])


def examined(snapshot: Snapshot, *, versions: bool = True, older_than: timedelta = _OLD) -> Diagnosis:
    """What a table needs. Without ``versions`` these are not looked at, which takes a request for each of them.

    >>> import pyarrow as pa
    >>> from lancelet.ops.write import append, create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://examined")
    >>> made = create(store, pa.table({"x": [1]}))
    >>> examined(open_snapshot(store)).healthy
    True
    >>> made = append(open_snapshot(store), pa.table({"x": [2]}))
    >>> [item.need.name for item in examined(open_snapshot(store)).findings]
    ['COMPACT']
    """
    findings = [*_fragments(snapshot), *_indexes(snapshot), *(_versions(snapshot, older_than) if versions else ())]
    return Diagnosis(snapshot.uri, snapshot.version, tuple(findings))


def _fragments(snapshot: Snapshot) -> Iterable[Finding]:
    try:
        plan = plan_compaction(snapshot, options_of(snapshot.manifest.config))
    except Unsupported as error:
        yield Finding(Need.KNOW, f"fragments cannot be compacted: {error.message}", None)
        return
    chosen = [item for task in plan.tasks if isinstance(task, CompactFragments) for item in task.fragments]
    if not chosen:
        return
    known = snapshot.manifest.fragments
    ids = BitMap([item.id for item in chosen])
    rows = live_rows(snapshot, ids)
    deleted = sum(item.physical_rows or 0 for item in chosen) - rows
    what = f"{len(chosen):,} of {_counted(len(known), 'fragment')} are small or have many deleted rows"
    cost = sum((task.cost for task in plan.tasks), Cost())
    yield Finding(
        Need.COMPACT,
        f"{what}: {rows:,} rows, and {deleted:,} that are deleted; written anew by {_counted(len(plan.tasks), 'task')}",
        "dataset.optimize.compact_files()",
        cost,
        rows,
    )


def _indexes(snapshot: Snapshot) -> Iterable[Finding]:
    existing = BitMap(snapshot.manifest.fragments.ids().tolist())
    by_name: dict[str, list[IndexMetadata]] = {}
    for item in snapshot.indexes():
        if item.name not in SYSTEM_INDEXES:
            by_name.setdefault(item.name, []).append(item)
    for name, segments in by_name.items():
        if segments[0].details is None or kind_of(segments[0].details) is None:
            yield Finding(
                Need.KNOW, f"index {name!r} is of type {label_of(segments[0])}, which is not kept up here", None
            )
            continue
        missing = live_rows(snapshot, existing - BitMap.union(BitMap(), *map(indexed_fragments, segments)))
        # A search goes through all segments: of many, all are merged.
        merged = len(segments) if len(segments) > _MOST_SEGMENTS else 1
        if not missing and merged == 1:
            continue
        plan = plan_optimize(snapshot, OptimizeRequest(merged, (name,)))
        cost = sum((task.cost for task in plan.tasks), Cost())
        said = f", num_indices_to_merge={merged}" if merged > 1 else ""
        found = (
            f"index {name!r} has {_counted(len(segments), 'segment')} and lacks {missing:,} rows, which scans look at"
        )
        yield Finding(
            Need.REINDEX, found, f"dataset.optimize.optimize_indices(index_names=[{name!r}]{said})", cost, missing
        )


def _versions(snapshot: Snapshot, older_than: timedelta) -> Iterable[Finding]:
    count = sum(1 for _ in list_versions(snapshot.store))
    try:
        plan = plan_cleanup(snapshot, CleanupPolicy(older_than=older_than, error_if_tagged=False))
    except Unsupported as error:
        yield Finding(Need.KNOW, f"old versions cannot be cleaned up: {error.message}", None)
        return
    if plan.versions or plan.files:
        files = len(plan.versions) + len(plan.files)
        old = f"{len(plan.versions):,} of {_counted(count, 'version')} are older than {older_than.days} days"
        found = f"{old}; {_counted(files, 'file')} can go"
        cost = Cost(requests=count + files)
        yield Finding(Need.CLEAN_UP, found, "dataset.cleanup_old_versions()", cost, bytes_freed=plan.total_bytes)
    elif count > _MOST_VERSIONS:
        found = f"there are {count:,} versions, none of them older than {older_than.days} days"
        remedy = f"dataset.cleanup_old_versions(retain_versions={_MOST_VERSIONS // 10})"
        yield Finding(Need.CLEAN_UP, found, remedy, Cost(requests=2 * count))


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
