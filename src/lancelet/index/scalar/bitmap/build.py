"""Building a BITMAP index: rows in order of their values become one set of rows for each value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.file.file_writer import FileWriter
from lancelet.index.building import Built, Target
from lancelet.index.external_sort import IDS, VALUES, sorted_rows
from lancelet.index.order import is_number, number_keys
from lancelet.index.scalar.bitmap.stored import BITMAPS, FILE, KEYS
from lancelet.kernels import row_sets
from lancelet.rows.addresses import UInt64s
from lancelet.rows.ordering import order_of
from lancelet.rows.row_sets import RowSet, union_all, write_row_set
from lancelet.rows.runs import Int64s

__all__ = ["TYPE_URL", "bitmap_schema", "build_bitmap", "write_bitmaps"]

TYPE_URL = "/lance.table.BitmapIndexDetails"
_STATISTICS = "lance:index_stats"


def build_bitmap(rows: Iterable[pa.RecordBatch], kind: pa.DataType, target: Target) -> Built:
    """Write the index of rows that come in any order, each a value of a type and a row id."""
    with target.file(FILE, bitmap_schema(kind)) as file:
        write_bitmaps(sorted_rows(rows, memory=target.memory), kind, file)
    return target.built(TYPE_URL, 0)


def bitmap_schema(kind: pa.DataType) -> pa.Schema:
    """The columns of the file of an index over a type."""
    return pa.schema([pa.field(KEYS, kind), pa.field(BITMAPS, pa.binary())])


def write_bitmaps(rows: Iterable[pa.RecordBatch], kind: pa.DataType, file: FileWriter) -> int:
    """Write the row sets of rows that come in the order of their values, nulls first; returns how many there are."""
    count = 0
    for keys, sets in _groups(rows):
        count += len(keys)
        file.write(pa.record_batch([keys, sets], schema=bitmap_schema(kind)))
    file.add_schema_metadata(_STATISTICS, json.dumps({"num_bitmaps": count}, separators=(",", ":")))
    return count


@dataclass(frozen=True, slots=True)
class _Open:
    """The last value so far: rows of the next batch may have it too."""

    key: pa.Array
    rows: RowSet

    def closed(self) -> tuple[pa.Array, pa.Array]:
        """The value and its stored row set."""
        return self.key, pa.array([write_row_set(self.rows)], pa.binary())


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Values, each once, and the stored sets of all rows that have them."""
    last: _Open | None = None
    for batch in batches:
        values, ids = batch.column(VALUES), batch.column(IDS).to_numpy()
        bounds = np.append(_starts(values), len(values))
        if len(bounds) < 2:
            continue
        first = 0
        keys = values.take(pa.array(bounds[:-1]))
        if last is not None and _same(last.key, keys[:1]):
            last = _Open(last.key, union_all([last.rows, RowSet.of(ids[: bounds[1]])]))
            first = 1
        if first < len(keys):
            if last is not None:
                yield last.closed()
            yield keys[first:-1], _stored(ids, bounds[first:-1])
            last = _Open(keys[-1:], RowSet.of(ids[bounds[-2] :]))
    if last is not None:
        yield last.closed()


def _stored(ids: UInt64s, bounds: Int64s) -> pa.Array:
    """The stored row set of the rows between each two bounds."""
    ids = ids[bounds[0] : bounds[-1]]
    bounds = bounds - bounds[0]
    rising = ids[1:] > ids[:-1]
    rising[bounds[1:-1] - 1] = True
    if not bool(rising.all()):
        ids, bounds = _rising(ids, bounds)
    ends = np.zeros(len(bounds), np.int64)
    row_sets.measure_row_sets(ids, bounds, False, ends[1:])
    data = np.empty(ends[-1], np.uint8)
    row_sets.write_row_sets(ids, bounds, False, ends[1:], data)
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, offsets, pa.py_buffer(data)])


def _rising(ids: UInt64s, bounds: Int64s) -> tuple[UInt64s, Int64s]:
    """The rows between each two bounds in order, each once."""
    groups = np.repeat(np.arange(len(bounds) - 1, dtype=np.uint64), np.diff(bounds))
    order = order_of(ids)
    order = order[order_of(groups[order])]
    ids, groups = ids[order], groups[order]
    kept = np.concatenate(([True], (ids[1:] != ids[:-1]) | (groups[1:] != groups[:-1])))
    ids, groups = ids[kept], groups[kept]
    return ids, np.searchsorted(groups, np.arange(len(bounds), dtype=np.uint64))


def _starts(values: pa.Array) -> Int64s:
    """Where each run of equal values begins."""
    if not len(values):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], _changes(values[:-1], values[1:]))))


def _changes(one: pa.Array, other: pa.Array) -> Int64s:
    """Whether the values of two arrays differ, place by place; nulls are alike, zeros of either sign are not."""
    nulls = np.asarray(one.is_null()), np.asarray(other.is_null())
    if is_number(one.type):
        differ = number_keys(one, exact=True) != number_keys(other, exact=True)
    else:
        differ = np.asarray(pc.fill_null(pc.not_equal(one, other), True))
    found: Int64s = np.where(nulls[0] | nulls[1], nulls[0] != nulls[1], differ)
    return found


def _same(one: pa.Array, other: pa.Array) -> bool:
    return not bool(_changes(one, other)[0])
