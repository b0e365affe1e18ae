"""Segments of indexes by the column that they are over, and the fragments of a version that each has an answer for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import pyarrow as pa

from lancelet.format.fields import Field, Schema
from lancelet.format.indexes import IndexMetadata
from lancelet.index.answers import OpenIndex, Skipped
from lancelet.index.open import open_index
from lancelet.query.facts import facts_of
from lancelet.query.moved import moves_for
from lancelet.query.request import column_named
from lancelet.rows.bitmaps import parse_bitmap
from lancelet.rows.moves import Moves
from lancelet.rows.row_sets import RowSet
from lancelet.table.paths import Places

__all__ = ["Segment", "SegmentsByPath", "open_segment", "segments_by_path"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of an index, and those of the table's fragments that it covers."""

    metadata: IndexMetadata
    kind: pa.DataType
    fragments: frozenset[int]
    #: Every row of those fragments.
    rows: RowSet
    #: Where rows went that the segment may name by the addresses they had; None where none did.
    moves: Moves | None = None


#: For the path to a column the segments of each index over it, by name.
SegmentsByPath: TypeAlias = Mapping[tuple[str, ...], Mapping[str, Sequence[Segment]]]


def segments_by_path(indexes: Sequence[IndexMetadata], places: Places) -> SegmentsByPath:
    """The segments among some indexes of a version, none or all; Unsupported where nobody knows where rows went.

    Found once for a version: neither its indexes nor its fragments change. What moved is kept by the process alone,
    which may forget it.
    """
    if not indexes:
        return {}
    kept = facts_of(places.manifest).kept
    known = kept.get(_Known)
    if isinstance(known, _Known) and known.indexes is indexes:
        return known.by_path
    moves = moves_for(indexes, places)
    found = _segments(indexes, places, moves)
    if moves is None:
        kept[_Known] = _Known(indexes, found)
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    indexes: Sequence[IndexMetadata]
    by_path: SegmentsByPath


def _segments(indexes: Sequence[IndexMetadata], places: Places, moves: Moves | None) -> SegmentsByPath:
    facts = facts_of(places.manifest)
    paths = _paths(places.manifest.schema)
    present = frozenset(facts.counts.ids.tolist())
    found: dict[tuple[str, ...], dict[str, list[Segment]]] = {}
    for item in indexes:
        path = paths.get(item.keyed_fields[0]) if len(item.keyed_fields) == 1 else None
        if path is None or item.fragment_bitmap is None:
            continue
        named = parse_bitmap(item.fragment_bitmap, f"coverage of index {item.name!r}")
        fragments = frozenset(named if moves is None else moves.of_fragments(named)) & present
        kind = column_named(".".join(path), facts.bound).type
        found.setdefault(path, {}).setdefault(item.name, []).append(
            Segment(item, kind, fragments, RowSet.of_fragments(fragments), moves)
        )
    return found


def open_segment(segment: Segment, places: Places, *, stable_row_ids: bool) -> OpenIndex | Skipped:
    """The index of a segment, the same for as long as the places are in use; nothing is read."""
    key = OpenIndex, segment.metadata.uuid
    found = places.kept.get(key)
    if found is None:
        store, folder = places.index(segment.metadata)
        made = open_index(store, folder, segment.metadata, segment.kind, stable_row_ids=stable_row_ids)
        found = places.kept.setdefault(key, made)
    return cast("OpenIndex | Skipped", found)


def _paths(schema: Schema) -> Mapping[int, tuple[str, ...]]:
    """The path to each field that is not below a list, by its id."""

    def walk(fields: Iterable[Field], above: tuple[str, ...]) -> Iterable[tuple[int, tuple[str, ...]]]:
        for item in fields:
            path = (*above, item.name)
            yield item.id, path
            if item.logical_type == "struct":
                yield from walk(item.children, path)

    return dict(walk(schema.fields, ()))
