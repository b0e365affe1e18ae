"""Searching a JSON index: questions about the value at its path are put to the index that holds the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lancelet.encodings.json_paths import JsonStep, key_step
from lancelet.format.index_details import JsonDetails
from lancelet.index.answers import Answer, Domain, OpenIndex, Statistics
from lancelet.index.files import IndexFiles
from lancelet.index.queries import JsonPath, Query
from lancelet.index.scalar.json.target import stored_type
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_sets import NO_ROWS

__all__ = ["JsonIndex"]

#: Functions that give the value as it is, if it is of their type.
_TYPES = {
    "json_get_string": pa.string(),
    "json_get_int": pa.int64(),
    "json_get_float": pa.float64(),
    "json_get_bool": pa.bool_(),
}


@dataclass(frozen=True, slots=True)
class JsonIndex:
    """A JSON index, open."""

    files: IndexFiles
    steps: tuple[JsonStep, ...]
    details: JsonDetails
    #: The type of the index that holds the values, and what opens it for values of a type.
    kind: str
    target: Callable[[pa.DataType], OpenIndex]

    @property
    def domain(self) -> Domain:
        """That of the index that holds the values."""
        return self.target(pa.string()).domain

    def answers(self, query: Query) -> bool:
        """What the index of the values answers, about the value at the same path."""
        if not isinstance(query, JsonPath) or (key_step(query.path),) != self.steps:
            return False
        kind = _TYPES.get(query.function)
        return kind is not None and self.target(kind).answers(query.query)

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """The answer about the values; any row may be meant where the function gives values of another type."""
        target, inner = self._asked(query)
        if target is None:
            return Answer(SelectionMask(NO_ROWS, inverted=True), exact=False)
        return target.search(inner, nulls=nulls)

    def estimate(self, query: Query) -> int | None:
        """That of the index of the values; None where it cannot tell."""
        target, inner = self._asked(query)
        return None if target is None else target.estimate(inner)

    def statistics(self) -> Statistics:
        """What the index of the values says."""
        target = self._stored()
        return {"path": self.details.path} if target is None else target.statistics() | {"path": self.details.path}

    def prewarm(self) -> None:
        """Load the index of the values."""
        target = self._stored()
        if target is not None:
            target.prewarm()

    def _stored(self) -> OpenIndex | None:
        kind = stored_type(self.files, self.kind, self.details)
        return None if kind is None else self.target(kind)

    def _asked(self, query: Query) -> tuple[OpenIndex | None, Query]:
        if not isinstance(query, JsonPath):
            raise TypeError(f"a JSON index is not asked {query}")
        kind = _TYPES[query.function]
        fits = stored_type(self.files, self.kind, self.details) == kind
        return (self.target(kind) if fits else None), query.query
