"""Merging ZONEMAP indexes: lines of zones whose rows are still there, moved along with them, and those of new rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.index.building import Built, Target
from lancelet.index.merging import Part, first_number
from lancelet.index.moved_zones import moved_zones, nulls_within
from lancelet.index.parameters import whole
from lancelet.index.scalar.zonemap.build import lines_of, write_zonemap, zonemap_schema
from lancelet.index.scalar.zonemap.search import FILE, ROWS_PER_ZONE, read_zones
from lancelet.rows.row_sets import RowSet, union_all, write_row_set

__all__ = ["like_zonemap", "merge_zonemaps"]


@dataclass(frozen=True, slots=True)
class _Moved:
    lines: pa.RecordBatch
    #: None where a segment knows its nulls by zone only.
    nulls: RowSet | None


def merge_zonemaps(
    parts: Sequence[Part],
    rows: Iterable[pa.RecordBatch],
    kind: pa.DataType,
    target: Target,
    parameters: Mapping[str, object],
) -> Built:
    """Write the index of what segments hold and of new rows, the zones of which are like those of the first segment."""
    size = whole(parameters, "rows_per_zone", first_number(parts, FILE, "rows_per_zone", ROWS_PER_ZONE))
    found = [_moved(part, kind) for part in parts]
    lines, nulls = lines_of(rows, kind, size)
    found.append(_Moved(lines, nulls))
    together = pa.Table.from_batches([one.lines for one in found])
    by_place = together.sort_by([("fragment_id", "ascending"), ("zone_start", "ascending")])
    merged = pa.record_batch([_whole(column) for column in by_place.columns], schema=together.schema)
    known = [one.nulls for one in found if one.nulls is not None]
    stored = write_row_set(union_all(known)) if len(known) == len(found) else None
    return write_zonemap(merged, stored, size, target)


def like_zonemap(part: Part) -> dict[str, object]:
    """The parameters that a segment was built with."""
    return {"rows_per_zone": first_number([part], FILE, "rows_per_zone", ROWS_PER_ZONE)}


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _moved(part: Part, kind: pa.DataType) -> _Moved:
    """The lines of a segment, each for the rows that its zone became."""
    zones = read_zones(part.files.open(FILE), kind)
    origins, places = moved_zones(part, zones.places)
    nulls = None if zones.nulls is None else part.row_set(zones.nulls)
    lengths = places.lengths.astype(np.int64)
    # What is left of a zone has as many nulls and NaNs as it had, at most.
    null_counts = np.minimum(zones.null_counts[origins], lengths) if nulls is None else nulls_within(places, nulls)
    nan_counts = np.minimum(zones.nan_counts[origins], lengths)
    at = pa.array(origins)
    columns = [
        zones.low.take(at),
        zones.high.take(at),
        pa.array(null_counts.astype(np.uint32)),
        pa.array(nan_counts.astype(np.uint32)),
        *places.columns().values(),
    ]
    return _Moved(pa.record_batch(columns, schema=zonemap_schema(kind)), nulls)
