"""Rows that moved while indexes stayed: the moves that a version tells of, read once and kept for the process."""

from __future__ import annotations

from collections.abc import Sequence

from lancelet.format.indexes import IndexMetadata
from lancelet.index.system.reuse import moves_of, read_reuse_history, reuse_index
from lancelet.rows.moves import Moves
from lancelet.storage.objects import process_objects
from lancelet.table.paths import Places

__all__ = ["moves_for"]


def moves_for(indexes: Sequence[IndexMetadata], places: Places) -> Moves | None:
    """The moves that the indexes of a version tell of; None, and nothing read, where they tell of none.

    >>> from lancelet.format.fields import Schema
    >>> from lancelet.format.manifest import Manifest
    >>> from lancelet.storage.memory import MemoryStore
    >>> moves_for((), Places(MemoryStore("memory://moved"), Manifest(Schema(())))) is None
    True
    """
    told = reuse_index(indexes)
    if told is None:
        return None
    store, folder = places.index(told)

    def make() -> tuple[Moves, int]:
        moves = moves_of(read_reuse_history(store, folder, told))
        return moves, moves.nbytes

    return process_objects().get((store.uri, folder, "moves"), make) or None
