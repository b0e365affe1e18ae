"""Filters met by indexes: which parts of a condition an index answers, for which fragments, and what is left to check.

A condition is cut where ``and`` joins it. Each part is answered by indexes, as a whole, or it is checked row by row.
An answer holds for the fragments that all indexes in it cover; in the others the part is checked. An answer that is
not exact names rows that may fulfil the part, so it is checked, too, but for these rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lancelet.errors import Unsupported
from lancelet.expr import Expr
from lancelet.format.indexes import IndexMetadata
from lancelet.index.answers import OpenIndex, Skipped
from lancelet.index.queries import Query
from lancelet.query.facts import facts_of
from lancelet.query.parts import parts_of
from lancelet.query.segments import Segment, SegmentsByPath, open_segment, segments_by_path
from lancelet.query.terms import All, Any, Node, Not, Term, terms_of
from lancelet.table.paths import Places

__all__ = [
    "Both",
    "Either",
    "FilterPlan",
    "IndexLookup",
    "Lookups",
    "Negated",
    "covered_by",
    "is_exact",
    "plan_filter",
]


@dataclass(frozen=True, slots=True)
class IndexLookup:
    """A question to an index."""

    name: str
    type: str
    #: The column that is asked about.
    path: tuple[str, ...]
    segments: tuple[Segment, ...]
    query: Query
    #: Whether nobody need know for which rows the answer is null.
    nulls: bool
    exact: bool

    @property
    def covered(self) -> frozenset[int]:
        """The fragments that the index covers."""
        return frozenset().union(*(segment.fragments for segment in self.segments))


@dataclass(frozen=True, slots=True)
class Both:
    """Answers joined by ``and``; not exact where some conditions have no answer."""

    parts: tuple[Lookups, ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class Either:
    """Answers joined by ``or``."""

    parts: tuple[Lookups, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """An answer turned around."""

    part: Lookups


Lookups: TypeAlias = IndexLookup | Both | Either | Negated


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """The parts of a condition, for each the lookups that answer it, if any, and the fragments where they do."""

    parts: tuple[Expr, ...]
    lookups: tuple[Lookups | None, ...]
    covered: tuple[frozenset[int], ...]
    #: Why indexes that might have helped are not used.
    skipped: tuple[str, ...] = ()

    @property
    def uses_indexes(self) -> bool:
        """Whether any part is answered by an index."""
        return any(item is not None for item in self.lookups)


def plan_filter(condition: Expr, indexes: Sequence[IndexMetadata], places: Places) -> FilterPlan:
    """How indexes can answer a condition. Nothing is read: indexes are opened only to ask what they can be asked."""
    parts = parts_of(condition)
    choices = _Choices(indexes, places)
    lookups: list[Lookups | None] = []
    covered: list[frozenset[int]] = []
    for part in parts:
        node = terms_of(part) if choices.by_path else None
        found = None if node is None else choices.answer(node, nulls=False)
        where = frozenset() if found is None else covered_by(found)
        lookups.append(found if where else None)
        covered.append(where)
    return FilterPlan(parts, tuple(lookups), tuple(covered), tuple(dict.fromkeys(choices.skipped)))


def covered_by(lookups: Lookups) -> frozenset[int]:
    """The fragments for which every index in it has an answer."""
    match lookups:
        case IndexLookup():
            return lookups.covered
        case Negated(part):
            return covered_by(part)
    return frozenset.intersection(*map(covered_by, lookups.parts))


class _Choices:
    """The indexes of a version by the column that they are over, and the questions that they take."""

    def __init__(self, indexes: Sequence[IndexMetadata], places: Places) -> None:
        self._places, self._stable = places, facts_of(places.manifest).stable_row_ids
        self.skipped: list[str] = []
        self.by_path: SegmentsByPath = {}
        try:
            self.by_path = segments_by_path(indexes, places)
        except Unsupported as error:
            # Rows may be anywhere by now: no index is of use.
            self.skipped.append(str(error))

    def answer(self, node: Node, *, nulls: bool) -> Lookups | None:
        """The lookups for a condition; ``nulls`` where it is part of one that is turned around."""
        match node:
            case Term():
                return self._lookup(node, nulls=nulls)
            case Not(part):
                found = self.answer(part, nulls=True)
                # Of an answer that says too much the opposite says too little.
                return Negated(found) if found is not None and is_exact(found) else None
            case Any(parts):
                each = [self.answer(part, nulls=nulls) for part in parts]
                some = tuple(found for found in each if found is not None)
                return Either(some) if len(some) == len(each) else None
            case All(parts, exact):
                each = [self.answer(part, nulls=nulls) for part in parts]
                some = tuple(found for found in each if found is not None)
                return Both(some, exact and len(some) == len(each)) if some else None

    def _lookup(self, term: Term, *, nulls: bool) -> IndexLookup | None:
        best: IndexLookup | None = None
        for name, segments in self.by_path.get(term.path, {}).items():
            opened = [(segment, self._opened(segment)) for segment in segments]
            reasons = [index.reason for _, index in opened if isinstance(index, Skipped)]
            self.skipped.extend(reasons)
            able = [
                (segment, index.kind)
                for segment, index in opened
                if not isinstance(index, Skipped) and segment.fragments and index.answers(term.query)
            ]
            if not able:
                continue
            found = IndexLookup(
                name,
                able[0][1],
                term.path,
                tuple(segment for segment, _ in able),
                term.query,
                nulls=nulls,
                exact=term.exact,
            )
            if best is None or _rank(found) > _rank(best):
                best = found
        return best

    def _opened(self, segment: Segment) -> OpenIndex | Skipped:
        return open_segment(segment, self._places, stable_row_ids=self._stable)


#: Types whose answers say too much, the worst first: another index is preferred.
_COARSE = ("ZONEMAP", "BLOOMFILTER", "NGRAM")


def _rank(lookup: IndexLookup) -> tuple[int, int]:
    """The better of two indexes that answer the same question: first the finer one, then that which covers more."""
    fineness = len(_COARSE) if lookup.type not in _COARSE else _COARSE.index(lookup.type)
    return fineness, len(lookup.covered)


def is_exact(lookups: Lookups) -> bool:
    """Whether answers may be exact, as far as the question goes; an index may still say that its answer is not."""
    match lookups:
        case IndexLookup():
            return lookups.exact and lookups.type not in _COARSE
        case Negated(part):
            return is_exact(part)
        case Both(parts, exact):
            return exact and all(map(is_exact, parts))
    return all(map(is_exact, lookups.parts))
