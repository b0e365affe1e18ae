"""Planning a compaction: the tasks that write fragments anew. Pure: no data file is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from lancelet.errors import InvalidInput
from lancelet.file.shapes import column_numbers
from lancelet.format.blobs import file_schema
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import data_version
from lancelet.format.versions import FileVersion
from lancelet.ops.compaction.bins import Candidate, bins_of, candidate
from lancelet.ops.compaction.options import CompactionOptions
from lancelet.ops.compaction.task import Compacted, CompactFragments
from lancelet.ops.data_files import check_version
from lancelet.ops.index.reuse import coverage_now
from lancelet.ops.job import Cost, Plan
from lancelet.ops.working import AtVersion
from lancelet.rows.bitmaps import BitMap
from lancelet.table.index_upkeep import SYSTEM_INDEXES
from lancelet.table.snapshot import Snapshot

__all__ = ["coverage_of", "plan_compaction", "task_of", "written_version"]

#: What a task holds besides pages: windows being read, and what is made of them.
_BESIDES = 96 * 2**20
#: What a column holds at most before it writes a page, and while it does.
_COLUMN = 24 * 2**20
#: By how much rows may grow when they are decoded.
_GROWTH = 4


def plan_compaction(snapshot: Snapshot, options: CompactionOptions | None = None) -> Plan[Compacted]:
    """Tasks that together write those fragments anew that need it; maybe none.

    >>> import pyarrow as pa
    >>> from lancelet.ops.write import append, create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://planned-compaction")
    >>> made = create(store, pa.table({"x": [1]}))
    >>> made = append(open_snapshot(store), pa.table({"x": [2]}))
    >>> [[item.id for item in task.fragments] for task in plan_compaction(open_snapshot(store)).tasks]
    [[0, 1]]
    """
    given = options or CompactionOptions()
    version = written_version(snapshot, given)
    bins = bins_of(_candidates(snapshot, given), given)
    if bins:
        check_version(version, snapshot.schema)
    tasks = tuple(
        task_of(snapshot, [item.fragment for item in one], given, version, name=f"compact {number}")
        for number, one in enumerate(bins)
    )
    return Plan("compact", snapshot.version, tasks)


def written_version(snapshot: Snapshot, options: CompactionOptions) -> FileVersion:
    """The version of new files; InvalidInput where it is not of the family that the table's are."""
    own = data_version(snapshot.manifest)
    if options.data_storage_version is None:
        return own
    wanted = FileVersion.parse(options.data_storage_version)
    if (wanted is FileVersion.V0_1) != (own is FileVersion.V0_1):
        found = f"files of version {wanted.label} are asked for in a table of version {own.label}"
        raise InvalidInput(f"{found}: 0.1 is not mixed with others", uri=snapshot.uri, version=snapshot.version)
    return wanted


def task_of(
    snapshot: Snapshot,
    fragments: Sequence[Fragment],
    options: CompactionOptions,
    version: FileVersion,
    *,
    name: str,
) -> CompactFragments:
    """The task that writes some fragments of a version anew."""
    chosen = tuple(fragments)
    own = [candidate(item) for item in chosen]
    stored, live = sum(item.stored for item in own), sum(item.live_bytes for item in own)
    columns = len(column_numbers(file_schema(snapshot.schema), version))
    memory = min(_BESIDES + min(_GROWTH * stored, columns * _COLUMN), snapshot.options.memory_budget)
    requests = 2 * len(chosen) + 1
    cost = Cost(bytes_read=stored, bytes_written=live, requests=requests, memory=memory)
    return CompactFragments(name, cost, AtVersion.of(snapshot), chosen, options, version)


def _candidates(snapshot: Snapshot, options: CompactionOptions) -> list[Candidate]:
    coverage = coverage_of(snapshot)
    excluded = set(options.excluded_fragment_ids)
    found = []
    for item in snapshot.manifest.fragments:
        covering = frozenset(place for place, known in enumerate(coverage) if item.id in known)
        found.append(candidate(item, covering, excluded=item.id in excluded))
    return found


def coverage_of(snapshot: Snapshot) -> list[BitMap]:
    """Of each segment of an index the fragments whose rows it knows, wherever they were moved since it was built."""
    return coverage_now(snapshot, [item for item in snapshot.indexes() if item.name not in SYSTEM_INDEXES])
