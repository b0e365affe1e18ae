"""Conflicts: whether a transaction may follow one that was committed since it was worked out, as one table.

A row is what we want to commit, a column what somebody else has committed meanwhile. Cells:

    .       passes: the two do not touch, or ours is applied on top of theirs
    retry   the request must be worked out anew
    never   the request makes no sense any more

and the names of the rules below, which look at both. What is unknown or missing is never passed. Where the reference
decides otherwise, ``docs/differences.md`` says why we do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Unsupported
from lancelet.format import operations as op
from lancelet.format.fragments import Fragment
from lancelet.format.transaction import Transaction
from lancelet.table.clashes import (
    Clash,
    base_clash,
    common_names,
    config_clash,
    covered_fragments,
    dropped_fields,
    fields_replaced,
    key_clash,
    log_entries,
    never,
    replaced_fields,
    retry,
    row_clash,
    touched_fragments,
    touches_schema_metadata,
)
from lancelet.table.outcome import Conflict

__all__ = ["AffectedRows", "Ours", "check_conflict", "check_conflicts", "operation_name"]

#: Physical offsets of the rows that a transaction takes away, by fragment.
AffectedRows = Mapping[int, NDArray[np.uint32]]

_MATRIX = """
ours      append delete update rewrite merge  project overwr restore replace index  reserve config bases  memwal clone
append    .      .      .      .       schema schema  never  never   .       .      .       .      .      never  .
delete    .      rows   rows   frags   retry  .       never  never   frags   .      .       .      .      never  .
update    keys   rows   rows   frags   retry  schema  never  never   frags   .      .       .      .      log    .
rewrite   .      frags  frags  moves   retry  .       never  never   frags   cover  .       .      .      .      .
merge     retry  retry  retry  retry   retry  never   never  never   retry   .      .       remeta .      never  .
project   own    .      own    .       retry  retry   never  never   own     .      .       remeta .      never  .
overwr    .      .      .      .       .      .       retry  .       .       .      .       config .      never  .
restore   .      .      .      .       .      .       .      .       .       .      .       meta   .      never  .
replace   .      gone   cells  frags   retry  drop    never  never   cells   fields .       .      .      never  .
index     .      .      fields cover   .      drop    never  never   fields  names  .       .      .      never  .
reserve   .      .      .      .       .      .       never  never   .       .      .       .      .      .      .
config    .      .      .      .       remeta .       config meta    .       .      .       config .      .      .
bases     .      .      .      .       .      .       .      .       .       .      .       .      bases  .      .
memwal    never  never  log    .       never  never   never  never   never   .      .       .      .      log    never
clone     .      .      .      .       .      .       .      .       .       .      .       .      .      .      .
"""

_COLUMNS: dict[type[object], str] = {
    op.Append: "append",
    op.Delete: "delete",
    op.Update: "update",
    op.Rewrite: "rewrite",
    op.Merge: "merge",
    op.Project: "project",
    op.Overwrite: "overwr",
    op.Restore: "restore",
    op.DataReplacement: "replace",
    op.CreateIndex: "index",
    op.ReserveFragments: "reserve",
    op.UpdateConfig: "config",
    op.UpdateBases: "bases",
    op.UpdateMemWalState: "memwal",
    op.Clone: "clone",
}


@dataclass(frozen=True, slots=True)
class Ours:
    """What we want to commit, and what there was of it when it was worked out."""

    operation: op.Operation
    #: The fragments that the operation touches, by id, as they were in the version it was worked out from.
    read_fragments: Mapping[int, Fragment] = field(default_factory=dict, hash=False)
    #: None where nobody knows: then changes to one fragment are never merged.
    affected_rows: AffectedRows | None = None


def operation_name(operation: op.Operation | None) -> str:
    """How messages call an operation.

    >>> operation_name(op.Append(())), operation_name(None)
    ('Append', 'a commit that left no transaction')
    """
    if operation is None:
        return "a commit that left no transaction"
    return f"operation {operation.number}" if isinstance(operation, op.Unknown) else type(operation).__name__


def check_conflicts(ours: Ours, committed: Iterable[tuple[int, Transaction | None]]) -> Conflict | None:
    """The first conflict with what was committed, given with its versions in order; None if ours may follow."""
    for version, transaction in committed:
        theirs = None if transaction is None else transaction.operation
        clash = check_conflict(ours, theirs)
        if clash is not None:
            return Conflict(clash.retryable, version, operation_name(theirs), clash.reason)
    return None


def check_conflict(ours: Ours, theirs: op.Operation | None) -> Clash | None:
    """Why our operation cannot follow theirs; None if it can.

    >>> check_conflict(Ours(op.Append(())), op.Restore(1)).retryable
    False
    >>> check_conflict(Ours(op.Append(())), op.Delete()) is None
    True
    """
    row = _COLUMNS.get(type(ours.operation))
    if row is None:
        raise Unsupported(f"{operation_name(ours.operation)} is not committed by this release")
    column = None if theirs is None else _COLUMNS.get(type(theirs))
    name = operation_name(ours.operation)
    if theirs is None or column is None:
        return never(f"{name} cannot be checked against what this release does not know")
    cell = CELLS[row, column]
    if cell == ".":
        return None
    if cell in ("retry", "never"):
        return Clash(cell == "retry", f"{name} cannot follow {operation_name(theirs)}")
    return RULES[cell](ours, theirs)


def _cells(text: str) -> dict[tuple[str, str], str]:
    header, *rows = (line.split() for line in text.strip().splitlines())
    return {(row[0], column): cell for row in rows for column, cell in zip(header[1:], row[1:], strict=True)}


#: The table: (row, column) -> cell.
CELLS = _cells(_MATRIX)


def _rows(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both change rows: of one fragment only if our rows are known, and only rows, not files, changed."""
    return row_clash(ours.operation, theirs, ours.read_fragments, known=ours.affected_rows is not None) or _keys(
        ours, theirs
    )


def _keys(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both insert rows, and ours promised to insert no key twice."""
    return key_clash(ours.operation, theirs)


def _frags(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both touch one fragment."""
    common = touched_fragments(ours.operation) & touched_fragments(theirs)
    return retry(f"fragment {min(common)} was changed by both") if common else None


def _moves(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both move rows: of one fragment, or of one index that goes along."""
    return _frags(ours, theirs) or _same_index(ours, theirs)


def _same_index(ours: Ours, theirs: op.Operation) -> Clash | None:
    """They changed or took away a segment that ours replaces."""
    mine = (
        {item.old_id for item in ours.operation.rewritten_indexes} if isinstance(ours.operation, op.Rewrite) else set()
    )
    gone: set[UUID] = set()
    if isinstance(theirs, op.Rewrite):
        gone = {item.old_id for item in theirs.rewritten_indexes}
    elif isinstance(theirs, op.CreateIndex):
        gone = {item.uuid for item in (*theirs.new_indexes, *theirs.removed_indexes)}
    return retry(f"index segment {min(mine & gone, key=str)} was changed by both") if mine & gone else None


def _gone(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Their commit took away a fragment of ours."""
    removed = getattr(theirs, "deleted_fragment_ids", ()) or getattr(theirs, "removed_fragment_ids", ())
    lost = touched_fragments(ours.operation) & set(removed)
    return never(f"fragment {min(lost)} is gone") if lost else None


def _cells_rule(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both give one field of one fragment new values; rows that moved had values in every field."""
    if (gone := _gone(ours, theirs)) is not None:
        return gone
    changed = replaced_fields(theirs)
    for fragment, fields in replaced_fields(ours.operation).items():
        if fragment not in changed:
            continue
        others = changed[fragment]
        if others is None or fields is None or others & fields:
            return retry(f"values of fragment {fragment} were changed by both")
    return None


def _schema(_: Ours, theirs: op.Operation) -> Clash | None:
    """Their new schema may not allow nulls, or not the values, that ours has written."""
    if isinstance(theirs, op.Merge | op.Project) and not theirs.preserves_nullability:
        return retry("the schema was changed, and rows written before may not fit it")
    return None


def _own(ours: Ours, _: op.Operation) -> Clash | None:
    """The same the other way round: they have written rows that our new schema may not allow."""
    if isinstance(ours.operation, op.Project) and not ours.operation.preserves_nullability:
        return retry("rows were written that may not fit the new schema")
    return None


def _drop(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Their commit dropped a field that ours names."""
    replaces = isinstance(ours.operation, op.DataReplacement)
    if replaces and (changed := _schema(ours, theirs)) is not None:
        return changed
    lost = dropped_fields(ours.operation, theirs)
    if not lost:
        return None
    return (never if replaces else retry)(f"field {min(lost)} was dropped")


def _cover(ours: Ours, theirs: op.Operation) -> Clash | None:
    """One indexed rows that the other has moved, or changed an index that goes along with them."""
    if (clash := _same_index(ours, theirs)) is not None:
        return clash
    index, rewrite = (
        (ours.operation, theirs) if isinstance(ours.operation, op.CreateIndex) else (theirs, ours.operation)
    )
    covered = covered_fragments(index)
    moved = touched_fragments(rewrite)
    if covered is None:
        return retry("an index does not say which fragments it covers, and rows were moved")
    return retry(f"rows of fragment {min(covered & moved)} were moved and indexed") if covered & moved else None


def _names(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both make or change an index of one name."""
    common = common_names(ours.operation, theirs)
    return retry(f"index {min(common)!r} was changed by both") if common else None


def _fields(ours: Ours, theirs: op.Operation) -> Clash | None:
    """One indexed values that the other has replaced in place."""
    index, change = (ours.operation, theirs) if isinstance(ours.operation, op.CreateIndex) else (theirs, ours.operation)
    if not isinstance(index, op.CreateIndex):
        return None
    common = fields_replaced(change) & {number for item in index.new_indexes for number in item.fields}
    return retry(f"values of field {min(common)} were replaced and indexed") if common else None


def _meta(ours: Ours, theirs: op.Operation) -> Clash | None:
    """One replaced the schema whose metadata the other has changed."""
    if touches_schema_metadata(ours.operation) or touches_schema_metadata(theirs):
        return never("metadata of the schema or a field was changed, and the schema replaced")
    return None


def _remeta(ours: Ours, theirs: op.Operation) -> Clash | None:
    """As ``meta``, where a second try finds the other's work."""
    clash = _meta(ours, theirs)
    return None if clash is None else retry(clash.reason)


def _config(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both set one key."""
    if isinstance(theirs, op.Overwrite) and (clash := _meta(ours, theirs)) is not None:
        return clash
    return config_clash(ours.operation, theirs)


def _bases(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both add a base path of one id, name or path."""
    return base_clash(ours.operation, theirs)


def _log(ours: Ours, theirs: op.Operation) -> Clash | None:
    """Both tell of progress in a write-ahead log; what stands in it is carried along unread."""
    if log_entries(ours.operation) and log_entries(theirs):
        return never("both change the state of the write-ahead log")
    if isinstance(ours.operation, op.UpdateMemWalState) and isinstance(theirs, op.Update):
        return None if log_entries(theirs) else never("rows were updated beside the write-ahead log")
    return None


#: What the named cells mean.
RULES: dict[str, Callable[[Ours, op.Operation], Clash | None]] = {
    "rows": _rows,
    "keys": _keys,
    "frags": _frags,
    "moves": _moves,
    "gone": _gone,
    "cells": _cells_rule,
    "schema": _schema,
    "own": _own,
    "drop": _drop,
    "cover": _cover,
    "names": _names,
    "fields": _fields,
    "meta": _meta,
    "remeta": _remeta,
    "config": _config,
    "bases": _bases,
    "log": _log,
}
