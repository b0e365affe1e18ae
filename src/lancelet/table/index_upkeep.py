"""Index upkeep: which indexes a version keeps, and which fragments each goes on covering, when its rows change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from lancelet.errors import InvalidInput
from lancelet.format.fields import Schema
from lancelet.format.fragment_list import Fragments
from lancelet.format.indexes import IndexMetadata, holds_addresses
from lancelet.format.operations import RewriteGroup, RewrittenIndex
from lancelet.rows.bitmaps import BitMap, parse_bitmap, write_bitmap

__all__ = [
    "FRAGMENT_REUSE",
    "SYSTEM_INDEXES",
    "WRITE_AHEAD_LOG",
    "cover_moved_rows",
    "covered",
    "relevant_indexes",
    "rewritten",
    "uncover",
    "with_moved_fragments",
]

#: Names of the indexes that belong to no field.
FRAGMENT_REUSE, WRITE_AHEAD_LOG = "__lance_frag_reuse", "__lance_mem_wal"
SYSTEM_INDEXES = (FRAGMENT_REUSE, WRITE_AHEAD_LOG)

Indexes = tuple[IndexMetadata, ...]


def covered(index: IndexMetadata) -> BitMap | None:
    """Ids of the fragments that an index covers; None where its writer did not say."""
    return None if index.fragment_bitmap is None else parse_bitmap(index.fragment_bitmap, f"index {index.name!r}")


def relevant_indexes(indexes: Indexes, schema: Schema, fragments: Fragments) -> Indexes:
    """The indexes that are still about something: all their fields exist, and some fragment of theirs does.

    An index that covers no fragment any more is kept if it is alone of its name, because it knows how to be built
    again; a vector index is not, because it cannot be without rows. Of several that cover nothing the oldest stays.
    """
    known = {item.id for item in schema.walk()}
    kept = [item for item in indexes if item.name in SYSTEM_INDEXES or known.issuperset(item.fields)]
    existing = BitMap(fragments.ids().astype(np.uint32))
    lasting: set[int] = set()
    for name in {item.name for item in kept}:
        segments = [item for item in kept if item.name == name]
        live = [item for item in segments if (found := covered(item)) is not None and found & existing]
        if not live:
            oldest = min(segments, key=lambda item: item.dataset_version)
            live = [] if _is_vector(oldest) else [oldest]
        lasting.update(id(item) for item in live)
    return tuple(item for item in kept if item.name == FRAGMENT_REUSE or id(item) in lasting)


def _is_vector(index: IndexMetadata) -> bool:
    return index.details is not None and index.details.kind == "VectorIndexDetails"


def uncover(indexes: Indexes, fields: Collection[int], fragments: Iterable[int]) -> Indexes:
    """The indexes over any of ``fields`` no longer cover ``fragments``: values there were replaced in place."""
    if not fields:
        return indexes
    gone = BitMap(list(fragments))
    return tuple(
        replace(item, fragment_bitmap=write_bitmap(found - gone))
        if set(fields).intersection(item.fields) and (found := covered(item)) is not None
        else item
        for item in indexes
    )


def cover_moved_rows(
    indexes: Indexes, changed_fields: Collection[int], origins: Collection[int], targets: Collection[int]
) -> Indexes:
    """With stable row ids, rows that moved keep their entries by id in every index over none of the changed fields.

    Only where all fragments they came from were covered: otherwise some of the rows have no entries to keep.
    """
    if not targets:
        return indexes
    from_, to = BitMap(list(origins)), BitMap(list(targets))
    return tuple(
        replace(item, fragment_bitmap=write_bitmap(found | to))
        if not set(changed_fields).intersection(item.fields)
        and not holds_addresses(item)
        and (found := covered(item)) is not None
        and from_ <= found
        else item
        for item in indexes
    )


def with_moved_fragments(bitmap: BitMap, groups: Sequence[RewriteGroup]) -> BitMap:
    """The fragments covered after a rewrite: new ones for those whose rows they hold."""
    result = BitMap(bitmap)
    for group in groups:
        old = BitMap([item.id for item in group.old_fragments])
        if not old & bitmap:
            continue
        if not old <= bitmap:
            raise InvalidInput("a rewrite puts rows that an index covers together with others", hint="split the group")
        result = (result - old) | BitMap([item.id for item in group.new_fragments])
    return result


def rewritten(
    indexes: Indexes, changes: Sequence[RewrittenIndex], groups: Sequence[RewriteGroup], *, stable_row_ids: bool
) -> Indexes:
    """The indexes after a rewrite: with stable ids those stay right that have them, else what was rewritten along.

    An index that names rows by address all the same, and was not rewritten, no longer covers those that moved.
    """
    by_id = {item.old_id: item for item in changes}
    if len(by_id) != len(changes):
        raise InvalidInput("a rewrite replaces one index twice")
    missing = by_id.keys() - {item.uuid for item in indexes}
    if missing:
        raise InvalidInput(f"a rewrite replaces index {min(missing, key=str)}, which the table does not have")
    result = []
    for item in indexes:
        change, found = by_id.get(item.uuid), covered(item)
        if change is not None and found is None:
            raise InvalidInput(f"index {item.name!r} does not say what it covers, so it cannot be rewritten")
        if found is not None and change is None and stable_row_ids and holds_addresses(item):
            gone = BitMap([fragment.id for group in groups for fragment in group.old_fragments])
            item = replace(item, fragment_bitmap=write_bitmap(found - gone))
        elif found is not None and (change is not None or (stable_row_ids and item.name not in SYSTEM_INDEXES)):
            item = replace(item, fragment_bitmap=write_bitmap(with_moved_fragments(found, groups)))
        if change is not None:
            item = replace(
                item,
                uuid=change.new_id,
                details=change.details or item.details,
                index_version=change.index_version if change.details is not None else item.index_version,
                files=change.files,
            )
        result.append(item)
    return tuple(result)
