"""The first rows of an order by an index: a bound that enough rows keep, so that no others need be looked at."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lancelet.expr import Call, Column, Expr, Literal
from lancelet.index.scalar.btree.search import BTreeIndex
from lancelet.query.answers import answers_of
from lancelet.query.filters import FilterPlan, IndexLookup, plan_filter
from lancelet.query.opened import OpenTable
from lancelet.query.plan import ScanPlan, Sort
from lancelet.query.segments import open_segment

__all__ = ["narrowed"]

#: Rows of the table for each wanted one; where there are fewer all are looked at.
_WORTH = 64
#: Each attempt asks for so many times as many rows as the one before: some were deleted, or belong elsewhere by now.
_MORE, _ATTEMPTS = 8, 4


def narrowed(sort: Sort, table: OpenTable) -> ScanPlan:
    """The scan that hands out the keys of an order, of no more rows than those that a BTREE says may come first.

    Conditions compare values as orders do: NaN is the largest. Rows that equal the bound are among those found, so
    that further keys decide between them.
    """
    scan, most = sort.scan, sort.skip + (sort.take or 0)
    columns = scan.request.columns
    if not sort.indexes or not columns or most * _WORTH > table.counts.live_rows or sort.keys[0].nulls_first:
        return scan
    key = columns[0][1]
    index = _index(sort, table, key) if isinstance(key, Column) else None
    for attempt in range(0 if index is None else _ATTEMPTS):
        assert index is not None
        value = index.bound(most * _MORE**attempt, largest=not sort.keys[0].ascending)
        if value is None:
            return scan
        condition = Call("<=" if sort.keys[0].ascending else ">=", (key, Literal(value)), pa.bool_())
        plan = _answered(sort, table, condition)
        if plan.uses_indexes and _live_rows(plan, table) >= most:
            return replace(scan, request=replace(scan.request, filter=condition), filter=plan)
    return scan


def _answered(sort: Sort, table: OpenTable, condition: Expr) -> FilterPlan:
    return plan_filter(condition, sort.indexes, table.places)


def _index(sort: Sort, table: OpenTable, key: Column) -> BTreeIndex | None:
    """The segment of a BTREE over the first key that covers most."""
    (found,) = _answered(sort, table, Call("is_null", (key,), pa.bool_())).lookups
    if not isinstance(found, IndexLookup):
        return None
    best = max(found.segments, key=lambda segment: len(segment.fragments))
    index = open_segment(best, table.places, stable_row_ids=table.facts.stable_row_ids)
    return index if isinstance(index, BTreeIndex) else None


def _live_rows(plan: FilterPlan, table: OpenTable) -> int:
    """Rows that an answer names and that are not deleted."""
    answers = answers_of(plan, table, allowed=None, blocked=None)
    total = 0
    for fragment in plan.covered[0]:
        if answers.is_empty(fragment):
            continue
        candidates = answers.of_fragment(fragment)
        if candidates.rows is None or candidates.left:
            return 0
        deleted = table.fragment(table.facts.counts.places[fragment]).deleted
        total += len(candidates.rows) - (int(deleted.contains(candidates.rows).sum()) if len(deleted) else 0)
    return total
