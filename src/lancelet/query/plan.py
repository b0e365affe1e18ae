"""Plans of scans: what is read of which fragments, in which steps. Pure and printable; no data file is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr import Column, Expr
from lancelet.expr.tree import TRUE
from lancelet.format.fields import Schema
from lancelet.format.fragments import Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.query.blob_outputs import BlobOutput, blob_outputs
from lancelet.query.facts import FragmentCounts, TableFacts, facts_of
from lancelet.query.filters import FilterPlan, plan_filter
from lancelet.query.nearest import DISTANCE, QUERY_INDEX, Nearest
from lancelet.query.ordering import SortKey, check_sortable
from lancelet.query.reads import Reads, reads_of
from lancelet.query.request import (
    ROW_ADDRESS,
    ROW_ID,
    ROW_OFFSET,
    BlobHandling,
    Ordering,
    ScanRequest,
    searched_schema,
)
from lancelet.query.routes import Route, Step, all_of, rest_of, route_for
from lancelet.query.vector_indexes import covered_fragments
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = [
    "MOST_FIRST",
    "Fetch",
    "Piece",
    "Route",
    "ScanPlan",
    "Search",
    "Sort",
    "Step",
    "outputs_of",
    "plan_scan",
    "sort_keys",
]

#: Where at most so many rows are wanted in order, no others are kept, and columns are read once these are known.
MOST_FIRST = 2**16


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the physical rows of a fragment; of the live rows in it ``take`` many from number ``skip`` on."""

    fragment: Fragment
    start: int = 0
    #: None for the end of the fragment.
    stop: int | None = None
    skip: int = 0
    take: int | None = None
    #: Live rows of the fragments before; None where a manifest does not count them.
    live_before: int | None = None


@dataclass(frozen=True, slots=True)
class Sort:
    """How rows get into order: a scan that hands out the keys first, and behind them the outputs or the address."""

    keys: tuple[SortKey, ...]
    scan: ScanPlan
    #: Rows of the order to skip and to hand out.
    skip: int
    take: int | None
    #: Whether the outputs are read once it is known which rows come first.
    late: bool
    #: Indexes that may tell beforehand which rows come first, where few are wanted of all.
    indexes: tuple[IndexMetadata, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """How the nearest rows are found: a scan hands out vectors, addresses and, where they differ, row ids."""

    nearest: Nearest
    scan: ScanPlan
    #: The condition that rows found must meet, if any.
    condition: Step | None
    #: The order of the rows found, where it is not that of their distance: its keys, and what they are made of.
    order_by: tuple[Ordering, ...]
    order_reads: Reads
    #: Rows of the answer to skip and to hand out.
    skip: int
    take: int | None


@dataclass(frozen=True, slots=True)
class Fetch:
    """How rows get the bytes of their blobs: a scan that hands out descriptions, and the row address after all else."""

    scan: ScanPlan
    outputs: tuple[BlobOutput, ...]


@dataclass(frozen=True)
class ScanPlan:
    """How a scan goes: what is asked of indexes, then for each piece of a fragment the steps of its route."""

    request: ScanRequest
    #: The columns to hand out, in order, and what each stands for.
    schema: pa.Schema
    outputs: tuple[tuple[str, Expr], ...]
    #: How indexes help to find rows.
    filter: FilterPlan | None
    stored: Schema
    fragments: Sequence[Fragment]
    counts: FragmentCounts
    #: Places of ``fragments`` in the table; None where they are all of it.
    places: tuple[int, ...] | None
    stable_row_ids: bool
    #: Rows of the stream to skip, and to hand out, after what the pieces leave out already.
    skip: int
    take: int | None
    #: Whether limit and offset were turned into rows of fragments, so that no row is read in vain.
    cut: bool
    memory_budget: int
    sort: Sort | None = None
    search: Search | None = None
    fetch: Fetch | None = None

    @cached_property
    def reads(self) -> Reads:
        """All that the outputs are made of."""
        return reads_of(self.stored, [expr for _, expr in self.outputs])

    @cached_property
    def route(self) -> Route:
        """How rows are found of which no index says anything."""
        return route_for(self.stored, self.request.filter if self.search is None else None, self.reads)

    def pieces(self, wanted: Callable[[int], bool] | None = None) -> Iterator[Piece]:
        """The pieces, in order; of fragments by id that are wanted."""
        if self.cut:
            yield from self._cut_pieces()
            return
        ranges = self.request.ranges or {}
        needs_offsets = self.reads_row_offsets
        numbers: Iterable[int] = range(len(self.fragments))
        if wanted is not None:
            ids = self.counts.ids if self.places is None else self.counts.ids[list(self.places)]
            numbers = [number for number, found in enumerate(ids.tolist()) if wanted(found)]
        for number in numbers:
            fragment = self.fragments[number]
            before = self._live_before(number) if needs_offsets else None
            start, stop = ranges.get(fragment.id, (0, None))
            yield Piece(fragment, start, stop, live_before=before)

    def route_of(self, left: Sequence[int]) -> Route:
        """The route for rows of which some parts of the condition, by number, are left to be checked."""
        if self.filter is None or len(left) == len(self.filter.parts):
            return self.route
        parts = [self.filter.parts[number] for number in left]
        return route_for(self.stored, all_of(parts) if parts else None, self.reads)

    def _cut_pieces(self) -> Iterator[Piece]:
        """The pieces that hold the rows from the offset on, up to the limit."""
        numbers = np.arange(len(self.fragments)) if self.places is None else np.array(self.places, np.int64)
        live = (self.counts.physical - self.counts.deleted)[numbers]
        ends = np.cumsum(live)
        offset, limit = self.request.offset, self.request.limit
        total = int(ends[-1]) if len(ends) else 0
        stop = total if limit is None else min(offset + limit, total)
        first = int(np.searchsorted(ends, offset, "right"))
        for number in range(first, len(ends)):
            begin = int(ends[number] - live[number])
            if begin >= stop:
                return
            skip = max(offset - begin, 0)
            take = min(stop, int(ends[number])) - begin - skip
            if take:
                yield Piece(self.fragments[number], 0, None, skip, take, self._live_before(number))

    def _live_before(self, number: int) -> int | None:
        if self.counts.unknown:
            return None
        return self.counts.live_before(number if self.places is None else self.places[number])

    @property
    def reads_row_offsets(self) -> bool:
        """Whether rows are told how many live rows come before them."""
        return ROW_OFFSET in self.reads.system or any(ROW_OFFSET in step.reads.system for step in self.route.steps)


def plan_scan(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
    """How a request is answered by one version of a table."""
    facts = facts_of(snapshot.manifest)
    outputs, schema = outputs_of(facts, request)
    _check(request, outputs)
    fetch = _fetch(snapshot, request, outputs) if request.blob_handling is BlobHandling.ALL_BINARY else None
    for blob in () if fetch is None else fetch.outputs:
        schema = schema.set(blob.place, blob.as_bytes(schema.field(blob.place)))
    places = None if request.fragments is None else tuple(map(facts.place_of, request.fragments))
    fragments = snapshot.manifest.fragments
    # Rows without any column are the same in every order.
    search = None if request.nearest is None else _search(snapshot, request, facts, request.nearest)
    ordered = search is None and request.order_by and outputs
    sort = _sort(snapshot, request, facts, outputs) if ordered else None
    limited = sort is None and search is None and (request.limit is not None or request.offset > 0)
    counted = not request.include_deleted and not request.ranges and not facts.counts.unknown
    chosen = request.allowed_rows is not None or request.blocked_rows is not None
    cut = limited and counted and request.filter is None and not chosen
    return ScanPlan(
        request,
        schema,
        outputs,
        _filter(snapshot, request, facts) if search is None else None,
        facts.stored,
        fragments if places is None else [fragments[place] for place in places],
        facts.counts,
        places,
        facts.stable_row_ids,
        skip=request.offset if limited and not cut else 0,
        take=request.limit if limited and not cut else None,
        cut=cut,
        memory_budget=snapshot.options.memory_budget,
        sort=sort,
        search=search,
        fetch=fetch,
    )


def _fetch(snapshot: Snapshot, request: ScanRequest, outputs: Sequence[tuple[str, Expr]]) -> Fetch | None:
    """How the blobs of a request are brought; None where it asks for none."""
    found = blob_outputs(snapshot.schema, outputs)
    if not found:
        return None
    # No output has this name, as none begins with a null character.
    columns = (*outputs, ("\0address", Column((ROW_ADDRESS,), pa.uint64())))
    described = replace(request, columns=columns, blob_handling=BlobHandling.BLOBS_DESCRIPTIONS)
    return Fetch(plan_scan(snapshot, described), found)


def _filter(snapshot: Snapshot, request: ScanRequest, facts: TableFacts) -> FilterPlan | None:
    """How indexes help; None where there is nothing that they could be asked."""
    chosen = request.allowed_rows is not None or request.blocked_rows is not None
    if request.filter is None:
        return FilterPlan((), (), ()) if chosen else None
    # Indexes say nothing of deleted rows.
    usable = request.use_scalar_index and not request.include_deleted
    indexes = facts.indexes(snapshot) if usable else ()
    if not indexes and not chosen:
        return None
    return plan_filter(request.filter, indexes, Places.of(snapshot))


def _sort(snapshot: Snapshot, request: ScanRequest, facts: TableFacts, outputs: Sequence[tuple[str, Expr]]) -> Sort:
    """The order that a request asks for."""
    reads = reads_of(facts.stored, [expr for _, expr in outputs])
    _check_order(request.order_by)
    ordering = [(f"{number}", item.expr) for number, item in enumerate(request.order_by)]
    needed = rest_of(reads, [Step(reads_of(facts.stored, [item.expr for item in request.order_by]), TRUE)])
    most = None if request.limit is None else request.limit + request.offset
    late = bool(needed.schema.fields) and not request.include_deleted and most is not None and most <= MOST_FIRST
    behind = [(ROW_ADDRESS, Column((ROW_ADDRESS,), pa.uint64()))] if late else outputs
    columns = tuple((f"{number}", expr) for number, (_, expr) in enumerate([*ordering, *behind]))
    scan = plan_scan(snapshot, replace(request, columns=columns, order_by=(), limit=None, offset=0))
    few = (
        most is not None
        and 0 < most <= MOST_FIRST
        and request.use_scalar_index
        and not (request.fragments or request.ranges or request.fast_search)
    )
    indexes = facts.indexes(snapshot) if few and scan.filter is None and request.filter is None else ()
    return Sort(sort_keys(request.order_by), scan, request.offset, request.limit, late, indexes)


def sort_keys(order_by: Sequence[Ordering]) -> tuple[SortKey, ...]:
    """The keys of an order whose values are the first columns of the rows."""
    return tuple(SortKey(number, item.ascending, item.nulls_first) for number, item in enumerate(order_by))


def _check_order(order_by: Sequence[Ordering]) -> None:
    for item in order_by:
        name = ".".join(item.expr.path) if isinstance(item.expr, Column) else str(item.expr.type)
        check_sortable(item.expr.type, name)


def _search(snapshot: Snapshot, request: ScanRequest, facts: TableFacts, nearest: Nearest) -> Search:
    """The search that a request asks for."""
    _check_order(request.order_by)
    names = [ROW_ADDRESS, ROW_ID] if facts.stable_row_ids else [ROW_ADDRESS]
    looked_at = [nearest.column, *(Column((name,), pa.uint64()) for name in names)]
    fragments = request.fragments
    if request.fast_search:
        covered = covered_fragments(snapshot, facts, nearest.column)
        wanted = facts.counts.ids.tolist() if fragments is None else fragments
        fragments = tuple(number for number in wanted if number in covered)
    inner = replace(
        request,
        columns=tuple((f"{number}", expr) for number, expr in enumerate(looked_at)),
        filter=request.filter if nearest.prefilter else None,
        nearest=None,
        order_by=(),
        limit=None,
        offset=0,
        fragments=fragments,
        fast_search=False,
        in_order=False,
        strict_batch_size=False,
        batch_bytes=None,
    )
    after = None if nearest.prefilter else request.filter
    condition = None if after is None else Step(reads_of(facts.stored, [after]), after)
    order_reads = reads_of(facts.stored, [item.expr for item in request.order_by])
    scan = plan_scan(snapshot, inner)
    return Search(nearest, scan, condition, request.order_by, order_reads, request.offset, request.limit)


def outputs_of(facts: TableFacts, request: ScanRequest) -> tuple[tuple[tuple[str, Expr], ...], pa.Schema]:
    """The columns that a request is answered with: what each stands for, and their schema."""
    bound, outputs = searched_schema(facts.bound, request.nearest), request.columns
    if outputs is None:
        names = [item.name for item in facts.stored.fields]
        if request.nearest is not None:
            names = [QUERY_INDEX] * request.nearest.batch + names + [DISTANCE]
        outputs = tuple((name, Column((name,), bound.field(name).type)) for name in names)
    names = [name for name, _ in outputs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"column {twice!r} is asked for more than once", column=twice)
    return outputs, pa.schema([_output(name, expr, bound) for name, expr in outputs], bound.metadata)


def _output(name: str, expr: Expr, bound: pa.Schema) -> pa.Field:
    if not isinstance(expr, Column):
        return pa.field(name, expr.type)
    field = bound.field(expr.path[0])
    for step in expr.path[1:]:
        field = field.type.field(step)
    return field.with_name(name) if len(expr.path) == 1 else field.with_name(name).with_nullable(True)


def _check(request: ScanRequest, outputs: Sequence[tuple[str, Expr]]) -> None:
    if request.include_deleted and not any(isinstance(expr, Column) and expr.path == (ROW_ID,) for _, expr in outputs):
        hint = "ask for _rowid: it is null where a row is deleted"
        raise InvalidInput("deleted rows are asked for, but nothing would tell them from the others", hint=hint)
    if request.include_deleted and request.nearest is not None:
        raise InvalidInput("deleted rows are asked for, but a search finds none of them")
    if request.strict_batch_size and request.batch_bytes is not None:
        raise InvalidInput("batches cannot have both an exact number of rows and a limit of bytes")
