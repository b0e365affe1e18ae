"""Counting rows: by what the manifest says where no condition is set, else by the columns of the condition alone."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lancelet.expr import Column
from lancelet.query.opened import open_table
from lancelet.query.plan import plan_scan
from lancelet.query.request import ROW_ADDRESS, Filter, ScanRequest, request_for
from lancelet.query.scan import count_of_plan, tables_of
from lancelet.query.watching import Watch
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["count_request", "count_rows", "counting_request"]


def count_rows(
    snapshot: Snapshot,
    filter: Filter | None = None,
    *,
    places: Places | None = None,
) -> int:
    """How many live rows there are, or for how many a condition is true.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> import pyarrow as pa
    >>> made = create(open_store("memory://counted-rows"), pa.table({"x": [1, 2, None]}))
    >>> table = open_snapshot(open_store("memory://counted-rows"))
    >>> count_rows(table), count_rows(table, "x > 1")
    (3, 1)
    """
    if filter is None:
        return open_table(places or Places.of(snapshot)).counts.live_rows
    return count_request(snapshot, request_for(snapshot, (), filter=filter), places=places)


def count_request(
    snapshot: Snapshot, request: ScanRequest, *, places: Places | None = None, watch: Watch | None = None
) -> int:
    """How many rows a request would be answered with; what it asks to be handed out is not read."""
    places = places or Places.of(snapshot)
    if request.nearest is not None:
        # Limit and offset choose among the rows found.
        plan = plan_scan(snapshot, counting_request(request))
        return sum(table.num_rows for table in tables_of(plan, places, watch))
    chosen = request.allowed_rows is not None or request.blocked_rows is not None
    if request.filter is None and not request.ranges and not chosen:
        table = open_table(places)
        counts = table.counts
        numbers = slice(None) if request.fragments is None else [table.facts.place_of(id) for id in request.fragments]
        rows = counts.physical[numbers].sum()
        total = int(rows if request.include_deleted else rows - counts.deleted[numbers].sum())
    else:
        total = count_of_plan(plan_scan(snapshot, counting_request(request)), places, watch)
    left = max(total - request.offset, 0)
    return left if request.limit is None else min(left, request.limit)


def counting_request(request: ScanRequest) -> ScanRequest:
    """The request whose rows are counted instead of those of another: all that decides how many there are.

    >>> counting_request(ScanRequest(limit=5)).columns, counting_request(ScanRequest(limit=5)).limit
    ((), None)
    """
    if request.nearest is not None:
        return replace(request, columns=((ROW_ADDRESS, Column((ROW_ADDRESS,), pa.uint64())),), order_by=())
    columns = () if not request.include_deleted else request.columns
    return replace(request, columns=columns, order_by=(), limit=None, offset=0)
