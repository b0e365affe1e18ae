"""Segments that were built without being committed: merged into one, and committed as an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.indexes import IndexMetadata
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import CommitOptions, commit_operation
from lancelet.ops.index.columns import IndexedColumn, check_name, indexed_column
from lancelet.ops.index.describe import indexed_fragments
from lancelet.rows.bitmaps import BitMap
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["check_segments", "commit_segments"]


def commit_segments(
    snapshot: Snapshot,
    name: str,
    path: str,
    segments: Sequence[IndexMetadata],
    *,
    attempts: Attempts | None = None,
    options: CommitOptions | None = None,
) -> Committed:
    """Commit segments as an index over a column, or put them to those that it has.

    Segments that the index had and whose fragments the new ones cover are replaced. InvalidInput where one of them
    would be covered in part, or where segments cover a fragment twice or are over another column.
    """

    def attempt(current: Snapshot) -> tuple[Outcome, None]:
        column = indexed_column(current, path)
        check_segments(segments, column)
        existing = tuple(item for item in current.indexes() if item.name == name)
        check_name(name, column, existing, replace=True)
        new = tuple(replace(item, name=name) for item in segments)
        return commit_operation(current, op.CreateIndex(new, _replaced(existing, new)), options), None

    return until_committed(snapshot, attempt, attempts)[0]


def check_segments(segments: Sequence[IndexMetadata], column: IndexedColumn) -> None:
    """Raise unless segments are of one type, over a column, and cover no fragment twice."""
    if not segments:
        raise InvalidInput("there are no segments, expected at least one")
    taken = BitMap()
    for item in segments:
        if item.keyed_fields != (column.field_id,):
            found = f"segment {item.uuid} is over fields {list(item.keyed_fields)}"
            raise InvalidInput(f"{found}, expected the field {column.field_id}", column=column.path)
        if _kind(item) != _kind(segments[0]):
            found = f"segments are of the types {_kind(segments[0])} and {_kind(item)}"
            raise InvalidInput(f"{found}, expected one type")
        twice = taken & indexed_fragments(item)
        if twice:
            raise InvalidInput(f"fragment {min(twice)} is covered by two segments", column=column.path)
        taken |= indexed_fragments(item)


def _kind(item: IndexMetadata) -> str:
    return "" if item.details is None else item.details.kind


def _replaced(existing: Sequence[IndexMetadata], new: Sequence[IndexMetadata]) -> tuple[IndexMetadata, ...]:
    """The segments whose fragments the new ones cover."""
    covered = BitMap.union(BitMap(), *map(indexed_fragments, new))
    gone = []
    for item in existing:
        own = indexed_fragments(item)
        left = own - covered
        if left and left != own:
            found = f"segment {item.uuid} covers fragment {min(left)} beside those of the new segments"
            hint = "build the new segments over all its fragments, too"
            raise InvalidInput(f"{found}, which would be covered by nothing", hint=hint)
        if not left:
            gone.append(item)
    return tuple(gone)
