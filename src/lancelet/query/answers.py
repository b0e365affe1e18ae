"""Answers of indexes brought together: for each fragment the rows that can fulfil a condition, and what to check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lancelet.errors import Corrupt
from lancelet.index.answers import Answer, Domain, Skipped
from lancelet.query.filters import Both, Either, FilterPlan, IndexLookup, Lookups, Negated
from lancelet.query.opened import OpenTable
from lancelet.query.row_ids import addresses_of
from lancelet.query.segments import open_segment
from lancelet.rows.addresses import NO_ADDRESS
from lancelet.rows.bitmaps import BitMap, to_values
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet, union_all
from lancelet.rows.runs import Int64s

__all__ = ["Answers", "Candidates", "answers_of"]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Of one fragment the rows that are to be looked at, and the parts of the condition to check for them."""

    #: Physical offsets, ascending; None for all rows but those ``excluded``.
    rows: Int64s | None
    excluded: Int64s
    #: Numbers of the parts of the condition.
    left: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """What indexes said of the parts of a condition."""

    plan: FilterPlan
    #: By the number of the part.
    found: Mapping[int, Answer]
    #: Rows that are wanted, whatever the condition says of others.
    wanted: tuple[SelectionMask, ...] = ()

    def of_fragment(self, fragment: int) -> Candidates:
        """What is known of the rows of a fragment."""
        known, left = self._known_of(fragment), self.left_of(fragment)
        rows: BitMap | None = None
        excluded = BitMap()
        for mask in (*(self.found[number].mask for number in known), *self.wanted):
            listed = _offsets(mask.listed, fragment)
            if mask.inverted:
                excluded |= _known(listed) | _known(_offsets(mask.nulls, fragment))
            elif listed is not None:
                rows = listed if rows is None else rows & listed
        if rows is None:
            return Candidates(None, to_values(excluded).astype(np.int64), left)
        return Candidates(to_values(rows - excluded).astype(np.int64), np.empty(0, np.int64), left)

    def left_of(self, fragment: int) -> tuple[int, ...]:
        """The parts of the condition that are to be checked for rows of a fragment."""
        known = self._known_of(fragment)
        return tuple(
            number for number in range(len(self.plan.parts)) if number not in known or not self.found[number].exact
        )

    def _known_of(self, fragment: int) -> list[int]:
        return [number for number in self.found if fragment in self.plan.covered[number]]

    def covers(self, fragment: int) -> bool:
        """Whether every answer says something of a fragment."""
        return all(fragment in self.plan.covered[number] for number in self.found)

    def is_empty(self, fragment: int) -> bool:
        """Whether it is known of no row of a fragment that it may be wanted."""
        known = [self.found[number].mask for number in self.found if fragment in self.plan.covered[number]]
        return any(not mask.inverted and fragment not in mask.listed.fragments for mask in (*known, *self.wanted))


def _offsets(rows: RowSet, fragment: int) -> BitMap | None:
    """The offsets of a set in one fragment; None where every row is in it."""
    return rows.fragments[fragment] if fragment in rows.fragments else BitMap()


def _known(rows: BitMap | None) -> BitMap:
    return BitMap(range(1 << 32)) if rows is None else rows


def answers_of(plan: FilterPlan, table: OpenTable, *, allowed: RowSet | None, blocked: RowSet | None) -> Answers:
    """Ask the indexes; ``allowed`` and ``blocked`` are row ids that the caller wants alone, or does not want."""
    found = {number: _answer(lookups, table) for number, lookups in enumerate(plan.lookups) if lookups is not None}
    wanted = [] if allowed is None else [SelectionMask(_addresses(allowed, table))]
    if blocked is not None:
        wanted.append(SelectionMask(_addresses(blocked, table), inverted=True))
    return Answers(plan, found, tuple(wanted))


def _answer(lookups: Lookups, table: OpenTable) -> Answer:
    match lookups:
        case IndexLookup():
            return _looked_up(lookups, table)
        case Negated(part):
            answer = _answer(part, table)
            if not answer.exact:
                # Known too late to plan otherwise: any row may fulfil the opposite.
                return Answer(SelectionMask(NO_ROWS, inverted=True), exact=False)
            return Answer(~answer.mask)
        case Both(parts, exact):
            answers = [_answer(part, table) for part in parts]
            mask = answers[0].mask
            for answer in answers[1:]:
                mask = mask & answer.mask
            return Answer(mask, exact and all(answer.exact for answer in answers))
        case Either(parts):
            answers = [_answer(part, table) for part in parts]
            mask = answers[0].mask
            for answer in answers[1:]:
                mask = mask | answer.mask
            return Answer(mask, all(answer.exact for answer in answers))


def _looked_up(lookup: IndexLookup, table: OpenTable) -> Answer:
    """The answer of all segments of an index, in addresses."""
    listed, nulls, exact = [], [], lookup.exact
    stable = table.facts.stable_row_ids
    for segment in lookup.segments:
        index = open_segment(segment, table.places, stable_row_ids=stable)
        if isinstance(index, Skipped):
            raise Corrupt(f"index {lookup.name!r} was there when the scan was planned: {index.reason}")
        answer = index.search(lookup.query, nulls=lookup.nulls)
        mask = answer.mask
        if index.domain is Domain.ROW_IDS:
            mask = SelectionMask(_addresses(mask.listed, table), _addresses(mask.nulls, table), mask.inverted)
        elif segment.moves is not None:
            moved = segment.moves.of_rows
            mask = SelectionMask(moved(mask.listed), moved(mask.nulls), mask.inverted)
        listed.append(mask.true_among(segment.rows))
        nulls.append(mask.null_among(segment.rows))
        exact = exact and answer.exact
    return Answer(SelectionMask(union_all(listed), union_all(nulls)), exact)


def _addresses(rows: RowSet, table: OpenTable) -> RowSet:
    """The addresses of a set of row ids; rows that were deleted have none."""
    if not rows or not table.facts.stable_row_ids:
        return rows
    found = addresses_of(table, rows.to_values())
    return RowSet.of(found[found != NO_ADDRESS])
