"""Statistics of an index: what its segments say of themselves, and how much of the table they cover."""

from __future__ import annotations

from typing import TypedDict

from lancelet.format.indexes import IndexMetadata
from lancelet.index.answers import Skipped, Statistics
from lancelet.ops.index.describe import indexed_fragments, label_of, live_rows, segments_named
from lancelet.ops.index.segments import open_segment
from lancelet.rows.bitmaps import BitMap
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["IndexStatistics", "index_statistics"]

#: What the type is called where no segment covers a fragment.
_NOTHING = "N/A"


class IndexStatistics(TypedDict):
    """Figures of an index and of its segments, which stand under two names."""

    index_type: str
    name: str
    num_indices: int
    num_segments: int
    indices: list[Statistics]
    segments: list[Statistics]
    num_indexed_fragments: int
    num_indexed_rows: int
    num_unindexed_fragments: int
    num_unindexed_rows: int
    num_indexed_rows_per_delta: list[int]
    updated_at_timestamp_ms: int | None


def index_statistics(snapshot: Snapshot, places: Places, name: str) -> IndexStatistics:
    """Figures of an index; NoSuchIndex if there is none of the name.

    Of segments that cover nothing, or whose type this release does not read, nothing is said.
    """
    segments = segments_named(snapshot, name)
    existing = BitMap(snapshot.manifest.fragments.ids().tolist())
    coverage = [indexed_fragments(item) & existing for item in segments]
    opened = [_figures(snapshot, places, item) if found else {} for item, found in zip(segments, coverage, strict=True)]
    rows = [live_rows(snapshot, found) for found in coverage]
    indexed = BitMap.union(BitMap(), *coverage)
    moments = [item.created_at for item in segments if item.created_at is not None]
    return IndexStatistics(
        index_type=label_of(segments[0]) if any(coverage) else _NOTHING,
        name=name,
        num_indices=len(segments),
        num_segments=len(segments),
        indices=opened,
        segments=opened,
        num_indexed_fragments=len(indexed),
        num_indexed_rows=sum(rows),
        num_unindexed_fragments=len(existing - indexed),
        num_unindexed_rows=live_rows(snapshot, existing - indexed),
        num_indexed_rows_per_delta=rows,
        updated_at_timestamp_ms=max(moments, default=None),
    )


def _figures(snapshot: Snapshot, places: Places, segment: IndexMetadata) -> Statistics:
    index = open_segment(snapshot, places, segment)
    return {} if isinstance(index, Skipped) else index.statistics()
