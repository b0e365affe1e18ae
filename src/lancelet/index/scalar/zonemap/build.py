"""Building a ZONEMAP index: one pass over the rows, one line for each zone.

    min | max | null_count u32 | nan_count u32 | fragment_id u64 | zone_start u64 | zone_length u64

The bounds are of what is neither null nor NaN; a zone with any NaN has NaN for its largest value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.format.index_details import ZoneMapDetails, write_zone_map_details
from lancelet.index.building import Built, Target
from lancelet.index.order import extremes
from lancelet.index.parameters import whole
from lancelet.index.scalar.zonemap.search import FILE, ROWS_PER_ZONE
from lancelet.index.zones import NULL_BITMAP, NullRows, Zone, ZonePlaces, zones_of
from lancelet.rows.row_sets import RowSet, write_row_set

__all__ = ["TYPE_URL", "build_zonemap", "lines_of", "write_zonemap", "zonemap_schema"]

TYPE_URL = "/lance.table.ZoneMapIndexDetails"


def build_zonemap(
    rows: Iterable[pa.RecordBatch], kind: pa.DataType, target: Target, parameters: Mapping[str, object]
) -> Built:
    """Write the index of rows that come in the order of their addresses. Parameter: ``rows_per_zone``."""
    size = whole(parameters, "rows_per_zone", ROWS_PER_ZONE)
    lines, nulls = lines_of(rows, kind, size)
    return write_zonemap(lines, write_row_set(nulls), size, target)


def lines_of(rows: Iterable[pa.RecordBatch], kind: pa.DataType, size: int) -> tuple[pa.RecordBatch, RowSet]:
    """The lines of zones of so many rows, which come in the order of their addresses, and the rows that are null."""
    nulls = NullRows()
    lines = _Lines(kind)
    for zone in zones_of(nulls.watched(rows), size):
        lines.add(zone)
    return lines.batch(), nulls.rows()


def write_zonemap(lines: pa.RecordBatch, nulls: bytes | None, size: int, target: Target) -> Built:
    """Write the lines of zones; ``nulls`` are None where they are not known exactly."""
    with target.file(FILE, lines.schema) as file:
        file.add_schema_metadata("rows_per_zone", str(size))
        if nulls is not None:
            file.add_schema_metadata(NULL_BITMAP, str(file.add_global_buffer(nulls)))
        file.write(lines)
    details = ZoneMapDetails(size, use_seeds=False, has_null_bitmap=nulls is not None)
    return target.built(TYPE_URL, 0, write_zone_map_details(details))


def zonemap_schema(kind: pa.DataType) -> pa.Schema:
    """The columns of the file of an index over a type."""
    counts = [pa.field(name, pa.uint32(), nullable=False) for name in ("null_count", "nan_count")]
    places = [pa.field(name, pa.uint64(), nullable=False) for name in ("fragment_id", "zone_start", "zone_length")]
    return pa.schema([pa.field("min", kind), pa.field("max", kind), *counts, *places])


class _Lines:
    """What is known of the zones so far."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._bounds: list[tuple[pa.Array, pa.Array]] = []
        self._counts: list[tuple[int, int, int, int, int]] = []

    def add(self, zone: Zone) -> None:
        """Take in a zone."""
        nans = int(pc.sum(pc.is_nan(zone.values)).as_py() or 0) if pat.is_floating(self._kind) else 0
        self._bounds.append(_bounds(zone.values, nans))
        self._counts.append((zone.values.null_count, nans, zone.fragment, zone.start, zone.length))

    def batch(self) -> pa.RecordBatch:
        """The lines of all zones."""
        schema = zonemap_schema(self._kind)
        counts = np.array(self._counts, np.uint64).reshape(-1, 5)
        nothing = pa.array([], self._kind)
        columns = [
            pa.concat_arrays([nothing, *(low for low, _ in self._bounds)]),
            pa.concat_arrays([nothing, *(high for _, high in self._bounds)]),
            pa.array(counts[:, 0].astype(np.uint32)),
            pa.array(counts[:, 1].astype(np.uint32)),
            *ZonePlaces(counts[:, 2], counts[:, 3], counts[:, 4]).columns().values(),
        ]
        return pa.record_batch(columns, schema=schema)


def _bounds(values: pa.Array, nans: int) -> tuple[pa.Array, pa.Array]:
    """The smallest and the largest value, each as an array of one."""
    low, high = extremes(values)
    return low, pa.array([float("nan")], values.type) if nans else high
