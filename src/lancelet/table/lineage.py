"""Lineage: the stable ids of new rows, and the versions in which rows were made and last changed.

Ids and versions are given at the commit, not before: a transaction that is tried again gets those that are then next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lancelet.errors import InvalidInput
from lancelet.format import row_ids as wire
from lancelet.format.fragments import Fragment
from lancelet.format.operations import Update
from lancelet.rows.bitmaps import parse_bitmap, to_values
from lancelet.table.work import Work

__all__ = [
    "all_rows_known",
    "created_versions",
    "number_moved_rows",
    "number_rows",
    "row_ids_of",
    "touch_columns",
    "touch_fragments",
    "versions_of",
    "written_versions",
]

UInt64s = npt.NDArray[np.uint64]

#: What rows count as whose versions nobody wrote down.
_FIRST_VERSION = 1


def all_rows_known(fragment: Fragment) -> bool:
    """Whether every row of a fragment has its stable id."""
    if fragment.column_row_ids is not None:
        return True
    return fragment.inline_row_ids is not None and _count(fragment.inline_row_ids) == (fragment.physical_rows or 0)


def number_rows(work: Work, fragments: Iterable[Fragment]) -> tuple[Work, list[Fragment]]:
    """New fragments whose rows have ids, all made and changed in this version; without stable ids they have neither."""
    result = []
    for item in fragments:
        if work.next_row_id is None:
            result.append(_without_lineage(item))
            continue
        work, numbered = _with_ids(work, item)
        result.append(_with_versions(numbered, created=_one(numbered, work.version), updated=_one(item, work.version)))
    return work, result


def number_moved_rows(
    work: Work, fragments: Iterable[Fragment], origins: Sequence[Fragment]
) -> tuple[Work, list[Fragment]]:
    """New fragments whose first rows came from ``origins`` and keep their ids and the version they were made in.

    The lineage of origins is inline. Rows beyond those that have ids are new. A row that was moved more than once is
    found in several origins, as a deleted one in all but the last; they agree on the version it was made in.
    """
    result = []
    sources = [_Source.of(item) for item in origins] if work.next_row_id is not None else []
    for item in fragments:
        if work.next_row_id is None:
            result.append(_without_lineage(item))
            continue
        if item.column_row_ids is not None:
            result.append(item)
            continue
        known = np.empty(0, np.uint64) if item.inline_row_ids is None else row_ids_of(item)
        created = np.full(_rows(item), work.version, np.uint64)
        created[: len(known)] = created_versions(known, sources)
        work, numbered = _with_ids(work, item)
        result.append(_with_versions(numbered, created=written_versions(created), updated=_one(item, work.version)))
    return work, result


def touch_fragments(work: Work, fragments: Iterable[Fragment]) -> list[Fragment]:
    """Fragments of which those with other files than before count as changed in this version, in every row."""
    result = []
    before = {item.id: item.files for item in work.fragments} if work.next_row_id is not None else {}
    for item in fragments:
        changed = work.next_row_id is not None and before.get(item.id) != item.files
        result.append(_with_versions(item, updated=_one(item, work.version)) if changed else item)
    return result


def touch_columns(work: Work, operation: Update, known: Mapping[int, Fragment]) -> tuple[Fragment, ...]:
    """The updated fragments, in which the rows that the operation names count as changed in this version.

    ``known`` are fragments whose versions lie in data files, with them inline.
    """
    if work.next_row_id is None:
        return operation.updated_fragments
    return tuple(
        _touch_offsets(work, item, operation, known.get(item.id, item)) for item in operation.updated_fragments
    )


def _touch_offsets(work: Work, item: Fragment, operation: Update, known: Fragment) -> Fragment:
    bitmap = operation.updated_offset_bitmaps.get(item.id)
    if bitmap is not None:
        offsets = to_values(parse_bitmap(bitmap, f"updated rows of fragment {item.id}")).astype(np.int64)
    else:
        offsets = np.asarray(operation.updated_offsets.get(item.id, ()), np.int64)
    if not len(offsets):
        return item
    rows = _rows(item)
    if int(offsets.max()) >= rows:
        raise InvalidInput(f"row {int(offsets.max())} of fragment {item.id} is updated, which has {rows} rows")
    versions = versions_of(known.inline_last_updated_at_versions, rows)
    versions[offsets] = work.version
    return _with_versions(item, updated=written_versions(versions))


@dataclass(frozen=True, slots=True)
class _Source:
    """Runs of ids of one fragment by their first id, and the version that each row was made in."""

    firsts: UInt64s
    lengths: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    created: UInt64s

    @staticmethod
    def of(item: Fragment) -> _Source:
        ids = np.empty(0, np.uint64) if item.inline_row_ids is None else row_ids_of(item)
        starts = (
            np.flatnonzero(np.concatenate(([True], ids[1:] - ids[:-1] != 1))) if len(ids) else np.empty(0, np.int64)
        )
        lengths = np.diff(np.concatenate((starts, [len(ids)]))).astype(np.uint64)
        order = np.argsort(ids[starts], kind="stable")
        created = versions_of(item.inline_created_at_versions, len(ids))
        return _Source(ids[starts][order], lengths[order], starts[order], created)

    def look_up(self, ids: UInt64s) -> tuple[npt.NDArray[np.bool_], UInt64s]:
        """Which ids are here, and the versions of those."""
        if not len(self.firsts):
            return np.zeros(len(ids), np.bool_), np.empty(0, np.uint64)
        run = np.maximum(np.searchsorted(self.firsts, ids, side="right") - 1, 0)
        offset = ids - self.firsts[run]
        here = (ids >= self.firsts[run]) & (offset < self.lengths[run])
        return here, self.created[self.starts[run[here]] + offset[here].astype(np.int64)]


def created_versions(ids: UInt64s, sources: Sequence[_Source]) -> UInt64s:
    """The version that each row was made in, looked up by its id."""
    result = np.full(len(ids), _FIRST_VERSION, np.uint64)
    missing = np.arange(len(ids))
    for source in sources:
        if not len(missing):
            break
        here, versions = source.look_up(ids[missing])
        result[missing[here]] = versions
        missing = missing[~here]
    return result


def row_ids_of(fragment: Fragment) -> UInt64s:
    """The stable ids that a fragment's manifest entry holds, by position."""
    segments = wire.parse_row_ids(fragment.inline_row_ids or b"")
    if sum(map(wire.segment_rows, segments)) > _rows(fragment):
        raise InvalidInput(f"fragment {fragment.id} has more row ids than its {_rows(fragment)} rows")
    return np.concatenate([np.empty(0, np.uint64), *map(_values, segments)])


def versions_of(data: bytes | None, rows: int) -> UInt64s:
    """The version of each row that a stored sequence tells; the first where there is none."""
    if data is None:
        return np.full(rows, _FIRST_VERSION, np.uint64)
    runs = wire.parse_versions(data, rows=rows)
    return np.repeat([run.version for run in runs], [wire.segment_rows(run.span) for run in runs]).astype(np.uint64)


def _values(segment: wire.Segment) -> UInt64s:
    match segment:
        case wire.Range(start, end):
            return np.arange(start, end, dtype=np.uint64)
        case wire.RangeWithHoles(start, end, holes):
            numbers = np.arange(start, end, dtype=np.uint64)
            return np.delete(numbers, (holes.values() - np.uint64(start)).astype(np.int64))
        case wire.RangeWithBitmap(start, _, _):
            return np.flatnonzero(segment.bits()).astype(np.uint64) + np.uint64(start)
    return segment.array.values()


def _with_ids(work: Work, item: Fragment) -> tuple[Work, Fragment]:
    if item.column_row_ids is not None or work.next_row_id is None:
        return work, item
    known = 0 if item.inline_row_ids is None else _count(item.inline_row_ids)
    missing = _rows(item) - known
    if missing < 0:
        raise InvalidInput(f"fragment {item.id} has {known} row ids for {_rows(item)} rows")
    if not missing and item.inline_row_ids is not None:
        return work, item
    first = work.next_row_id
    segments = wire.parse_row_ids(item.inline_row_ids or b"")
    stored = wire.write_row_ids([*segments, wire.Range(first, first + missing)])
    return replace(work, next_row_id=first + missing), replace(item, inline_row_ids=stored)


def _with_versions(item: Fragment, *, created: bytes | None = None, updated: bytes | None = None) -> Fragment:
    return replace(
        item,
        inline_created_at_versions=item.inline_created_at_versions if created is None else created,
        inline_last_updated_at_versions=item.inline_last_updated_at_versions if updated is None else updated,
        column_created_at_versions=item.column_created_at_versions if created is None else None,
        column_last_updated_at_versions=item.column_last_updated_at_versions if updated is None else None,
    )


def _without_lineage(item: Fragment) -> Fragment:
    return replace(item, inline_row_ids=None, inline_created_at_versions=None, inline_last_updated_at_versions=None)


def _one(item: Fragment, version: int) -> bytes:
    rows = _rows(item)
    return wire.write_versions([wire.VersionRun(wire.Range(0, rows), version)] if rows else [])


def written_versions(versions: UInt64s) -> bytes:
    """The stored form of a version for each row.

    >>> versions_of(written_versions(np.array([4, 4, 2], np.uint64)), 3).tolist()
    [4, 4, 2]
    """
    if not len(versions):
        return wire.write_versions([])
    starts = np.flatnonzero(np.concatenate(([True], versions[1:] != versions[:-1])))
    ends = np.concatenate((starts[1:], [len(versions)]))
    return wire.write_versions(
        wire.VersionRun(wire.Range(start, end), version)
        for start, end, version in zip(starts.tolist(), ends.tolist(), versions[starts].tolist(), strict=True)
    )


def _count(data: bytes) -> int:
    return sum(map(wire.segment_rows, wire.parse_row_ids(data)))


def _rows(item: Fragment) -> int:
    if item.physical_rows is None:
        raise InvalidInput(f"fragment {item.id} does not say how many rows it has", fragment=item.id)
    return item.physical_rows
