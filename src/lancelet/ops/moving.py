"""Moving rows: rows of a version written again in new fragments, and taken out of those where they were.

With stable row ids the moved rows keep their ids, which stand first in a new fragment; rows behind them are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lancelet.format import operations as op
from lancelet.format.fields import Schema
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import BasePath
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions, commit_operation
from lancelet.ops.data_files import discard
from lancelet.ops.delete import DeleteResult, deletion_numbers, discard_deletions
from lancelet.ops.destinations import destinations
from lancelet.rows.addresses import UInt64s
from lancelet.rows.segments import write_sequence
from lancelet.rows.sequences import RowIdSequence
from lancelet.table.outcome import Conflict, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["MoveResult", "commit_move", "discard_move", "field_ids", "move_operation", "no_rows", "with_row_ids"]


@dataclass(frozen=True, slots=True)
class MoveResult:
    """What a task took out of old fragments, and the new ones that it wrote."""

    removed: DeleteResult
    new_fragments: tuple[Fragment, ...] = ()


def with_row_ids(fragments: Iterable[Fragment], ids: UInt64s) -> tuple[Fragment, ...]:
    """New fragments whose rows, from the first on, have some stable ids; those behind the last get theirs later.

    >>> two = [Fragment(0, physical_rows=2), Fragment(0, physical_rows=2)]
    >>> found = with_row_ids(two, np.array([7, 8, 3], np.uint64))
    >>> from lancelet.rows.segments import read_sequence
    >>> [read_sequence(item.inline_row_ids).to_ids().tolist() for item in found]
    [[7, 8], [3]]
    """
    result, start = [], 0
    for item in fragments:
        mine = ids[start : start + (item.physical_rows or 0)]
        start += item.physical_rows or 0
        result.append(replace(item, inline_row_ids=write_sequence(RowIdSequence.from_ids(mine))))
    return tuple(result)


def field_ids(schema: Schema, names: Sequence[str]) -> tuple[int, ...]:
    """The ids of top-level fields and of all that is in them, in the order of the names.

    >>> from lancelet.format.fields import Field
    >>> two = Schema((Field("a", "struct", children=(Field("b", "int8"),)), Field("c", "int8"))).with_ids()
    >>> field_ids(two, ["c", "a"])
    (2, 0, 1)
    """
    by_name = {item.name: item for item in schema.fields}
    return tuple(inner.id for name in names for inner in by_name[name].walk())


def move_operation(result: MoveResult, fields: Sequence[int], *, inserted: op.KeyFilter | None = None) -> op.Update:
    """The operation that takes old rows out and puts new fragments in."""
    return op.Update(
        removed_fragment_ids=result.removed.gone,
        updated_fragments=result.removed.updated,
        new_fragments=result.new_fragments,
        fields_for_preserving_frag_bitmap=tuple(fields),
        inserted_rows=inserted,
    )


def commit_move(
    snapshot: Snapshot,
    result: MoveResult,
    fields: Sequence[int],
    *,
    inserted: op.KeyFilter | None = None,
    options: CommitOptions | None = None,
    targets: Sequence[int | None] = (None,),
) -> Outcome:
    """Make moved rows a version. ``fields`` are those whose values changed: indexes over others keep what they know.

    Files that did not come into the table are removed.
    """
    operation = move_operation(result, fields, inserted=inserted)
    try:
        outcome = commit_operation(snapshot, operation, options, affected_rows=result.removed.affected_rows)
    except NOT_COMMITTED:
        discard_move(snapshot, result, targets)
        raise
    if isinstance(outcome, Conflict):
        discard_move(snapshot, result, targets)
    else:
        discard_deletions(snapshot.store, result.removed.updated, kept=deletion_numbers(outcome))
    return outcome


def discard_move(snapshot: Snapshot, result: MoveResult, targets: Sequence[int | None] = (None,)) -> None:
    """Remove the files of a move that nobody will commit."""
    discard_deletions(snapshot.store, result.removed.updated)
    bases: tuple[BasePath, ...] = snapshot.manifest.base_paths
    files = [file for item in result.new_fragments for file in item.files]
    discard(destinations(snapshot.store, bases, targets), files)


def no_rows() -> UInt64s:
    """No addresses, or ids, at all."""
    return np.empty(0, np.uint64)
