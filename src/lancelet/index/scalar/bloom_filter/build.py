"""Building a BLOOMFILTER index: one pass over the rows, one filter for each zone.

fragment_id u64 | zone_start u64 | zone_length u64 | has_null bool | bloom_filter_data binary
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from lancelet.index.building import Built, Target
from lancelet.index.parameters import number, whole
from lancelet.index.scalar.bloom_filter.filters import filter_bytes, new_filter
from lancelet.index.scalar.bloom_filter.search import DATA, FILE, HAS_NULL, ITEMS, PROBABILITY
from lancelet.index.zones import NULL_BITMAP, NullRows, Zone, ZonePlaces, zones_of
from lancelet.rows.row_sets import write_row_set

__all__ = ["SCHEMA", "TYPE_URL", "build_bloom_filter", "filter_batches", "write_bloom_filters"]

TYPE_URL = "/lance.index.pb.BloomFilterIndexDetails"
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.uint64(), nullable=False) for name in ("fragment_id", "zone_start", "zone_length")),
        pa.field(HAS_NULL, pa.bool_(), nullable=False),
        pa.field(DATA, pa.binary(), nullable=False),
    ]
)
#: Filters that are written at once.
_AT_ONCE = 64


def build_bloom_filter(rows: Iterable[pa.RecordBatch], target: Target, parameters: Mapping[str, object]) -> Built:
    """Write the index of rows that come in the order of their addresses.

    Parameters: ``number_of_items``, the rows of a zone, and ``probability``, that of a zone being looked at in vain.
    """
    items = whole(parameters, "number_of_items", ITEMS)
    probability = number(parameters, "probability", PROBABILITY, above=0, below=1)
    nulls = NullRows()
    batches = filter_batches(rows, nulls, items, probability)
    return write_bloom_filters(batches, lambda: write_row_set(nulls.rows()), items, probability, target)


def filter_batches(
    rows: Iterable[pa.RecordBatch], nulls: NullRows, items: int, probability: float
) -> Iterator[pa.RecordBatch]:
    """The filters of zones of so many rows, which come in the order of their addresses; nulls are noted on the way."""
    size = filter_bytes(items, probability)
    return _batches(_line(zone, size) for zone in zones_of(nulls.watched(rows), items))


_Line = tuple[int, int, int, bool, bytes]


def _line(zone: Zone, size: int) -> _Line:
    data = new_filter(zone.values, size)
    return zone.fragment, zone.start, zone.length, bool(zone.values.null_count), data


def _batches(lines: Iterable[_Line]) -> Iterator[pa.RecordBatch]:
    waiting: list[_Line] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) == _AT_ONCE:
            yield _batch(waiting)
            waiting = []
    if waiting:
        yield _batch(waiting)


def _batch(lines: list[_Line]) -> pa.RecordBatch:
    fragments, starts, lengths, has_null, data = zip(*lines, strict=True)
    places = ZonePlaces(*(np.array(column, np.uint64) for column in (fragments, starts, lengths)))
    columns = [*places.columns().values(), pa.array(has_null, pa.bool_()), pa.array(data, pa.binary())]
    return pa.record_batch(columns, schema=SCHEMA)


def write_bloom_filters(
    batches: Iterable[pa.RecordBatch], nulls: Callable[[], bytes | None], items: int, probability: float, target: Target
) -> Built:
    """Write the filters of zones; the nulls are asked for once all of them have gone by, None if they are not known."""
    with target.file(FILE, SCHEMA) as file:
        for batch in batches:
            file.write(batch)
        file.add_schema_metadata("bloomfilter_item", str(items))
        file.add_schema_metadata("bloomfilter_probability", np.format_float_positional(probability, trim="-"))
        stored = nulls()
        if stored is not None:
            file.add_schema_metadata(NULL_BITMAP, str(file.add_global_buffer(stored)))
    return target.built(TYPE_URL, 0)
