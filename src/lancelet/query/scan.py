"""Scanning: a plan carried out window by window, several at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

from lancelet.config import default_options
from lancelet.file.workers import ahead as reading_ahead
from lancelet.file.workers import waiting
from lancelet.query.answers import Answers, answers_of
from lancelet.query.batches import batches_of, limited
from lancelet.query.blob_values import BlobReaders, with_bytes
from lancelet.query.choosing import choose
from lancelet.query.closest import Closest, closest_of
from lancelet.query.first_rows import narrowed
from lancelet.query.flow import carried_out
from lancelet.query.found import taken_by_index
from lancelet.query.neighbours import JoinedFragments, can_be_joined, joined
from lancelet.query.opened import open_table
from lancelet.query.pace import window_bytes
from lancelet.query.plan import Piece, ScanPlan, plan_scan
from lancelet.query.request import (
    CREATED_AT,
    LAST_UPDATED_AT,
    ROW_ADDRESS,
    ROW_ID,
    ROW_OFFSET,
    ScanRequest,
    request_for,
)
from lancelet.query.searching import searched_tables
from lancelet.query.selection import Selection
from lancelet.query.sorted_scan import sorted_tables
from lancelet.query.stored import StoredFragment, open_fragment
from lancelet.query.watching import Watch
from lancelet.query.window import Found, Way, Window
from lancelet.rows.deletions import DeletionVector
from lancelet.storage.store import maps_files
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = [
    "CREATED_AT",
    "LAST_UPDATED_AT",
    "ROW_ADDRESS",
    "ROW_ID",
    "ROW_OFFSET",
    "ScanPlan",
    "count_of_plan",
    "plan_scan",
    "read_table",
    "run_scan",
    "scan",
    "tables_of",
]

_Result = TypeVar("_Result")
#: Windows under way at once where a store is far away: most of the time they wait for it.
_MOST_AHEAD = 16
#: Fragments opened before they are needed where a store is far away.
_OPENED_AHEAD = 8


def run_scan(plan: ScanPlan, places: Places, watch: Watch | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of a scan; the next windows are read while one is handed out."""
    # Batches end where fragments do, as those of pylance, also where small ones are read as one.
    by_fragment = not plan.request.strict_batch_size
    return batches_of(tables_of(plan, places, watch, by_fragment=by_fragment), plan.request)


def read_table(plan: ScanPlan, places: Places, watch: Watch | None = None) -> pa.Table:
    """All rows of a scan, in as few chunks as they were read in."""
    if plan.fetch is None and plan.search is None and plan.sort is None:
        scan = _Scan(plan, places, watch)
        # What is watched is counted window by window.
        found = (
            None
            if scan.answers is None or watch is not None
            else taken_by_index(plan, scan.answers, open_table(places))
        )
        if found is not None:
            return found
        tables = list(limited(scan.tables(), plan.skip, plan.take))
    else:
        tables = list(tables_of(plan, places, watch))
    return pa.concat_tables(tables) if tables else plan.schema.empty_table()


def scan(
    snapshot: Snapshot,
    request: ScanRequest | Sequence[str] | None = None,
    *,
    batch_size: int = 8192,
    places: Places | None = None,
) -> pa.RecordBatchReader:
    """The rows of a version as a stream: those that a request asks for, or some columns of all.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://scanned"), pa.table({"x": [1, 2], "y": ["a", "b"]}))
    >>> scan(open_snapshot(open_store("memory://scanned")), ["y", "_rowaddr"]).read_all().to_pydict()
    {'y': ['a', 'b'], '_rowaddr': [0, 1]}
    """
    if not isinstance(request, ScanRequest):
        request = request_for(snapshot, request, batch_size=batch_size)
    plan = plan_scan(snapshot, request)
    return pa.RecordBatchReader.from_batches(plan.schema, run_scan(plan, places or Places.of(snapshot)))


def tables_of(
    plan: ScanPlan, places: Places, watch: Watch | None = None, *, by_fragment: bool = False
) -> Iterator[pa.Table]:
    """The rows of a scan as they are read, window by window; no table is empty.

    A ``watch`` is told which rows are looked at; for it to see what is read, ``places`` are its own. ``by_fragment``
    says that rows of several fragments are to be tables of their own, also where they are read together.
    """
    if plan.fetch is not None:
        readers = BlobReaders(places)
        scanned = tables_of(plan.fetch.scan, places, watch, by_fragment=by_fragment)
        return with_bytes(scanned, plan.fetch.outputs, plan.schema, readers)
    if plan.search is not None:
        closest = Closest(plan.search.nearest)
        found = closest_of(closest, _Scan(plan.search.scan, places, watch).results(closest.among))
        return searched_tables(plan, plan.search, places, found)
    if plan.sort is not None:
        keys = tables_of(narrowed(plan.sort, open_table(places)), places, watch)
        return sorted_tables(plan, plan.sort, places, keys)
    return limited(_Scan(plan, places, watch).tables(by_fragment=by_fragment), plan.skip, plan.take)


def count_of_plan(plan: ScanPlan, places: Places, watch: Watch | None = None) -> int:
    """How many rows fulfil the conditions of a plan, whatever else it asks for."""
    return sum(_Scan(plan, places, watch).counts())


class _Scan:
    """A plan being carried out."""

    def __init__(self, plan: ScanPlan, places: Places, watch: Watch | None = None) -> None:
        self.plan, self.places, self.watch = plan, places, watch
        threads = default_options().threads
        self.near = maps_files(places.base(None))
        self.ahead = threads + 1 if self.near else max(threads + 1, _MOST_AHEAD)
        self._ways: dict[tuple[int, ...] | None, Way] = {}
        # What is looked at for nothing should be little: the first window of a limited search is small.
        searches = plan.take is not None and bool(plan.route.steps)
        self.most = max(plan.request.batch_size, (plan.take or 0) + plan.skip) if searches else None
        self.answers: Answers | None = None
        if plan.filter is not None and (plan.filter.uses_indexes or _chooses(plan.request)):
            request, table = plan.request, open_table(places)
            # A fast search leaves out what indexes do not cover: whether they are asked is no question of cost.
            chosen = choose(plan.filter, table, always=request.fast_search).plan
            if chosen.uses_indexes or _chooses(request):
                self.answers = answers_of(chosen, table, allowed=request.allowed_rows, blocked=request.blocked_rows)

    def way(self, left: tuple[int, ...] | None = None) -> Way:
        """How rows are read of which some parts of the condition are left to be checked; None: all of them."""
        found = self._ways.get(left)
        if found is None:
            route = self.plan.route if left is None else self.plan.route_of(left)
            target = window_bytes(self.plan.memory_budget, self.ahead)
            found = self._ways[left] = Way(self.plan, route, target, open_table(self.places))
        return found

    def threads(self) -> ThreadPoolExecutor | None:
        """Who does the work besides the caller."""
        if not self.near:
            return waiting()
        return reading_ahead() if default_options().threads > 1 else None

    def tables(self, *, by_fragment: bool = False) -> Iterator[pa.Table]:
        """The rows of all windows; those of several fragments each by itself where that is asked for."""
        if by_fragment:
            return (table for tables in self._results(self._parted) for table in tables if table.num_rows)
        return (table for table in self._results(self._finished) if table.num_rows)

    def results(self, each: Callable[[pa.Table], _Result]) -> Iterator[_Result]:
        """What ``each`` makes of the rows of each window, on the thread that read them."""
        return self._results(lambda found: each(self._finished(found)))

    def _results(self, each: Callable[[Found], _Result]) -> Iterator[_Result]:
        in_order = self.plan.request.in_order
        tasks = (partial(self._result, window, each) for window in self._windows())
        for found in carried_out(tasks, self.threads(), ahead=self.ahead, in_order=in_order):
            if not isinstance(found, Found):
                yield found
                continue
            pieces = self._pieces(found, each)
            del found
            yield from carried_out(pieces, self.threads(), ahead=self.ahead, in_order=in_order)

    def counts(self) -> Iterator[int]:
        """The number of rows found in each window."""
        tasks = (partial(self._count, window) for window in self._windows())
        return carried_out(tasks, self.threads(), ahead=self.ahead, in_order=False)

    def _count(self, window: Window) -> int:
        return self._found(window).selection.count

    def _result(self, window: Window, each: Callable[[Found], _Result]) -> _Result | Found:
        """What is made of the rows of a window; where they are too many to be read at once, those that were found."""
        found = self._found(window)
        if window.way.steps and found.split(window.way.rest_pace.rows(window.stored))[1] is not None:
            return found
        return each(found)

    def _found(self, window: Window) -> Found:
        found = window.find()
        if window.way.steps:
            window.way.first_pace.seen(window.selection.count, found.first_bytes)
        return found

    def _pieces(self, found: Found, each: Callable[[Found], _Result]) -> Iterator[Callable[[], _Result]]:
        """What is made of the rows found, in pieces of the size that seems right by the time they are read."""
        left: Found | None = found
        while left is not None:
            piece, left = left.split(found.window.way.rest_pace.rows(found.window.stored))
            if piece.selection.count:
                yield partial(each, piece)

    def _finished(self, found: Found) -> pa.Table:
        table = found.table()
        found.window.way.rest_pace.seen(table.num_rows, table.nbytes)
        return table

    def _parted(self, found: Found) -> list[pa.Table]:
        """The same, the rows of each fragment by themselves."""
        table, stored = self._finished(found), found.window.stored
        if not isinstance(stored, JoinedFragments):
            return [table]
        ends = stored.ends_within(found.selection)
        return [table.slice(first, last - first) for first, last in pairwise([0, *ends])]

    def _windows(self) -> Iterator[Window]:
        for piece, stored in self._fragments():
            start, stop = _range_of(piece, stored)
            way, selection = self._wanted(stored, start, stop)
            while selection.count:
                rows = way.first_pace.rows(stored)
                if self.most is not None:
                    rows = min(rows, self.most)
                    self.most *= 2
                window, selection = selection.split(rows)
                if self.plan.request.include_deleted or stored.deleted.live_count(window.start, window.stop):
                    self._look(stored, window)
                    yield Window(way, stored, piece, window)

    def _look(self, stored: StoredFragment, window: Selection) -> None:
        """Say to whoever watches which rows are looked at."""
        if self.watch is None:
            return
        if isinstance(stored, JoinedFragments):
            for fragment, count in stored.shares(window.start, window.stop):
                self.watch.looked_at(fragment, count)
        else:
            self.watch.looked_at(stored.fragment.id, window.count)

    def _wanted(self, stored: StoredFragment, start: int, stop: int) -> tuple[Way, Selection]:
        """The rows of a fragment that have to be looked at, and how."""
        whole = Selection(start, max(start, stop))
        if self.answers is None:
            return self.way(), whole
        candidates = self.answers.of_fragment(stored.fragment.id)
        way = self.way(candidates.left)
        if candidates.rows is not None:
            first, last = candidates.rows.searchsorted([start, stop])
            return way, Selection(start, max(start, stop), numbers=candidates.rows[first:last])
        return way, whole.without(DeletionVector(candidates.excluded)) if len(candidates.excluded) else whole

    def _is_wanted(self, fragment: int) -> bool:
        """Whether rows of a fragment have to be looked at."""
        if self.answers is None:
            return True
        if self.plan.request.fast_search and not self.answers.covers(fragment):
            return False
        return not self.answers.is_empty(fragment)

    def _fragments(self) -> Iterator[tuple[Piece, StoredFragment]]:
        """The fragments of the pieces, open; those of a store far away some time before they are needed."""
        tasks: Iterator[Callable[[], tuple[Piece, StoredFragment]]] = (
            partial(self._opened, piece) for piece in self.plan.pieces(self._is_wanted if self.answers else None)
        )
        if self.near:
            opened = (task() for task in tasks)
            return joined(opened, self.places) if self._joins() else opened
        return carried_out(tasks, waiting(), ahead=_OPENED_AHEAD)

    def _joins(self) -> bool:
        """Whether small fragments may be read together: nothing asked for depends on which of them a row is in."""
        route = self.plan.route
        reads = [route.rest, *(step.reads for step in route.steps)]
        return (
            self.answers is None
            and self.plan.take is None
            and not self.plan.reads.system
            and not any(item.system or not all(map(can_be_joined, item.schema.fields)) for item in reads)
        )

    def _opened(self, piece: Piece) -> tuple[Piece, StoredFragment]:
        stored = open_fragment(self.places, piece.fragment)
        if not self.near:
            left = None if self.answers is None else self.answers.left_of(piece.fragment.id)
            stored.open_files(self.way(left).first_pace.projection)
        return piece, stored


def _chooses(request: ScanRequest) -> bool:
    return request.allowed_rows is not None or request.blocked_rows is not None


def _range_of(piece: Piece, stored: StoredFragment) -> tuple[int, int]:
    """The physical rows of a piece."""
    start, stop = piece.start, stored.physical_rows
    if piece.stop is not None:
        stop = min(piece.stop, stop)
    if piece.skip or piece.take is not None:
        before = int(stored.deleted.to_logical([start])[0]) + piece.skip
        start = int(stored.deleted.to_physical([before])[0])
        if piece.take is not None:
            stop = min(stop, int(stored.deleted.to_physical([before + piece.take - 1])[0]) + 1)
    return start, stop
