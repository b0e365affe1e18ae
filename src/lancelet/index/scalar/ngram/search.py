"""Searching an NGRAM index: the rows that have all tokens of a text; they must be looked at.

Texts that have a text within them have its tokens. The opposite need not be: tokens know neither accents nor order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.index.answers import Answer, Domain, Statistics
from lancelet.index.files import IndexFiles
from lancelet.index.queries import Contains, IsNull, Matches, Query, StartsWith
from lancelet.index.scalar.bitmap.stored import Layout, StoredBitmaps
from lancelet.index.scalar.ngram.build import FILE, SETS, TOKENS
from lancelet.index.scalar.ngram.patterns import required_texts
from lancelet.index.scalar.ngram.tokens import NULLS, tokens_of
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS, RowSet, union_all
from lancelet.rows.treemaps import parse_treemap

__all__ = ["NgramIndex"]

_LAYOUT = Layout(FILE, TOKENS, SETS, parse_treemap)
#: More tokens hardly leave out more rows.
_MOST_TOKENS = 32


@dataclass(frozen=True, slots=True)
class NgramIndex:
    """An NGRAM index, open."""

    files: IndexFiles
    domain: Domain
    kind: str = "NGRAM"

    @property
    def stored(self) -> StoredBitmaps:
        """Its file."""
        return StoredBitmaps(self.files, pa.uint32(), _LAYOUT)

    def answers(self, query: Query) -> bool:
        """Whether a text is within the value, or at its start, if it has a token; patterns with such texts; nulls."""
        return isinstance(query, IsNull) or bool(_wanted(query))

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """Exact for nulls alone."""
        if isinstance(query, IsNull):
            return Answer(SelectionMask(self._rows_with([NULLS])))
        found = union_all([self._rows_with(tokens) for tokens in _wanted(query) or []])
        return Answer(SelectionMask(found, self._rows_with([NULLS]) if nulls else NO_ROWS), exact=False)

    def estimate(self, query: Query) -> int | None:
        """The rows themselves: their sets are small beside the texts."""
        return len(self.search(query, nulls=False).mask.listed)

    def statistics(self) -> Statistics:
        """The number of tokens, that of nulls among them."""
        return {"num_ngrams": self.stored.table.num_rows}

    def prewarm(self) -> None:
        """Load the tokens, and the row sets as far as they fit."""
        self.stored.prewarm()

    def _rows_with(self, tokens: list[int]) -> RowSet:
        """The rows that have all of some tokens."""
        ordered = self.stored.keys().ordered
        wanted = pa.array(tokens, pa.uint32())
        places = ordered.places(wanted)
        if len(places) < len(tokens):
            return NO_ROWS
        found: RowSet | None = None
        for place in places[:_MOST_TOKENS].tolist():
            rows = self.stored.union(np.array([place]))
            found = rows if found is None else found & rows
            if not found:
                return NO_ROWS
        return found or NO_ROWS


def _wanted(query: Query) -> list[list[int]] | None:
    """For each way in which a condition may hold the tokens that a text must have; None where it may have none."""
    match query:
        case Contains(text) | StartsWith(text):
            alternatives: list[list[str]] | None = [[text]]
        case Matches(pattern):
            alternatives = required_texts(pattern)
        case _:
            return None
    if alternatives is None:
        return None
    found = [sorted({token for text in texts for token in tokens_of(text)}) for texts in alternatives]
    return found if all(found) else None
