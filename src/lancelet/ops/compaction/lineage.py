"""Lineage of rows written anew: they keep their stable ids, and the versions that made and last changed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lancelet.format.fragments import Fragment
from lancelet.ops.moving import with_row_ids
from lancelet.rows.addresses import UInt64s
from lancelet.rows.moves import Source
from lancelet.table.lineage import row_ids_of, versions_of, written_versions
from lancelet.table.paths import Places
from lancelet.table.spilled import with_inline_lineage

__all__ = ["with_lineage"]


def with_lineage(
    places: Places, before: Sequence[Fragment], sources: Sequence[Source], made: Sequence[Fragment]
) -> list[Fragment]:
    """The new fragments with what their rows were called, and when they were made and changed, in those before."""
    ids, created, updated = [], [], []
    for item, source in zip(before, sources, strict=True):
        known = with_inline_lineage(places, item)
        made_in = known.inline_created_at_versions
        # Rows of which nobody wrote down when they were changed were not, since they were made.
        changed_in = known.inline_last_updated_at_versions or made_in
        ids.append(_kept(row_ids_of(known), source))
        created.append(_kept(versions_of(made_in, source.rows), source))
        updated.append(_kept(versions_of(changed_in, source.rows), source))
    numbered = with_row_ids(made, _joined(ids))
    ends = np.cumsum([item.physical_rows or 0 for item in numbered])[:-1]
    versions = zip(np.split(_joined(created), ends), np.split(_joined(updated), ends), strict=True)
    return [
        replace(
            item,
            inline_created_at_versions=written_versions(made_in),
            inline_last_updated_at_versions=written_versions(changed_in),
        )
        for item, (made_in, changed_in) in zip(numbered, versions, strict=False)
    ]


def _kept(values: UInt64s, source: Source) -> UInt64s:
    return np.delete(values, source.deleted.rows) if len(source.deleted) else values


def _joined(parts: Sequence[UInt64s]) -> UInt64s:
    return np.concatenate([np.empty(0, np.uint64), *parts])
