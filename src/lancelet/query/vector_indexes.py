"""Vector indexes, as far as searches ask them: which fragments they cover, and by which metric they were built."""

from __future__ import annotations

from collections.abc import Iterator

from lancelet.expr import Column
from lancelet.format.fields import Field
from lancelet.format.index_details import parse_vector_metric
from lancelet.format.indexes import IndexMetadata
from lancelet.query.facts import TableFacts
from lancelet.query.nearest import Metric
from lancelet.rows.bitmaps import parse_bitmap
from lancelet.table.snapshot import Snapshot

__all__ = ["covered_fragments", "metric_of_index"]

#: Metrics by the number that details of indexes have for them.
_METRICS = (Metric.L2, Metric.COSINE, Metric.DOT, Metric.HAMMING)


def covered_fragments(snapshot: Snapshot, facts: TableFacts, column: Column) -> frozenset[int]:
    """The fragments that a vector index over a column covers."""
    found: set[int] = set()
    for item in _indexes(snapshot, facts, column):
        if item.fragment_bitmap is not None:
            found.update(parse_bitmap(item.fragment_bitmap, f"coverage of index {item.name!r}"))
    return frozenset(found)


def metric_of_index(snapshot: Snapshot, facts: TableFacts, column: Column) -> Metric | None:
    """The metric of the vector index over a column; None where there is none, or it does not say."""
    for item in _indexes(snapshot, facts, column):
        if item.details is not None and item.details.value:
            number = parse_vector_metric(item.details.value)
            return _METRICS[number] if 0 <= number < len(_METRICS) else None
    return None


def _indexes(snapshot: Snapshot, facts: TableFacts, column: Column) -> Iterator[IndexMetadata]:
    field = _field(facts.stored.fields, column.path)
    for item in facts.indexes(snapshot) if field is not None else ():
        about = "" if item.details is None else item.details.kind
        if field is not None and item.keyed_fields == (field.id,) and about == "VectorIndexDetails":
            yield item


def _field(fields: tuple[Field, ...], path: tuple[str, ...]) -> Field | None:
    found = next((item for item in fields if item.name == path[0]), None)
    return found if found is None or len(path) == 1 else _field(found.children, path[1:])
