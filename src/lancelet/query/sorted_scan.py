"""Scans in an order of their own: the first rows of all, or all of them sorted, in files where memory is short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lancelet.query.batches import limited
from lancelet.query.external_sort import first_rows, in_order
from lancelet.query.layouts import Projection
from lancelet.query.opened import open_table
from lancelet.query.plan import MOST_FIRST, ScanPlan, Sort
from lancelet.query.take import Taking, take_addresses
from lancelet.table.paths import Places

__all__ = ["sorted_tables"]

#: The part of the budget that sorting may use; the scan that feeds it has the rest.
_SHARE = 2


def sorted_tables(plan: ScanPlan, sort: Sort, places: Places, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows that a plan hands out, in order, from those of its scan, which has the keys in front."""
    memory = max(plan.memory_budget // _SHARE, 1)
    most = None if sort.take is None else sort.skip + sort.take
    if most == 0:
        return
    if most is None or most > MOST_FIRST:
        ordered: Iterable[pa.Table] = in_order(tables, sort.keys, memory=memory)
    else:
        found = first_rows(tables, sort.keys, most)
        ordered = [] if found is None else [found]
    for table in limited(ordered, sort.skip, sort.take):
        behind = table.select(range(len(sort.keys), table.num_columns))
        if sort.late:
            taking = Taking(plan.schema, plan.outputs, Projection(plan.reads), plan.stable_row_ids)
            yield take_addresses(open_table(places), taking, np.asarray(behind.column(0).combine_chunks()))
        else:
            yield pa.Table.from_arrays(behind.columns, schema=plan.schema)
