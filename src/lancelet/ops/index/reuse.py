"""Moves and segments: what segments cover wherever their rows went, which are behind, and which moves nobody needs.

Compactions that leave indexes as they are tell where rows went in the fragment reuse index. A segment that is built or
merged is written under the addresses of its time; when all are later than a move, that move need not be told any more.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from lancelet.errors import NotFound
from lancelet.format.fragment_reuse import ReuseHistory, ReuseVersion
from lancelet.format.indexes import IndexMetadata
from lancelet.index.system.reuse import read_reuse_history, reuse_index, reuse_metadata
from lancelet.ops.index.describe import indexed_fragments
from lancelet.query.moved import moves_for
from lancelet.rows.bitmaps import BitMap
from lancelet.table.index_upkeep import SYSTEM_INDEXES
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["behind", "coverage_now", "needed_moves", "trimmed_history"]


def coverage_now(snapshot: Snapshot, segments: Iterable[IndexMetadata]) -> list[BitMap]:
    """Of each segment the fragments whose rows it knows, wherever they were moved since it was built."""
    own = [indexed_fragments(item) for item in segments]
    moves = moves_for(snapshot.indexes(), Places.of(snapshot)) if own else None
    return own if moves is None else [moves.of_fragments(item) for item in own]


def behind(snapshot: Snapshot, segments: Sequence[IndexMetadata]) -> list[IndexMetadata]:
    """The segments whose rows have to be followed through moves: those older than some move, or not surely later."""
    history = _history(snapshot)
    return [item for item in segments if not all(_follows(snapshot, item, moved) for moved in history.versions)]


def needed_moves(snapshot: Snapshot, lasting: Iterable[IndexMetadata]) -> tuple[ReuseVersion, ...] | None:
    """The moves that some segment needs of those that last; None where that is all of them."""
    before = reuse_index(snapshot.indexes())
    if before is None or (before.index_version or 0) > 0:
        # Who writes newer ones says otherwise which moves are needed.
        return None
    told = _history(snapshot).versions
    segments = [item for item in lasting if item.name not in SYSTEM_INDEXES]
    needed = tuple(moved for moved in told if not all(_follows(snapshot, item, moved) for item in segments))
    return None if len(needed) == len(told) else needed


def trimmed_history(
    snapshot: Snapshot, lasting: Iterable[IndexMetadata]
) -> tuple[tuple[IndexMetadata, ...], tuple[IndexMetadata, ...]]:
    """The fragment reuse index without moves that nobody needs: what comes, and what goes; a long one is written."""
    before, needed = reuse_index(snapshot.indexes()), needed_moves(snapshot, lasting)
    if before is None or needed is None:
        return (), ()
    if not needed:
        return (), (before,)
    now = int(time.time() * 1000)
    told = reuse_metadata(snapshot.store, ReuseHistory(needed), version=snapshot.version, created_at=now)
    return (told,), (before,)


def _history(snapshot: Snapshot) -> ReuseHistory:
    told = reuse_index(snapshot.indexes())
    return ReuseHistory() if told is None else read_reuse_history(*Places.of(snapshot).index(told), told)


def _follows(snapshot: Snapshot, item: IndexMetadata, moved: ReuseVersion) -> bool:
    """Whether a segment was written when the move had been made.

    Others may have planned it before and committed it after, and covered fragments are renamed without the segment
    being looked at; so its own version must have told of the move.
    """
    sources = BitMap([digest.id for group in moved.groups for digest in group.old_fragments])
    if indexed_fragments(item) & sources or item.dataset_version <= moved.dataset_version:
        return False
    if item.dataset_version == snapshot.version:
        return True
    try:
        then = open_snapshot(snapshot.store, version=item.dataset_version, options=snapshot.options)
    except NotFound:
        return False
    return moved in _history(then).versions
