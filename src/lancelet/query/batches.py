"""Batches: tables cut to the sizes that a request asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lancelet.query.joining import one_batch
from lancelet.query.request import ScanRequest

__all__ = ["batches_of", "limited"]


def limited(tables: Iterable[pa.Table], skip: int, take: int | None) -> Iterator[pa.Table]:
    """The rows of tables after the first ``skip``, at most ``take`` of them; no table is asked for in vain.

    >>> [table.num_rows for table in limited(iter([pa.table({"x": [1, 2, 3]}), pa.table({"x": [4]})]), 1, 1)]
    [1]
    """
    if take == 0:
        return
    for table in tables:
        if skip >= table.num_rows:
            skip -= table.num_rows
            continue
        if skip or (take is not None and take < table.num_rows):
            table = table.slice(skip, take)
            skip = 0
        if take is not None:
            take -= table.num_rows
        yield table
        if take == 0:
            return


def batches_of(tables: Iterable[pa.Table], request: ScanRequest) -> Iterator[pa.RecordBatch]:
    """Batches of the sizes asked for. They end where a table does, unless sizes are to be strict."""
    if request.strict_batch_size:
        yield from _strict(tables, request.batch_size)
        return
    for table in tables:
        size = request.batch_size
        if request.batch_bytes is not None:
            size = max(min(size, request.batch_bytes * table.num_rows // max(table.nbytes, 1)), 1)
        for start in range(0, table.num_rows, size):
            yield one_batch(table.slice(start, size) if table.num_rows > size else table)


def _strict(tables: Iterable[pa.Table], size: int) -> Iterator[pa.RecordBatch]:
    rest: list[pa.Table] = []
    held = 0
    for table in tables:
        start = 0
        while held + table.num_rows - start >= size:
            piece = table.slice(start, size - held)
            yield one_batch(pa.concat_tables([*rest, piece]))
            start, rest, held = start + piece.num_rows, [], 0
        if start < table.num_rows:
            rest.append(table.slice(start))
            held += table.num_rows - start
    if held:
        yield one_batch(pa.concat_tables(rest))
