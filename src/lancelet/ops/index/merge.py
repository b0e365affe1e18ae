"""Merging segments as a task: what they say of rows that are still theirs, and rows that no segment covers yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from lancelet.errors import InvalidInput, Unsupported
from lancelet.events import span
from lancelet.format.indexes import IndexMetadata
from lancelet.index.answers import Domain, Skipped
from lancelet.index.kinds import IndexKind, kind_of
from lancelet.index.merging import Part
from lancelet.index.open import open_part
from lancelet.ops.index.columns import column_of
from lancelet.ops.index.describe import live_rows
from lancelet.ops.index.reuse import coverage_now
from lancelet.ops.index.segments import (
    discard_segment,
    domain_of,
    segment_cost,
    segment_of,
    stable_row_ids,
    target_of,
    watched,
)
from lancelet.ops.index.survivors import survivors
from lancelet.ops.index.train import rows_to_index
from lancelet.ops.job import Cost
from lancelet.query.moved import moves_for
from lancelet.rows.bitmaps import BitMap
from lancelet.storage.store import Store
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["MergeSegments", "kind_of_segments", "merge_task"]


@dataclass(frozen=True, slots=True)
class MergeSegments:
    """Merge segments of an index, and the rows of some fragments, into one segment."""

    id: str
    cost: Cost
    read_version: int
    name: str
    segments: tuple[IndexMetadata, ...]
    #: Fragments whose rows are read; those of others are taken from the segments.
    fragments: tuple[int, ...]
    #: Whether the segments stay beside the new one, which has nothing of them but their parameters.
    like_only: bool = False
    #: The id that the segment gets; a new one for each run if None.
    uuid: UUID | None = None

    def run(self, store: Store) -> IndexMetadata:
        """Write the segment's files; nothing refers to them before the commit."""
        snapshot = open_snapshot(store, version=self.read_version)
        places = Places.of(snapshot)
        kind = kind_of_segments(self.segments)
        column = column_of(snapshot, self.segments[0].keyed_fields[0])
        parts = _parts(snapshot, places, kind, self)
        covered = _covered(snapshot, () if self.like_only else self.segments, self.fragments)
        scanned = covered - BitMap.union(BitMap(), *(part.fragments for part in parts))
        uuid = self.uuid or uuid4()
        target = target_of(snapshot, uuid, self.cost.memory)
        rows = rows_to_index(snapshot, places, column.column, tuple(scanned), domain_of(snapshot, kind))
        facts = {"index": self.name, "kind": kind.name, "uri": store.uri}
        own = [part.part for part in parts if part.fragments]
        try:
            with span("index.build", total=live_rows(snapshot, scanned), **facts) as work:
                read = watched(rows, lambda count: work.advance(count, **facts))
                like = kind.like(parts[-1].part)
                built = (
                    kind.merge(own, read, column.type, target, like)
                    if own
                    else kind.build(read, column.type, target, like)
                )
        except BaseException:
            discard_segment(store, uuid)
            raise
        made = segment_of(snapshot, column, self.name, tuple(covered), uuid, built)
        # Of what was taken over only the versions that its segments knew are known.
        return replace(
            made, dataset_version=min([made.dataset_version, *(part.version for part in parts if part.fragments)])
        )


def merge_task(
    snapshot: Snapshot,
    name: str,
    segments: Sequence[IndexMetadata],
    fragments: Sequence[int] = (),
    *,
    like_only: bool = False,
) -> MergeSegments:
    """The task that merges segments, all of one type over one column, and the rows of some fragments. Pure.

    With ``like_only`` the segments stay, and only the rows of the fragments are in the new one.
    """
    kind = column_of(snapshot, segments[0].keyed_fields[0]).type
    covered = _covered(snapshot, () if like_only else segments, fragments)
    cost = segment_cost(snapshot, kind, tuple(covered))
    return MergeSegments(name, cost, snapshot.version, name, tuple(segments), tuple(fragments), like_only)


def kind_of_segments(segments: Sequence[IndexMetadata]) -> IndexKind:
    """The one type of some segments; Unsupported where this release does not build it."""
    kinds = {None if item.details is None else kind_of(item.details) for item in segments}
    if len(kinds) != 1:
        raise InvalidInput(f"index {segments[0].name!r} has segments of several types")
    kind = kinds.pop()
    if kind is None:
        raise Unsupported(f"index {segments[0].name!r} is of a type that this release does not build")
    return kind


def _covered(snapshot: Snapshot, segments: Sequence[IndexMetadata], fragments: Sequence[int]) -> BitMap:
    """The fragments that a merged segment covers."""
    existing = BitMap(snapshot.manifest.fragments.ids().tolist())
    return BitMap.union(BitMap(fragments), *coverage_now(snapshot, segments)) & existing


@dataclass(frozen=True, slots=True)
class _Source:
    """A segment as a part, and the fragments whose rows are taken from it."""

    part: Part
    fragments: BitMap
    version: int


def _parts(snapshot: Snapshot, places: Places, kind: IndexKind, task: MergeSegments) -> list[_Source]:
    """The segments, each with the fragments that are its own: of those that several cover, the first one's.

    Rows of compactions that left indexes as they are are followed to where they went. Nothing is taken from a segment
    that names addresses where the merged one names stable ids.
    """
    existing = BitMap(snapshot.manifest.fragments.ids().tolist())
    moves = moves_for(snapshot.indexes(), places)
    stable = stable_row_ids(snapshot)
    wanted = domain_of(snapshot, kind)
    found = []
    taken = BitMap(task.fragments)
    for item, covered in zip(task.segments, coverage_now(snapshot, task.segments), strict=True):
        domain = kind.domain(item.index_version or 0, stable_row_ids=stable)
        usable = not (task.like_only or (domain is Domain.ADDRESSES and wanted is Domain.ROW_IDS))
        own = (covered & existing) - taken if usable else BitMap()
        taken |= own
        remap = survivors(places, list(own), domain, by_address=wanted is Domain.ADDRESSES, moves=moves)
        store, folder = places.index(item)
        part = open_part(store, folder, item, remap, stable_row_ids=stable)
        if isinstance(part, Skipped):
            raise Unsupported(part.reason, uri=snapshot.uri, version=snapshot.version)
        # Whoever follows rows to where they are says what the version says of them.
        found.append(_Source(part, own, item.dataset_version if moves is None else snapshot.version))
    return found
