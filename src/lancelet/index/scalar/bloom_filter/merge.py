"""Merging BLOOMFILTER indexes: filters of zones whose rows are still there, moved along, and those of new rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lancelet.index.building import Built, Target
from lancelet.index.merging import Part, first_number
from lancelet.index.moved_zones import moved_zones, nulls_within
from lancelet.index.parameters import number, whole
from lancelet.index.scalar.bloom_filter.build import SCHEMA, filter_batches, write_bloom_filters
from lancelet.index.scalar.bloom_filter.search import DATA, FILE, HAS_NULL, ITEMS, PROBABILITY
from lancelet.index.zones import NullRows, ZonePlaces, read_null_rows
from lancelet.rows.row_sets import RowSet, union_all, write_row_set

__all__ = ["like_bloom_filter", "merge_bloom_filters"]

#: Filters read at a time.
_AT_ONCE = 64


def merge_bloom_filters(
    parts: Sequence[Part], rows: Iterable[pa.RecordBatch], target: Target, parameters: Mapping[str, object]
) -> Built:
    """Write the index of what segments hold and of new rows, whose filters are like those of the first segment."""
    items = whole(parameters, "number_of_items", first_number(parts, FILE, "bloomfilter_item", ITEMS))
    probability = number(parameters, "probability", _probability(parts), above=0, below=1)
    nulls: list[RowSet | None] = []
    added = NullRows()

    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            table = part.files.open(FILE)
            stored = read_null_rows(table)
            moved = None if stored is None else part.row_set(stored)
            nulls.append(moved)
            yield from _moved(part, moved)
        yield from filter_batches(rows, added, items, probability)

    def known() -> bytes | None:
        found = [one for one in nulls if one is not None]
        return write_row_set(union_all([*found, added.rows()])) if len(found) == len(nulls) else None

    return write_bloom_filters(batches(), known, items, probability, target)


def like_bloom_filter(part: Part) -> dict[str, object]:
    """The parameters that a segment was built with."""
    items = first_number([part], FILE, "bloomfilter_item", ITEMS)
    return {"number_of_items": items, "probability": _probability([part])}


def _probability(parts: Sequence[Part]) -> float:
    found = [part.files.open(FILE).metadata.get("bloomfilter_probability") for part in parts[:1]]
    return next((float(text) for text in found if text is not None), PROBABILITY)


def _moved(part: Part, nulls: RowSet | None) -> Iterator[pa.RecordBatch]:
    """The filters of a segment, each for the rows that its zone became."""
    table = part.files.open(FILE)
    origins, places = moved_zones(part, ZonePlaces.read(table))
    for start in range(0, len(origins), _AT_ONCE):
        at = origins[start : start + _AT_ONCE]
        wanted, again = np.unique(at, return_inverse=True)
        has_null, data = (column.take(pa.array(again)) for column in table.read([HAS_NULL, DATA], wanted))
        here = ZonePlaces(*(column[start : start + _AT_ONCE] for column in places.arrays()))
        if nulls is not None:
            has_null = pa.array(nulls_within(here, nulls) > 0)
        yield pa.record_batch([*here.columns().values(), has_null, data], schema=SCHEMA)
