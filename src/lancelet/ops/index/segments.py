"""Segments as tasks: each builds the index of a group of fragments, in any process, and returns what to commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa

from lancelet.encodings.budget import row_bits
from lancelet.errors import InvalidInput
from lancelet.events import span
from lancelet.format.flags import STABLE_ROW_IDS
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import data_version
from lancelet.format.names import index_folder
from lancelet.index.answers import Domain, OpenIndex, Skipped
from lancelet.index.building import Built, Target
from lancelet.index.kinds import IndexKind, kind_named
from lancelet.index.open import open_index
from lancelet.ops.cancellation import check_cancelled
from lancelet.ops.index.columns import IndexedColumn, column_of
from lancelet.ops.index.describe import live_rows
from lancelet.ops.index.train import rows_to_index
from lancelet.ops.job import Cost, Plan
from lancelet.rows.bitmaps import BitMap, write_bitmap
from lancelet.storage.store import Store
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = [
    "BuildSegment",
    "discard_segment",
    "domain_of",
    "groups_of",
    "open_segment",
    "plan_segments",
    "segment_cost",
    "segment_of",
    "stable_row_ids",
    "target_of",
    "watched",
]

#: Bytes that the value of a type of no fixed size is guessed to take.
_VARIABLE = 32
#: What building holds besides what it sorts, and the least that sorting is given.
_BESIDES, _LEAST = 64 * 2**20, 32 * 2**20


@dataclass(frozen=True, slots=True)
class BuildSegment:
    """Build one segment over some fragments of one version."""

    id: str
    cost: Cost
    read_version: int
    field_id: int
    name: str
    kind: str
    parameters: tuple[tuple[str, object], ...]
    fragments: tuple[int, ...]
    #: The id that the segment gets; a new one for each run if None.
    uuid: UUID | None = None

    def run(self, store: Store) -> IndexMetadata:
        """Write the segment's files; nothing refers to them before the commit."""
        snapshot = open_snapshot(store, version=self.read_version)
        column = column_of(snapshot, self.field_id)
        kind = kind_named(self.kind)
        rows = rows_to_index(snapshot, Places.of(snapshot), column.column, self.fragments, domain_of(snapshot, kind))
        uuid = self.uuid or uuid4()
        target = target_of(snapshot, uuid, self.cost.memory)
        try:
            facts = {"index": self.name, "kind": self.kind, "uri": store.uri}
            with span("index.build", total=live_rows(snapshot, BitMap(self.fragments)), **facts) as work:
                read = watched(rows, lambda count: work.advance(count, **facts))
                built = kind.build(read, column.type, target, dict(self.parameters))
        except BaseException:
            discard_segment(store, uuid)
            raise
        return segment_of(snapshot, column, self.name, self.fragments, uuid, built)


def domain_of(snapshot: Snapshot, kind: IndexKind) -> Domain:
    """What a segment of a type that is built now calls rows."""
    by_address = kind.builds_by_address or not stable_row_ids(snapshot)
    return Domain.ADDRESSES if by_address else Domain.ROW_IDS


def target_of(snapshot: Snapshot, uuid: UUID, memory: int) -> Target:
    """Where a segment is written, by a task that holds so many bytes."""
    return Target(
        snapshot.store,
        index_folder(uuid),
        data_version(snapshot.manifest),
        max(memory - _BESIDES, _LEAST),
        stable_row_ids(snapshot),
    )


def watched(rows: Iterator[pa.RecordBatch], advance: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    """Rows as they come, counted, until the job is told to stop."""
    for batch in rows:
        check_cancelled()
        yield batch
        advance(batch.num_rows)


def segment_of(
    snapshot: Snapshot, column: IndexedColumn, name: str, fragments: Sequence[int], uuid: UUID, built: Built
) -> IndexMetadata:
    """What a manifest says of a segment."""
    return IndexMetadata(
        uuid=uuid,
        name=name,
        fields=(column.field_id,),
        dataset_version=snapshot.version,
        fragment_bitmap=write_bitmap(BitMap(list(fragments))),
        details=built.details,
        index_version=built.index_version,
        created_at=int(time.time() * 1000),
        files=built.files,
    )


def discard_segment(store: Store, uuid: UUID) -> None:
    """Remove the files of a segment that no manifest names."""
    store.delete([entry.path for entry in store.list_from(f"{index_folder(uuid)}/")])


def open_segment(snapshot: Snapshot, places: Places, segment: IndexMetadata) -> OpenIndex | Skipped:
    """A segment, to be asked; Skipped where this release does not read it. Nothing is read yet."""
    if len(segment.keyed_fields) != 1:
        return Skipped(f"index {segment.name!r} is over {len(segment.keyed_fields)} columns")
    store, folder = places.index(segment)
    kind = column_of(snapshot, segment.keyed_fields[0]).type
    return open_index(store, folder, segment, kind, stable_row_ids=stable_row_ids(snapshot))


def stable_row_ids(snapshot: Snapshot) -> bool:
    """Whether rows of the table have stable ids."""
    return bool(snapshot.manifest.reader_flags & STABLE_ROW_IDS.value)


def groups_of(snapshot: Snapshot, fragments: Sequence[int] | None, segments: int) -> list[tuple[int, ...]]:
    """Fragments, all if none are named, in so many groups of about as many rows; none of the groups is empty."""
    if segments < 1:
        raise InvalidInput(f"{segments} segments are asked for, expected at least 1")
    known = snapshot.manifest.fragments
    numbers = list(dict.fromkeys(known.ids().tolist() if fragments is None else fragments))
    for number in numbers:
        if known.place_of(number) is None:
            raise InvalidInput(f"there is no fragment {number}", uri=snapshot.uri, version=snapshot.version)
    rows = np.array([_rows_in(snapshot, number) for number in numbers], np.int64)
    # Each fragment goes to the group that the middle of its rows falls into.
    middles = np.cumsum(rows) - rows / 2
    group = np.minimum(middles * segments / max(int(rows.sum()), 1), segments - 1).astype(np.int64)
    found = [tuple(number for number, at in zip(numbers, group, strict=True) if at == one) for one in range(segments)]
    return [one for one in found if one]


def _rows_in(snapshot: Snapshot, number: int) -> int:
    known = snapshot.manifest.fragments
    return known[known.place_of(number) or 0].physical_rows or 1


def plan_segments(
    snapshot: Snapshot,
    column: IndexedColumn,
    kind: IndexKind,
    name: str,
    groups: Sequence[Sequence[int]],
    *,
    parameters: dict[str, object] | None = None,
    uuid: UUID | None = None,
) -> Plan[IndexMetadata]:
    """A segment for each group of fragments. Pure."""
    given = dict(parameters or {})
    kind.check(column.path, column.type, given)
    tasks = tuple(
        BuildSegment(
            f"{name}-{number}",
            segment_cost(snapshot, column.type, fragments),
            snapshot.version,
            column.field_id,
            name,
            kind.name,
            tuple(sorted(given.items())),
            tuple(fragments),
            uuid,
        )
        for number, fragments in enumerate(groups)
    )
    return Plan("index", snapshot.version, tasks)


def segment_cost(snapshot: Snapshot, kind: pa.DataType, fragments: Sequence[int]) -> Cost:
    """What building a segment over some fragments is expected to take."""
    rows = sum(_rows_in(snapshot, number) for number in fragments)
    try:
        width = max(row_bits(kind) // 8, 1) if kind.bit_width else 1
    except ValueError:
        width = _VARIABLE
    size = rows * (width + 8)
    # Sorted in memory where that fits, in pieces otherwise.
    memory = min(_BESIDES + max(8 * size, _LEAST), max(snapshot.options.memory_budget, 1))
    return Cost(bytes_read=rows * width, bytes_written=size, requests=4 * len(fragments) + 2, memory=memory)
