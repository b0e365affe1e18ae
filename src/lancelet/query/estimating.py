"""Estimates: about what a scan will ask of its store. Of many fragments a few are looked at, and stand for all.

What a condition leaves of rows that no index names is not known beforehand: the figures are those for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from lancelet.config import default_options
from lancelet.encodings.page import Rows
from lancelet.file.data_file import DataFile
from lancelet.file.plan import plan_file
from lancelet.query.choosing import Choice, covered_rows
from lancelet.query.files import is_known
from lancelet.query.filters import Both, Either, IndexLookup, Lookups, Negated, is_exact
from lancelet.query.layouts import Projection
from lancelet.query.opened import OpenTable
from lancelet.query.pace import window_bytes
from lancelet.query.plan import Piece, ScanPlan
from lancelet.query.window import Way

__all__ = ["ScanEstimate", "Share", "estimate_of", "lookups_in"]

#: Bytes that are read to open a file, at most.
_TAIL = 64 * 2**10
#: Fragments of each sort that are looked at.
_SAMPLES = 3
#: Windows that share the memory budget, roughly.
_AHEAD = 4
#: What one of few rows costs of a page whose index has not been read.
_CHUNK = 4096
#: Bytes of a row in the files of an index, roughly, and rows of a page there.
_INDEXED, _INDEX_PAGE = 16, 4096


@dataclass(frozen=True, slots=True)
class Share:
    """The fragments for which the same parts of a condition are answered, and what is done with their rows."""

    #: Numbers of the parts that indexes answer, and of those that are checked all the same.
    answered: tuple[int, ...]
    left: tuple[int, ...]
    fragments: tuple[int, ...]
    #: Rows of them all, and about how many are looked at.
    rows: int
    looked_at: int


@dataclass(frozen=True, slots=True)
class ScanEstimate:
    """About what a scan will take."""

    shares: tuple[Share, ...]
    #: Rows handed out, at most.
    rows: int
    #: Whether so many are expected, not only possible.
    is_close: bool
    requests: int
    num_bytes: int


def lookups_in(lookups: Lookups) -> Iterator[IndexLookup]:
    """The questions that a combination is made of."""
    match lookups:
        case IndexLookup():
            yield lookups
        case Negated(part):
            yield from lookups_in(part)
        case Both(parts) | Either(parts):
            for part in parts:
                yield from lookups_in(part)


def estimate_of(plan: ScanPlan, choice: Choice | None, table: OpenTable) -> ScanEstimate:
    """The estimate for a plan by itself, not for those within it."""
    pieces = list(plan.pieces())
    grouped: dict[tuple[int, ...], list[Piece]] = {}
    for piece in pieces:
        answered = () if choice is None else _answered(choice, piece.fragment.id)
        if answered or choice is None or not plan.request.fast_search or not choice.plan.uses_indexes:
            grouped.setdefault(answered, []).append(piece)
    shares, requests, size = [], 0.0, 0.0
    for answered, group in grouped.items():
        rows = sum(_rows(piece, table) for piece in group)
        wanted = rows if choice is None else _wanted(choice, answered, rows, table)
        parts = () if plan.filter is None else range(len(plan.filter.parts))
        left = tuple(number for number in parts if number not in answered or not _is_exact(choice, number))
        shares.append(Share(answered, left, tuple(piece.fragment.id for piece in group), rows, wanted))
        asked, read = _reads(plan, table, group, left, wanted / max(rows, 1))
        requests, size = requests + asked, size + read
    if choice is not None:
        for found, count in zip(choice.plan.lookups, choice.rows, strict=True):
            for lookup in () if found is None else lookups_in(found):
                requests += sum(2 + (count or 0) / len(lookup.segments) // _INDEX_PAGE for _ in lookup.segments)
                size += (count or 0) * _INDEXED
    looked_at = sum(share.looked_at for share in shares)
    most = looked_at if plan.take is None else min(looked_at, plan.take)
    checked = plan.request.filter is not None and any(share.left or not share.answered for share in shares)
    return ScanEstimate(tuple(shares), most, not checked, ceil(requests), ceil(size))


def _answered(choice: Choice, fragment: int) -> tuple[int, ...]:
    return tuple(
        number
        for number, found in enumerate(choice.plan.lookups)
        if found is not None and fragment in choice.plan.covered[number]
    )


def _is_exact(choice: Choice | None, number: int) -> bool:
    found = None if choice is None else choice.plan.lookups[number]
    return found is not None and is_exact(found)


def _rows(piece: Piece, table: OpenTable) -> int:
    if piece.take is not None:
        return piece.take
    place = table.facts.counts.places[piece.fragment.id]
    counts = table.counts
    live = int(counts.physical[place] - counts.deleted[place])
    stop = int(counts.physical[place]) if piece.stop is None else piece.stop
    return max(min(live, stop - piece.start), 0)


def _wanted(choice: Choice, answered: Sequence[int], rows: int, table: OpenTable) -> int:
    """About how many rows the answers name, if they name as many of some fragments as of others."""
    share = 1.0
    for number in answered:
        count = choice.rows[number]
        if count is not None:
            share = min(share, count / max(covered_rows(table, choice.plan.covered[number]), 1))
    return min(ceil(rows * share), rows)


def _reads(
    plan: ScanPlan, table: OpenTable, group: Sequence[Piece], left: Sequence[int], share: float
) -> tuple[float, float]:
    """Requests and bytes of some fragments, of which a share of the rows is looked at."""
    route = plan.route if plan.filter is None else plan.route_of(left)
    way = Way(plan, route, window_bytes(plan.memory_budget, _AHEAD), table)
    projections = [projection for projection, _ in way.steps] + [way.rest]
    every = max(len(group) // _SAMPLES, 1)
    samples = group[::every][:_SAMPLES]
    requests = size = rows = 0.0
    unknown = [size for piece in group for size in _unknown_files(projections, table, piece)]
    for piece in samples:
        count = _rows(piece, table)
        rows += count
        asked, read = _of_fragment(way, projections, table, piece, share)
        requests, size = requests + asked, size + read
    total = sum(_rows(piece, table) for piece in group)
    scale = len(group) / max(len(samples), 1)
    # A file costs requests however few rows it has, but bytes for each row.
    return requests * scale + len(unknown), size * (total / rows if rows else scale) + sum(unknown)


def _unknown_files(projections: Sequence[Projection], table: OpenTable, piece: Piece) -> Iterator[int]:
    """For each file that will have to be opened the bytes that this takes."""
    for place in {part.place for projection in projections for part in projection.layout(piece.fragment).parts}:
        item = piece.fragment.files[place]
        if not is_known(table.places, item):
            yield min(item.file_size or _TAIL, _TAIL)


def _of_fragment(
    way: Way, projections: Iterable[Projection], table: OpenTable, piece: Piece, share: float
) -> tuple[float, float]:
    stored = table.fragment(table.facts.counts.places[piece.fragment.id])
    count = _rows(piece, table)
    if not count or not share:
        return 0.0, 0.0
    stop = min(piece.start + count, stored.physical_rows)
    wanted: Rows = slice(piece.start, stop)
    if share < 1:
        wanted = np.unique(np.linspace(piece.start, stop - 1, max(round(share * count), 1)).astype(np.int64))
    requests, size = float(piece.fragment.deletion_file is not None), 0.0
    # Windows of their own each ask anew.
    windows = ceil(count / way.first_pace.rows(stored)) if share == 1 else 1
    for projection in projections:
        for part in projection.layout(piece.fragment).parts:
            file = stored.file(part.place) if not part.legacy else None
            if file is None or not isinstance(file, DataFile):
                named = piece.fragment.files[part.place]
                size += (named.file_size or 0) * share * len(part.fields) / max(len(named.fields), 1)
                requests += windows * len(part.fields)
                continue
            found = plan_file(file, part.shapes, wanted)
            requests += max(found.num_requests, windows)
            size += found.num_bytes + sum(
                _unknown(file, page.column, page.page, page.rows) for page in found.pages if page.data is None
            )
    return requests, size


def _unknown(file: DataFile, column: int, number: int, rows: int) -> float:
    """About the bytes of some rows of a page of which only the index tells where they lie."""
    page = file.column(column).pages[number]
    whole = sum(size for _, size in page.buffers)
    return min(float(whole), float(rows * min(_CHUNK, default_options().coalesce_gap)))
