"""Building a BITMAP index: rows in order of their values become one set of rows for each value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.file.file_writer import FileWriter
from lancelet.index.building import Built, Target
from lancelet.index.external_sort import IDS, VALUES, sorted_rows
from lancelet.index.row_sets_by_key import stored_sets
from lancelet.index.scalar.bitmap.stored import BITMAPS, FILE, KEYS
from lancelet.index.sorting import changes, equal_runs
from lancelet.rows.row_sets import RowSet, union_all, write_row_set

__all__ = ["TYPE_URL", "add_statistics", "bitmap_schema", "build_bitmap", "write_bitmaps"]

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
    add_statistics(file, count)
    return count


def add_statistics(file: FileWriter, count: int) -> None:
    """Say how many keys there are."""
    file.add_schema_metadata(_STATISTICS, json.dumps({"num_bitmaps": count}, separators=(",", ":")))


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
        bounds = np.append(equal_runs(values), len(values))
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
            yield keys[first:-1], stored_sets(ids, bounds[first:-1])
            last = _Open(keys[-1:], RowSet.of(ids[bounds[-2] :]))
    if last is not None:
        yield last.closed()


def _same(one: pa.Array, other: pa.Array) -> bool:
    return not bool(changes(one, other)[0])
