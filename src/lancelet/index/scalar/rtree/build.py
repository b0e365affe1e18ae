"""Building an RTREE index: boxes in an order that keeps neighbours together, in pages; then boxes around the pages.

page_data    bbox struct<xmin, ymin, xmax, ymax> | id u64: the rows, then for each page a line, again and again
             until there is one page; there the id is the number of the page, in the order of the file
nulls        one line: the set of rows without a geometry
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.index.building import Built, Target
from lancelet.index.external_sort import IDS, VALUES, rows_of, sorted_rows
from lancelet.index.parameters import whole
from lancelet.index.scalar.rtree.boxes import SIDES, boxes_of, packed, unpacked
from lancelet.rows.addresses import UInt64s
from lancelet.rows.row_sets import NO_ROWS, RowSet, union_all, write_row_set

__all__ = [
    "BOX",
    "ID",
    "NULLS",
    "NULLS_FILE",
    "PAGES",
    "PAGE_ROWS",
    "TYPE_URL",
    "Gathered",
    "build_rtree",
    "write_rtree",
]

TYPE_URL = "/lance.index.pb.RTreeIndexDetails"
PAGES, NULLS_FILE = "page_data.lance", "nulls.lance"
BOX, ID, NULLS = "bbox", "id", "nulls"
PAGE_ROWS = 4096
_BOX_TYPE = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in SIDES])
_SCHEMA = pa.schema(
    [
        pa.field(BOX, _BOX_TYPE, nullable=False, metadata={"ARROW:extension:name": "geoarrow.box"}),
        pa.field(ID, pa.uint64(), nullable=False),
    ]
)
_Floats = npt.NDArray[np.float64]


class Gathered:
    """Rows of geometries as boxes to be sorted; the rows without one are gathered on the way."""

    def __init__(self, rows: Iterable[pa.RecordBatch]) -> None:
        self._rows = rows
        self.nulls: RowSet = NO_ROWS

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            values, ids = batch.column(VALUES), batch.column(IDS).to_numpy()
            if values.null_count:
                self.nulls = union_all([self.nulls, RowSet.of(ids[np.asarray(values.is_null())])])
            boxes = boxes_of(values)
            yield rows_of(packed(boxes.sides), pa.array(ids[boxes.rows]))


def build_rtree(rows: Iterable[pa.RecordBatch], target: Target, parameters: Mapping[str, object]) -> Built:
    """Write the index of rows that come in any order, each a geometry and a row id. Parameter: ``page_size``."""
    size = whole(parameters, "page_size", PAGE_ROWS, least=2, most=2**20)
    gathered = Gathered(rows)
    return write_rtree(sorted_rows(gathered, memory=target.memory), lambda: gathered.nulls, target, size)


def write_rtree(rows: Iterable[pa.RecordBatch], nulls: Callable[[], RowSet], target: Target, size: int) -> Built:
    """Write the index of boxes that come in their order; ``nulls`` are asked for once all have come."""
    pages = _Pages(size)
    with target.file(PAGES, _SCHEMA) as file:
        for batch in rows:
            sides = unpacked(batch.column(VALUES))
            pages.add(sides)
            file.write(_lines(sides, batch.column(IDS).to_numpy()))
        level, number = pages.boxes(), 0
        count = len(level)
        while len(level) > 1:
            file.write(_lines(level, np.arange(number, number + len(level), dtype=np.uint64)))
            number += len(level)
            level = _grouped(level, size)
            count += len(level)
        around = _grouped(level, max(len(level), 1))
        for key, value in (("page_size", size), ("num_pages", count), ("num_items", pages.count)):
            file.add_schema_metadata(key, str(value))
        bounds = around[0].tolist() if len(around) else [None] * 4
        named = dict(zip(("minx", "miny", "maxx", "maxy"), bounds, strict=True))
        file.add_schema_metadata("bbox", json.dumps(named, separators=(",", ":")))
    schema = pa.schema([pa.field(NULLS, pa.binary(), nullable=False)])
    with target.file(NULLS_FILE, schema) as file:
        file.write(pa.record_batch([pa.array([write_row_set(nulls())], pa.binary())], schema=schema))
    return target.built(TYPE_URL, 0)


def _lines(sides: _Floats, ids: UInt64s) -> pa.RecordBatch:
    columns = [pa.array(np.ascontiguousarray(sides[:, place])) for place in range(4)]
    return pa.record_batch([pa.StructArray.from_arrays(columns, fields=list(_BOX_TYPE)), pa.array(ids)], schema=_SCHEMA)


def _grouped(sides: _Floats, size: int) -> _Floats:
    """The boxes around each so many boxes."""
    if not len(sides):
        return sides
    cuts = np.arange(0, len(sides), size)
    low = np.minimum.reduceat(sides[:, :2], cuts, axis=0)
    return np.concatenate([low, np.maximum.reduceat(sides[:, 2:], cuts, axis=0)], axis=1)


class _Pages:
    """The boxes around pages, gathered while rows go by."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.count = 0
        self._whole: list[_Floats] = []
        #: The rows of the page that is not full.
        self._open = np.empty((0, 4))

    def add(self, sides: _Floats) -> None:
        """Take in the next rows."""
        self.count += len(sides)
        waiting = np.concatenate([self._open, sides])
        full = len(waiting) // self._size * self._size
        self._whole.append(_grouped(waiting[:full], self._size))
        self._open = waiting[full:]

    def boxes(self) -> _Floats:
        """The box around each page."""
        return np.concatenate([np.empty((0, 4)), *self._whole, _grouped(self._open, self._size)])
