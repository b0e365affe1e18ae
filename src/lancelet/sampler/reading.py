"""Rows for batches: many batches' rows taken together, and streams cut into batches of one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.scan_options import Columns
from lancelet.query.request import ROW_ID

__all__ = ["Numbers", "as_batch", "cut", "taken"]

Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.uint64]
#: No more rows than these are taken together, however many batches are to be read ahead.
_MOST_ROWS = 2**16


def taken(
    dataset: LanceDataset,
    groups: Iterable[Numbers],
    columns: Columns | None,
    *,
    by_id: bool = False,
    with_row_id: bool = False,
    ahead: int = 16,
) -> Iterator[pa.RecordBatch]:
    """A batch for each group of row numbers, or of row ids; those of ``ahead`` groups are read together.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://taken-batches")
    >>> [batch["x"].to_pylist() for batch in taken(dataset, [np.array([2, 0]), np.array([1])], None)]
    [[3, 1], [2]]
    """
    chosen = _with_row_id(dataset, columns) if with_row_id else columns
    waiting = iter(groups)
    while together := _some(waiting, max(ahead, 1)):
        numbers = np.concatenate(together)
        table = dataset.take_rows(numbers, chosen) if by_id else dataset.take(numbers, chosen)
        whole, start = as_batch(table), 0
        for group in together:
            yield whole.slice(start, len(group))
            start += len(group)


def _some(groups: Iterator[Numbers], most: int) -> list[Numbers]:
    found: list[Numbers] = []
    rows = 0
    for group in islice(groups, most):
        found.append(group)
        rows += len(group)
        if rows + len(group) > _MOST_ROWS:
            break
    return found


def _with_row_id(dataset: LanceDataset, columns: Columns | None) -> Columns:
    if columns is None:
        return [*dataset.schema.names, ROW_ID]
    if isinstance(columns, Sequence):
        return [*columns, *([] if ROW_ID in columns else [ROW_ID])]
    return {**columns, ROW_ID: columns.get(ROW_ID, ROW_ID)}


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as one batch.

    >>> as_batch(pa.table({"x": pa.chunked_array([[1], [2]])})).num_rows
    2
    """
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in table.schema], schema=table.schema)


def cut(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of ``size``, the last one shorter.

    >>> [batch.num_rows for batch in cut([pa.record_batch({"x": [1, 2, 3]}), pa.record_batch({"x": [4, 5]})], 2)]
    [2, 2, 1]
    """
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows < size:
            continue
        whole = as_batch(pa.Table.from_batches(held))
        full = rows - rows % size
        for start in range(0, full, size):
            yield whole.slice(start, size)
        held = [whole.slice(full)] if full < rows else []
        rows -= full
    if rows:
        yield as_batch(pa.Table.from_batches(held))
