"""Searches carried out: of the rows found by their vectors, those that meet the condition, in order, are read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lancelet.expr import Expr
from lancelet.query.closest import Hits
from lancelet.query.layouts import Projection
from lancelet.query.nearest import DISTANCE, QUERY_INDEX
from lancelet.query.opened import OpenTable, open_table
from lancelet.query.ordering import order_of_rows
from lancelet.query.plan import ScanPlan, Search, Step, sort_keys
from lancelet.query.reads import Reads
from lancelet.query.request import Ordering
from lancelet.query.selection import from_bits
from lancelet.query.take import columns_at
from lancelet.query.window import output_table, true_rows
from lancelet.table.paths import Places

__all__ = ["searched_tables"]

#: Rows that were found are read so many at a time.
_ROWS = 2**13

_Columns = dict[str, "pa.ChunkedArray | pa.Array"]


def searched_tables(plan: ScanPlan, search: Search, places: Places, found: Hits) -> Iterator[pa.Table]:
    """What a plan hands out of the rows found; other columns than vectors are read for these alone."""
    table = open_table(places)
    if search.condition is not None:
        found = _meeting(table, search.condition, found)
    if search.order_by:
        found = _ordered(table, search.order_by, search.order_reads, found)
    stop = None if search.take is None else search.skip + search.take
    found = found.of(slice(search.skip, stop))
    projection = Projection(plan.reads)
    for some in _pieces(found):
        yield output_table(plan.schema, plan.outputs, _columns(table, projection, some), len(some))


def _pieces(found: Hits) -> Iterator[Hits]:
    for start in range(0, len(found), _ROWS):
        yield found.of(slice(start, start + _ROWS))


def _columns(table: OpenTable, projection: Projection, found: Hits) -> _Columns:
    """The columns of some rows, with those that the search adds."""
    columns = dict(columns_at(table, projection, found.addresses))
    columns[DISTANCE] = pa.array(found.distances)
    columns[QUERY_INDEX] = pa.array(found.questions, pa.int32())
    return columns


def _meeting(table: OpenTable, step: Step, found: Hits) -> Hits:
    """The rows for which a condition is true."""
    projection = Projection(step.reads)
    kept = [
        from_bits(true_rows(step.condition, _columns(table, projection, some), len(some))) for some in _pieces(found)
    ]
    return found.of(np.concatenate(kept)) if kept else found


def _ordered(table: OpenTable, order_by: tuple[Ordering, ...], reads: Reads, found: Hits) -> Hits:
    """The rows in an order of their own."""
    projection = Projection(reads)
    outputs: list[tuple[str, Expr]] = [(f"{number}", item.expr) for number, item in enumerate(order_by)]
    schema = pa.schema([(name, expr.type) for name, expr in outputs])
    keys = [output_table(schema, outputs, _columns(table, projection, some), len(some)) for some in _pieces(found)]
    return found.of(order_of_rows(pa.concat_tables(keys), sort_keys(order_by))) if keys else found
