"""Indexes of rows that move: which are rewritten with them, as tasks, and which are told where the rows went.

An index that names rows by stable ids knows them wherever they are. One that names addresses is rewritten under the
new ones by its type, or left as it is beside the fragment reuse index, through which readers follow its rows. That is
also what becomes of an index of a type that this release cannot rewrite; only where rows have stable ids, for which
there is no such index, it loses the rows that moved, and they are scanned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from lancelet.errors import Unsupported
from lancelet.events import emit, span
from lancelet.format.indexes import IndexMetadata, holds_addresses
from lancelet.format.operations import RewrittenIndex
from lancelet.index.answers import Domain, Skipped
from lancelet.index.kinds import kind_of
from lancelet.index.merging import Bools, keep_fragments
from lancelet.index.open import open_part
from lancelet.ops.compaction.task import Compacted
from lancelet.ops.index.columns import column_of
from lancelet.ops.index.describe import indexed_fragments, live_rows
from lancelet.ops.index.merge import kind_of_segments
from lancelet.ops.index.segments import discard_segment, domain_of, segment_cost, stable_row_ids, target_of
from lancelet.ops.job import Cost, Plan
from lancelet.ops.working import AtVersion
from lancelet.query.moved import moves_for
from lancelet.rows.addresses import UInt64s
from lancelet.rows.bitmaps import BitMap, write_bitmap
from lancelet.rows.moves import Move, Moves
from lancelet.storage.store import Store
from lancelet.table.index_upkeep import SYSTEM_INDEXES
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["MovedIndexes", "RemapSegment", "moved_indexes"]


@dataclass(frozen=True, slots=True)
class RemapSegment:
    """Write one segment of an index again under the addresses that its rows have now."""

    id: str
    cost: Cost
    at: AtVersion
    segment: IndexMetadata
    moves: tuple[Move, ...]
    #: The fragments that the segment covers afterwards.
    fragments: tuple[int, ...]

    def run(self, store: Store) -> RewrittenIndex:
        """Write the segment's files; nothing refers to them before the commit."""
        snapshot = self.at.open(store)
        kind = kind_of_segments([self.segment])
        column = column_of(snapshot, self.segment.keyed_fields[0])
        moves, keep = Moves(self.moves), keep_fragments(self.fragments)

        def remap(names: UInt64s) -> tuple[UInt64s, Bools]:
            moved, there = moves.remap(names)
            # What the segment no longer covers it may not say anything about where it went, either.
            _, covered = keep(moved)
            return moved, there & covered

        place, folder = Places.of(snapshot).index(self.segment)
        part = open_part(place, folder, self.segment, remap, stable_row_ids=stable_row_ids(snapshot))
        if isinstance(part, Skipped):
            raise Unsupported(part.reason, uri=snapshot.uri, version=snapshot.version)
        uuid = uuid4()
        target = target_of(snapshot, uuid, self.cost.memory)
        try:
            facts = {"index": self.segment.name, "kind": kind.name, "uri": store.uri}
            with span("index.remap", total=live_rows(snapshot, BitMap(self.fragments)), **facts):
                built = kind.merge([part], iter(()), column.type, target, kind.like(part))
        except BaseException:
            discard_segment(store, uuid)
            raise
        return RewrittenIndex(self.segment.uuid, uuid, built.details, built.index_version, built.files)


@dataclass(frozen=True, slots=True)
class MovedIndexes:
    """What is to be done with the indexes of a version when rows of it move."""

    plan: Plan[RewrittenIndex]
    #: Whether some index is left as it is, so that readers have to be told where rows went.
    deferred: bool
    #: Of segments that are rewritten what they cover before, wherever their rows were moved since they were built.
    coverage: tuple[tuple[UUID, bytes], ...]


def moved_indexes(
    snapshot: Snapshot, results: Sequence[Compacted], moves: Sequence[Move], *, defer: bool
) -> MovedIndexes:
    """What becomes of each index whose rows move. Only the history of earlier moves is read."""
    indexes = snapshot.indexes()
    known = moves_for(indexes, Places.of(snapshot))
    stable = stable_row_ids(snapshot)
    gone = BitMap([item.id for result in results for item in result.original])
    made = Moves(moves)
    tasks, coverage, deferred = [], [], False
    for item in indexes:
        if item.name in SYSTEM_INDEXES:
            continue
        covered = indexed_fragments(item)
        covered = covered if known is None else known.of_fragments(covered)
        if not covered & gone or (stable and not holds_addresses(item)):
            continue
        reason = _obstacle(snapshot, item)
        if defer:
            deferred = True
        elif reason is None:
            history = () if known is None else known.moves
            tasks.append(_task(snapshot, item, (*history, *moves), made.of_fragments(covered)))
            coverage.append((item.uuid, write_bitmap(covered)))
        else:
            name = "index.uncovered" if stable else "index.remap_deferred"
            emit(name, index=item.name, uri=snapshot.uri, reason=reason)
            deferred = deferred or not stable
    return MovedIndexes(Plan("remap indexes", snapshot.version, tuple(tasks)), deferred, tuple(coverage))


def _task(snapshot: Snapshot, item: IndexMetadata, moves: tuple[Move, ...], covered: BitMap) -> RemapSegment:
    kind = column_of(snapshot, item.keyed_fields[0]).type
    # The fragments to come are not those of the version: what there is now is about as much.
    cost = segment_cost(snapshot, kind, snapshot.manifest.fragments.ids().tolist())
    return RemapSegment(f"{item.name} {item.uuid}", cost, AtVersion.of(snapshot), item, moves, tuple(covered))


def _obstacle(snapshot: Snapshot, item: IndexMetadata) -> str | None:
    """Why a segment that names addresses cannot be rewritten; None where it can."""
    kind = None if item.details is None else kind_of(item.details)
    if kind is None:
        return "this release does not build indexes of its type"
    if len(item.keyed_fields) != 1:
        return f"it is over {len(item.keyed_fields)} columns"
    if (item.index_version or 0) > kind.newest:
        return f"it is of version {item.index_version}, this release knows {kind.newest} at most"
    if domain_of(snapshot, kind) is not Domain.ADDRESSES:
        return "it names addresses, where new segments of its type name stable ids"
    return None
