"""Explaining: a plan in words. What is asked of indexes and of which rows, what is read, and what it will take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lancelet.expr import Column, Expr, conjuncts
from lancelet.expr.to_sql import to_sql
from lancelet.file.text import size_text
from lancelet.query.choosing import Choice, choose, covered_rows
from lancelet.query.estimating import ScanEstimate, estimate_of
from lancelet.query.filters import Both, Either, IndexLookup, Lookups, Negated, is_exact
from lancelet.query.first_rows import narrowed
from lancelet.query.opened import OpenTable, open_table
from lancelet.query.plan import Route, ScanPlan, Search, Sort
from lancelet.query.questions import question_text
from lancelet.query.reads import Reads
from lancelet.query.request import Ordering
from lancelet.query.watching import Measured
from lancelet.table.paths import Places

__all__ = ["explain", "measured_text"]

#: Fragments named by number; of more the first are.
_NAMED = 12


def explain(plan: ScanPlan, places: Places, *, verbose: bool = False) -> str:
    """What a plan does, line by line. Of data files metadata are looked at, of indexes what tells how much they hold.

    >>> import pyarrow as pa
    >>> from lancelet.ops.write import create
    >>> from lancelet.query.plan import plan_scan
    >>> from lancelet.query.request import request_for
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://explained"), pa.table({"x": [1, 2, None]}))
    >>> table = open_snapshot(open_store("memory://explained"))
    >>> print(explain(plan_scan(table, request_for(table, filter="x > 1")), Places.of(table)))
    scan of memory://explained, version 1
      columns: x
      filter: x > 1
      1 fragment, 3 rows: scanned, checked for x > 1
        reads: x
      estimate: at most 3 rows, 2 requests, ...
    """
    manifest = places.manifest
    lines = [f"scan of {places.base(None).uri}, version {manifest.version}"]
    lines += _indented(_lines(plan, open_table(places), verbose))
    return "\n".join(lines)


def measured_text(measured: Measured, rows: int, batches: int | None, seconds: float) -> str:
    """What a scan took, in units for people."""
    index = ""
    if measured.index_requests:
        index = f" ({_count(measured.index_requests, 'request')}, {size_text(measured.index_bytes)} of indexes)"
    asked = _count(measured.requests, "request")
    handed = _count(rows, "row") + ("" if batches is None else f" in {_count(batches, 'batch', 'batches')}")
    looked_at = f"{_count(measured.rows_looked_at, 'row')} of {_count(measured.fragments, 'fragment')}"
    return "\n".join(
        [
            f"  measured: {handed}, {asked}, {size_text(measured.bytes_read)} read{index}",
            f"  looked at: {looked_at}",
            f"  cache: {_count(measured.cache_hits, 'hit')}, {measured.cache_misses:,} made",
            f"  time: {_time(seconds)}",
        ]
    )


def _lines(plan: ScanPlan, table: OpenTable, verbose: bool) -> Iterator[str]:
    if plan.fetch is not None:
        names = ", ".join(plan.schema.field(item.place).name for item in plan.fetch.outputs)
        yield f"blobs are read for the rows handed out: {names}"
        yield from _lines(plan.fetch.scan, table, verbose)
    elif plan.search is not None:
        yield from _search(plan, plan.search, table, verbose)
    elif plan.sort is not None:
        yield from _sort(plan, plan.sort, table, verbose)
    else:
        yield from _scan(plan, table, verbose)


def _search(plan: ScanPlan, search: Search, table: OpenTable, verbose: bool) -> Iterator[str]:
    nearest = search.nearest
    yield _outputs(plan.outputs)
    queries = "" if nearest.questions == 1 else f" to each of {nearest.questions:,} queries"
    yield f"nearest: {nearest.k:,} rows by {nearest.metric.value} of {'.'.join(nearest.column.path)}{queries}, exact"
    if search.condition is not None:
        yield f"filter, for the rows found: {to_sql(search.condition.condition)}"
    if search.order_by:
        yield f"order of the rows found: {_order(search.order_by)}"
    yield from _cut(search.skip, search.take)
    yield f"reads for the rows found: {_names(plan.reads) or 'nothing'}"
    yield "vectors are looked at of:"
    yield from _indented(_lines(search.scan, table, verbose))


def _sort(plan: ScanPlan, sort: Sort, table: OpenTable, verbose: bool) -> Iterator[str]:
    yield _outputs(plan.outputs)
    yield f"order: {_order(plan.request.order_by)}"
    yield from _cut(sort.skip, sort.take)
    if sort.late:
        yield f"reads for the rows handed out: {_names(plan.reads)}"
    yield "keys come from:"
    yield from _indented(_lines(narrowed(sort, table), table, verbose))


def _scan(plan: ScanPlan, table: OpenTable, verbose: bool) -> Iterator[str]:
    request = plan.request
    choice = None
    if plan.filter is not None and plan.filter.uses_indexes:
        choice = choose(plan.filter, table, always=request.fast_search, told=True)
    yield _outputs(plan.outputs)
    if request.filter is not None:
        yield f"filter: {to_sql(request.filter)}"
    for name, rows in (("only", request.allowed_rows), ("never", request.blocked_rows)):
        if rows is not None:
            yield f"rows by id, {name}: {len(rows):,}"
    if not request.use_scalar_index and request.filter is not None:
        yield "indexes: not asked, as use_scalar_index=False says"
    if plan.filter is not None:
        yield from _indexes(choice, plan, table)
    estimate = estimate_of(plan, choice, table)
    yield from _shares(plan, estimate, choice, fast=request.fast_search and choice is not None)
    yield from _cut(request.offset, request.limit)
    close = "about" if estimate.is_close and choice is not None else "at most"
    rows_text = _count(estimate.rows, "row") if estimate.is_close and choice is None else None
    counted = rows_text or f"{close} {_count(estimate.rows, 'row')}"
    yield f"estimate: {counted}, {_count(estimate.requests, 'request')}, {size_text(estimate.num_bytes)}"
    if verbose:
        yield from _verbose(plan, estimate)


def _indexes(choice: Choice | None, plan: ScanPlan, table: OpenTable) -> Iterator[str]:
    assert plan.filter is not None
    total = len(table.facts.counts.ids)
    for number, offered in enumerate(plan.filter.lookups):
        if offered is None or choice is None:
            continue
        said = _lookups_text(offered)
        if choice.declined[number] is not None:
            yield f"index not asked: {said}: {choice.declined[number]}"
            continue
        covered = plan.filter.covered[number]
        count = choice.rows[number]
        expected = "" if count is None else f", about {_count(min(count, covered_rows(table, covered)), 'row')}"
        exact = "exact" if is_exact(offered) else "to be checked"
        yield f"index: {said}: {exact}, covers {len(covered):,} of {_count(total, 'fragment')}{expected}"
    for reason in plan.filter.skipped:
        yield f"index skipped: {reason}"


def _lookups_text(lookups: Lookups) -> str:
    match lookups:
        case IndexLookup(name=name, type=kind, query=query, path=path):
            return f"{name} ({kind}) {question_text(path, query)}"
        case Negated(part):
            return f"NOT ({_lookups_text(part)})"
        case Both(parts):
            return " AND ".join(f"({_lookups_text(part)})" for part in parts)
        case Either(parts):
            return " OR ".join(f"({_lookups_text(part)})" for part in parts)


def _shares(plan: ScanPlan, estimate: ScanEstimate, choice: Choice | None, *, fast: bool) -> Iterator[str]:
    for share in estimate.shares:
        how = "scanned"
        if share.answered:
            known = choice is not None and any(choice.rows[number] is not None for number in share.answered)
            how = "by index" + (f", about {_count(share.looked_at, 'row')} looked at" if known else "")
        checked = ""
        if share.left and plan.filter is not None:
            checked = f", checked for {' AND '.join(_operand(plan.filter.parts[number]) for number in share.left)}"
        elif plan.filter is None and plan.request.filter is not None:
            checked = f", checked for {' AND '.join(_operand(part) for part in conjuncts(plan.request.filter))}"
        fragments = _count(len(share.fragments), "fragment")
        yield f"{fragments}, {_count(share.rows, 'row')}: {how}{checked}"
        yield from _indented(_reads(plan.route if plan.filter is None else plan.route_of(share.left)))
    if fast:
        left = len(plan.fragments) - sum(len(share.fragments) for share in estimate.shares)
        yield f"left out, as fast_search=True says: {_count(left, 'fragment')} that no index covers"
    if not estimate.shares:
        yield "no fragments"


def _reads(route: Route) -> Iterator[str]:
    rest = _names(route.rest)
    for number, step in enumerate(route.steps):
        yield f"reads{'' if number == 0 else ', for the rows left'}: {_names(step.reads) or 'nothing'}"
    if not route.steps:
        yield f"reads: {rest or 'nothing'}"
    elif rest:
        yield f"reads late, for the rows that pass: {rest}"


def _verbose(plan: ScanPlan, estimate: ScanEstimate) -> Iterator[str]:
    for share in estimate.shares:
        named = ", ".join(map(str, share.fragments[:_NAMED])) + (", ..." if len(share.fragments) > _NAMED else "")
        yield f"{'by index' if share.answered else 'scanned'}: fragments {named}"
    for name, expr in plan.outputs:
        yield f"column {name}: {expr.type}"
    request = plan.request
    yield f"batches: at most {request.batch_size:,} rows" + ("" if request.in_order else ", in any order")
    yield f"memory budget: {size_text(plan.memory_budget)}"


def _outputs(outputs: Sequence[tuple[str, Expr]]) -> str:
    named = []
    for name, expr in outputs:
        plain = isinstance(expr, Column) and expr.path == (name,)
        named.append(name if plain or name.isdigit() else f"{name} = {to_sql(expr)}")
        if name.isdigit():
            named[-1] = to_sql(expr)
    return f"columns: {', '.join(named) or 'none'}"


def _operand(expr: Expr) -> str:
    text = to_sql(expr)
    return f"({text})" if " OR " in text else text


def _order(order_by: Sequence[Ordering]) -> str:
    return ", ".join(
        f"{to_sql(item.expr)} {'ascending' if item.ascending else 'descending'}, nulls "
        f"{'first' if item.nulls_first else 'last'}"
        for item in order_by
    )


def _cut(skip: int, take: int | None) -> Iterator[str]:
    if skip:
        yield f"offset: {skip:,}"
    if take is not None:
        yield f"limit: {take:,}"


def _names(reads: Reads) -> str:
    return ", ".join([*(item.name for item in reads.schema.fields), *reads.system])


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _time(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
