"""Choosing: whether asking an index is expected to cost less than looking at the rows, part by part of a condition.

Costs are nanoseconds, as measured on tables of some million rows: what a row of an answer takes by the type of the
index, and what a row that is looked at takes by the type of its column. Far away the bytes cost more than either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa

from lancelet.encodings.budget import is_fixed, row_bits
from lancelet.expr import Expr
from lancelet.index.answers import Skipped
from lancelet.query.filters import Both, Either, FilterPlan, IndexLookup, Lookups, Negated, covered_by
from lancelet.query.opened import OpenTable
from lancelet.query.reads import reads_of
from lancelet.query.segments import open_segment

__all__ = ["Choice", "choose", "covered_rows"]

#: What a row of an answer takes: those of a BTREE come in the order of values, and are put into that of addresses.
_ANSWERED, _ANSWERED_ELSE = {"BTREE": 50.0}, 4.0
#: Types that can say how many rows they will name for less than it takes to name them.
_ESTIMATING = ("BTREE", "ZONEMAP", "BLOOMFILTER")
#: What a row that is looked at takes, and each of its bytes by whether the type is of fixed width.
_LOOKED_AT, _FIXED_BYTE, _VARYING_BYTE = 1.0, 0.15, 0.4
#: What one of few rows takes that is picked out.
_PICKED = 60.0
#: Bytes of a value whose type does not tell, and of an address.
_TYPICAL, _ADDRESS = 24, 8
#: What a byte takes on its way from a store.
_NEAR, _FAR = 0.05, 8.0
#: By how much a look at the rows must be expected to cost less before an index is passed over.
_MARGIN_NEAR, _MARGIN_FAR = 1e6, 25e6


@dataclass(frozen=True, slots=True)
class Choice:
    """The parts of a condition that indexes are asked, and how many rows each answer is expected to name."""

    plan: FilterPlan
    #: By the number of the part; None where only asking tells.
    rows: tuple[int | None, ...]
    #: By the number of the part: why an index is not asked that could be.
    declined: tuple[str | None, ...]


def choose(plan: FilterPlan, table: OpenTable, *, always: bool = False, told: bool = False) -> Choice:
    """The lookups that are worth their cost; all of them if ``always``. Indexes are asked for estimates, no more.

    ``told`` asks for the estimates of all, also where they take as long as the answer, for somebody who wants to know.
    """
    among = [covered_rows(table, covered) for covered in plan.covered]
    rows = [None if found is None else _expected(found, table) for found in plan.lookups]
    lookups, declined = list(plan.lookups), list[str | None]([None] * len(rows))
    # The fewest first: what they leave has to be looked at, or looked up, and no other row.
    known = sorted((count, number) for number, count in enumerate(rows) if count is not None and among[number])
    share, margin = 1.0, _MARGIN_NEAR if table.near else _MARGIN_FAR
    for count, number in [] if always else known:
        found, expected = lookups[number], min(count, among[number])
        assert found is not None
        asked = _asked(found, table, count if isinstance(found, IndexLookup) else None)
        if asked <= margin or asked - _looked_at(plan.parts[number], table, among[number], share) <= margin:
            share = min(share, expected / among[number])
            continue
        lookups[number] = None
        declined[number] = f"about {expected:,} of {among[number]:,} rows: looking at all is expected to cost less"
    if told:
        rows = [None if found is None else _expected(found, table, told=True) for found in plan.lookups]
    chosen = replace(plan, lookups=tuple(lookups)) if any(declined) else plan
    return Choice(chosen, tuple(rows), tuple(declined))


def covered_rows(table: OpenTable, fragments: frozenset[int]) -> int:
    """Rows of some fragments, as far as the manifest says."""
    counts = table.facts.counts
    if len(fragments) == len(counts.ids):
        return int(counts.physical.sum())
    return int(counts.physical[[counts.places[number] for number in fragments]].sum())


def _expected(lookups: Lookups, table: OpenTable, *, told: bool = False) -> int | None:
    """About how many rows the answer will name; None where only asking tells."""
    match lookups:
        case IndexLookup():
            return _expected_of(lookups, table, told=told)
        case Negated(part):
            inner = _expected(part, table, told=told)
            return None if inner is None else max(covered_rows(table, covered_by(part)) - inner, 0)
        case Both(parts):
            some = [count for part in parts if (count := _expected(part, table, told=told)) is not None]
            return min(some) if some else None
        case Either(parts):
            each = [_expected(part, table, told=told) for part in parts]
            return reduce(lambda one, other: None if one is None or other is None else one + other, each)


def _expected_of(lookup: IndexLookup, table: OpenTable, *, told: bool = False) -> int | None:
    if lookup.type not in _ESTIMATING and not told:
        return None
    total = 0
    for segment in lookup.segments:
        index = open_segment(segment, table.places, stable_row_ids=table.facts.stable_row_ids)
        found = None if isinstance(index, Skipped) else index.estimate(lookup.query)
        if found is None:
            return None
        total += found
    return total


def _asked(lookups: Lookups, table: OpenTable, known: int | None = None) -> float:
    """What asking costs; answers of a size that is not known cost little. ``known`` is that of a single question."""
    match lookups:
        case IndexLookup():
            count = _expected_of(lookups, table) if known is None else known
            if count is None:
                return 0.0
            size = _ADDRESS + _width(lookups.segments[0].kind) if lookups.type in _ANSWERED else 0
            return count * (_ANSWERED.get(lookups.type, _ANSWERED_ELSE) + size * _byte(table))
        case Negated(part):
            return _asked(part, table)
    return sum(_asked(part, table) for part in lookups.parts)


def _looked_at(part: Expr, table: OpenTable, rows: int, share: float) -> float:
    """What it costs to look at the rows that are left, all of them or one by one."""
    whole = _LOOKED_AT
    for field in reads_of(table.facts.stored, [part]).arrow:
        width = _width(field.type)
        whole += width * ((_FIXED_BYTE if is_fixed(field.type) else _VARYING_BYTE) + _byte(table))
    return rows * min(whole, share * _PICKED + share * (whole - _LOOKED_AT))


def _width(kind: pa.DataType) -> float:
    return row_bits(kind) / 8 if is_fixed(kind) else _TYPICAL


def _byte(table: OpenTable) -> float:
    return _NEAR if table.near else _FAR
