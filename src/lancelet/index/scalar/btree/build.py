"""Building a BTREE index: values in order beside their rows, and of each page its smallest and largest value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from lancelet.index.building import Built, Target
from lancelet.index.external_sort import IDS, VALUES, sorted_rows
from lancelet.index.parameters import whole
from lancelet.index.scalar.btree.lookup import LOOKUP, PAGE_ROWS, PAGES

__all__ = ["TYPE_URL", "build_btree", "write_btree"]

TYPE_URL = "/lance.table.BTreeIndexDetails"


def build_btree(
    rows: Iterable[pa.RecordBatch], kind: pa.DataType, target: Target, parameters: Mapping[str, object]
) -> Built:
    """Write the index of rows that come in any order, each a value of a type and an address.

    Parameter ``zone_size``: rows of a page.
    """
    page_rows = whole(parameters, "zone_size", PAGE_ROWS, most=2**20)
    return write_btree(sorted_rows(rows, memory=target.memory), kind, target, page_rows=page_rows)


def write_btree(
    rows: Iterable[pa.RecordBatch], kind: pa.DataType, target: Target, *, page_rows: int = PAGE_ROWS
) -> Built:
    """Write the index of rows that come in the order of their values, nulls first."""
    bounds = _Bounds(kind, page_rows)
    schema = pa.schema([pa.field(VALUES, kind), pa.field(IDS, pa.uint64(), nullable=False)])
    with target.file(PAGES, schema) as file:
        for batch in rows:
            bounds.add(batch.column(VALUES))
            file.write(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
    lookup = bounds.table()
    with target.file(LOOKUP, lookup.schema) as file:
        file.add_schema_metadata("batch_size", str(page_rows))
        file.add_schema_metadata("range_partitioned", "false")
        file.write(lookup)
    return target.built(TYPE_URL, 1 if target.stable_row_ids else 0)


class _Bounds:
    """The first and last value of each page, gathered while rows go by."""

    def __init__(self, kind: pa.DataType, page_rows: int) -> None:
        self._kind, self._page_rows = kind, page_rows
        self._rows = self._nulls = 0
        self._firsts: list[pa.Array] = []
        self._lasts: list[pa.Array] = []
        #: The last value so far: that of the last page, which may not be full.
        self._last = pa.array([], kind)

    def add(self, values: pa.Array) -> None:
        """Take in the values of the next rows."""
        start, stop = self._rows, self._rows + len(values)
        if start == stop:
            return
        size = self._page_rows
        firsts = np.arange(-(-start // size) * size, stop, size)
        ends = np.arange((start // size + 1) * size, stop + 1, size)
        self._firsts.append(values.take(pa.array(firsts - start)))
        self._lasts.append(values.take(pa.array(ends - 1 - start)))
        self._last = values.take(pa.array([len(values) - 1]))
        self._rows, self._nulls = stop, self._nulls + values.null_count

    def table(self) -> pa.RecordBatch:
        """The lookup."""
        size = self._page_rows
        pages = -(-self._rows // size)
        lasts = [*self._lasts, self._last] if self._rows % size else self._lasts
        # Nulls come first, so that all pages before some row are full of them.
        starts = np.arange(pages, dtype=np.int64) * size
        sizes = np.minimum(self._rows - starts, size)
        nulls = np.clip(self._nulls - starts, 0, sizes).astype(np.uint32)
        columns = {
            "min": (pa.concat_arrays([pa.array([], self._kind), *self._firsts]), True),
            "max": (pa.concat_arrays([pa.array([], self._kind), *lasts]), True),
            "null_count": (pa.array(nulls), False),
            "page_idx": (pa.array(np.arange(pages, dtype=np.uint32)), False),
        }
        schema = pa.schema([pa.field(name, array.type, nullable) for name, (array, nullable) in columns.items()])
        return pa.record_batch([array for array, _ in columns.values()], schema=schema)
