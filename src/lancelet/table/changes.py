"""Changes of fragments: what each operation on rows and columns leaves of the version before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.fields import Schema
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import TOMBSTONE, DataFile, Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.table import index_upkeep as upkeep
from lancelet.table import lineage
from lancelet.table.work import Work, number_fragments

__all__ = ["append", "create_index", "delete", "merge", "overwrite", "project", "replace_data", "rewrite", "update"]


def append(work: Work, operation: op.Append) -> Work:
    """The rows before, and new ones behind them."""
    # Ids of fragments to append are nobody's reservation: whatever stands there was another table's, or none.
    unnumbered = (replace(item, id=0) if item.id else item for item in operation.fragments)
    work, new = number_fragments(work, unnumbered)
    work, new = lineage.number_rows(work, new)
    return replace(work, fragments=work.fragments.changed({}, added=new))


def overwrite(work: Work, operation: op.Overwrite) -> Work:
    """Only the new rows; ids go on from those of the version before."""
    work = replace(work, schema=operation.schema, fragments=Fragments(), indexes=())
    work, new = number_fragments(work, (replace(item, id=0) for item in operation.fragments))
    work, new = lineage.number_rows(work, new)
    return replace(work, fragments=Fragments(new))


def delete(work: Work, operation: op.Delete) -> Work:
    """The rows before, without those deleted; fragments with none left are gone."""
    changes = _changed(work, operation.updated_fragments, operation.deleted_fragment_ids, "Delete")
    fragments = work.fragments.changed(changes)
    return replace(work, fragments=fragments, indexes=upkeep.relevant_indexes(work.indexes, work.schema, fragments))


def update(work: Work, operation: op.Update, spilled: Mapping[int, Fragment]) -> Work:
    """Rows taken from some fragments, and put into new ones, or given new columns where they are.

    ``spilled`` are fragments whose lineage lies in data files, with that inline.
    """
    changed = operation.updated_fragments
    if operation.mode is op.UpdateMode.REWRITE_COLUMNS:
        changed = lineage.touch_columns(work, operation, spilled)
    changes = _changed(work, changed, operation.removed_fragment_ids, "Update")
    indexes = upkeep.uncover(work.indexes, operation.fields_modified, (item.id for item in changed))
    origins = {item.id for item in changed} | set(operation.removed_fragment_ids)
    work, new = number_fragments(work, operation.new_fragments)
    if work.next_row_id is not None:
        moved = [item.id for item in new if lineage.all_rows_known(item)]
        if operation.mode is op.UpdateMode.REWRITE_ROWS:
            fields = operation.fields_for_preserving_frag_bitmap
            indexes = upkeep.cover_moved_rows(indexes, fields, origins, moved)
    known = work.fragments
    before = [known[place] for place in map(known.place_of, origins) if place is not None]
    work, new = lineage.number_moved_rows(work, new, [spilled.get(item.id, item) for item in before])
    fragments = work.fragments.changed(changes, added=new)
    return replace(work, fragments=fragments, indexes=upkeep.relevant_indexes(indexes, work.schema, fragments))


def rewrite(
    work: Work,
    operation: op.Rewrite,
    reuse: IndexMetadata | None = None,
    coverage: Mapping[UUID, bytes] = MappingProxyType({}),
) -> Work:
    """The same rows in other fragments. ``reuse`` tells where they went, for indexes that are not rewritten yet.

    ``coverage`` is what segments cover whose own entries tell of fragments whose rows were moved since.
    """
    changes: dict[int, Fragment | None] = {}
    added: list[Fragment] = []
    groups = []
    for group in operation.groups:
        for item in group.old_fragments:
            work.place(item.id, "Rewrite")
            changes[item.id] = None
        work, new = number_fragments(work, group.new_fragments)
        added.extend(new)
        groups.append(replace(group, new_fragments=tuple(new)))
    before = tuple(
        replace(item, fragment_bitmap=coverage[item.uuid]) if item.uuid in coverage else item for item in work.indexes
    )
    indexes = upkeep.rewritten(before, operation.rewritten_indexes, groups, stable_row_ids=work.next_row_id is not None)
    if reuse is not None:
        indexes = (*(item for item in indexes if item.name != reuse.name), reuse)
    return replace(work, fragments=work.fragments.changed(changes, added=added), indexes=indexes)


def merge(work: Work, operation: op.Merge) -> Work:
    """The same rows with another schema and more files beside those they had."""
    rows = {item.id: item.physical_rows for item in operation.fragments}
    for number, before in zip(work.fragments.ids().tolist(), work.fragments.physical_rows().tolist(), strict=True):
        if number not in rows:
            raise InvalidInput(f"Merge leaves out fragment {number}, expected all fragments of the table")
        if before and (rows[number] or 0) != before:
            raise InvalidInput(f"Merge gives fragment {number} {rows[number]} rows, expected {before}")
    fragments = Fragments(lineage.touch_fragments(work, operation.fragments))
    indexes = upkeep.relevant_indexes(work.indexes, operation.schema, fragments)
    return replace(work, schema=operation.schema, fragments=fragments, indexes=indexes)


def project(work: Work, operation: op.Project) -> Work:
    """The same rows with fewer, renamed or reordered fields; files without any field left are gone."""
    # The wire has no room for the schema's metadata, so it is not the operation's to change.
    schema = Schema(operation.schema.fields, work.schema.metadata)
    kept = {item.id for item in schema.walk()}
    changes = {}
    for item in work.fragments:
        # Below the tombstone are row ids and versions, which no schema names.
        files = tuple(file for file in item.files if any(n in kept or n < TOMBSTONE for n in file.fields))
        if len(files) != len(item.files):
            changes[item.id] = replace(item, files=files)
    fragments = work.fragments.changed(changes)
    indexes = upkeep.relevant_indexes(work.indexes, schema, fragments)
    return replace(work, schema=schema, fragments=fragments, indexes=indexes)


def replace_data(work: Work, operation: op.DataReplacement) -> Work:
    """Whole columns of fragments from new files; in the files that held them they are marked as nobody's."""
    changes: dict[int, Fragment | None] = {}
    for group in operation.replacements:
        before = changes.get(group.fragment_id) or work.existing(group.fragment_id, "DataReplacement")
        changes[group.fragment_id] = replace(before, files=with_replaced_columns(before.files, group.new_file))
    indexes = work.indexes
    for group in operation.replacements:
        indexes = upkeep.uncover(indexes, set(group.new_file.fields), [group.fragment_id])
    touched = {item.id: item for item in lineage.touch_fragments(work, [item for item in changes.values() if item])}
    return replace(work, fragments=work.fragments.changed(touched), indexes=indexes)


def with_replaced_columns(files: tuple[DataFile, ...], new: DataFile) -> tuple[DataFile, ...]:
    """The files of a fragment when a new one holds some of its fields.

    >>> with_replaced_columns((DataFile("a", (0, 1), (0, 1)),), DataFile("b", (1,), (0,)))[0].fields
    (0, -2)
    """
    replaced = set(new.fields)
    kept = []
    for file in files:
        fields = tuple(TOMBSTONE if number in replaced else number for number in file.fields)
        if any(number != TOMBSTONE for number in fields):
            kept.append(file if fields == file.fields else replace(file, fields=fields))
    return (*kept, new)


def create_index(work: Work, operation: op.CreateIndex) -> Work:
    """Index segments put in and taken out. Which segments a new one replaces, the operation says."""
    gone = {item.uuid for item in operation.removed_indexes} | {item.uuid for item in operation.new_indexes}
    kept = tuple(item for item in work.indexes if item.uuid not in gone)
    return replace(work, indexes=(*kept, *operation.new_indexes))


def _changed(
    work: Work, updated: tuple[Fragment, ...], removed: tuple[int, ...], operation: str
) -> dict[int, Fragment | None]:
    existing = set(work.fragments.ids().tolist())
    changes: dict[int, Fragment | None] = {
        # A fragment all of whose rows are deleted is gone.
        item.id: item if item.num_rows != 0 else None
        for item in updated
    }
    changes.update(dict.fromkeys(removed))
    lost = changes.keys() - existing
    if lost:
        raise InvalidInput(f"{operation} names fragment {min(lost)}, which the table does not have")
    return changes
