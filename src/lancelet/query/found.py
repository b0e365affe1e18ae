"""Rows that indexes alone name: where they are few, and nothing is left to check, they are taken as rows by number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from lancelet.expr import Column
from lancelet.query.answers import Answers
from lancelet.query.layouts import Projection
from lancelet.query.opened import OpenTable
from lancelet.query.plan import ScanPlan
from lancelet.query.take import Taking, take_live
from lancelet.rows.addresses import UInt64s

__all__ = ["taken_by_index"]

#: So many rows are read at once, whatever their columns hold; more are read as scans read them, in windows by threads.
_FEW = 2**12


def taken_by_index(plan: ScanPlan, answers: Answers, table: OpenTable) -> pa.Table | None:
    """The rows of a plan, if indexes name them and they are few; None where a scan has to look at any."""
    request = plan.request
    if request.include_deleted or request.ranges or not table.near or not plan.outputs:
        return None
    chosen = slice(None) if plan.places is None else list(plan.places)
    fragments = zip(plan.counts.ids[chosen].tolist(), plan.counts.physical[chosen].tolist(), strict=True)
    addresses = _addresses(answers, fragments, fast_search=request.fast_search)
    if addresses is None:
        return None
    found = take_live(table, _taking(plan, table), addresses)
    if plan.skip or plan.take is not None:
        found = found.slice(plan.skip, plan.take)
    return found


def _addresses(answers: Answers, fragments: Iterable[tuple[int, int]], *, fast_search: bool) -> UInt64s | None:
    """The rows in the order of the fragments, of which so many there are; None if many, or any must be looked at."""
    pieces = []
    count = 0
    for fragment, physical_rows in fragments:
        if fast_search and not answers.covers(fragment):
            continue
        if answers.is_empty(fragment):
            continue
        candidates = answers.of_fragment(fragment)
        if candidates.rows is None or candidates.left:
            return None
        # Rows that a caller allows need not be there.
        rows = candidates.rows[: candidates.rows.searchsorted(physical_rows)]
        count += len(rows)
        if count > _FEW:
            return None
        pieces.append(rows.astype(np.uint64) | np.uint64(fragment << 32))
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if pieces else np.empty(0, np.uint64)


def _taking(plan: ScanPlan, table: OpenTable) -> Taking:
    """What is taken of each row; kept for the next plan that hands out the same columns."""

    def make() -> Taking:
        return Taking(plan.schema, plan.outputs, Projection(plan.reads), plan.stable_row_ids)

    if not all(isinstance(expr, Column) for _, expr in plan.outputs):
        return make()
    return table.kept(("taking by index", plan.outputs), make)
