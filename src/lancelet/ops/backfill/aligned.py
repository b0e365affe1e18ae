"""Aligning: values of live rows, in the order of a scan, as the column of all physical rows that files hold.

A deleted row takes the value of the live row after it, or before it at the end, so that columns without nulls stay so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.rows.deletions import DeletionVector

__all__ = ["WINDOW", "Feed", "aligned"]

#: Live rows that are aligned and written at a time.
WINDOW = 2**16


class Feed:
    """Rows handed out by number, whatever the batches that they come in.

    >>> feed = Feed(pa.schema({"x": pa.int64()}), [pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})])
    >>> feed.take(1)["x"].to_pylist(), feed.take(2)["x"].to_pylist()
    ([1], [2, 3])
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self._schema = schema
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None
        self._taken = 0

    def take(self, count: int) -> pa.Table:
        """The next rows; InvalidInput where there are not so many."""
        pieces, missing = [], count
        while missing:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                found = f"values are given for {self._taken + count - missing} rows"
                raise InvalidInput(f"{found}, expected one for each row of the table")
            pieces.append(batch.slice(0, missing))
            self._rest = batch.slice(missing) if batch.num_rows > missing else None
            missing -= pieces[-1].num_rows
        self._taken += count
        return pa.Table.from_batches(pieces, self._schema)

    def check_end(self) -> None:
        """InvalidInput where rows are left."""
        left = self._rest if self._rest is not None else next(self._batches, None)
        while left is not None:
            if left.num_rows:
                raise InvalidInput(f"values are given for more than the {self._taken} rows of the table")
            left = next(self._batches, None)


def aligned(feed: Feed, deleted: DeletionVector, rows: int) -> Iterator[pa.RecordBatch]:
    """The next live rows of a feed, with rows in the place of the deleted ones; ``rows`` are all physical ones.

    >>> feed = Feed(pa.schema({"x": pa.int64()}), [pa.record_batch({"x": [1, 2]})])
    >>> [batch["x"].to_pylist() for batch in aligned(feed, DeletionVector([0, 3]), 4)]
    [[1, 1, 2, 2]]
    """
    live = rows - len(deleted)
    for first in range(0, live, WINDOW):
        last = min(first + WINDOW, live)
        begin = int(deleted.to_physical([first])[0]) if first else 0
        end = int(deleted.to_physical([last])[0]) if last < live else rows
        table = feed.take(last - first)
        if end - begin > last - first:
            logical = deleted.to_logical(np.arange(begin, end, dtype=np.uint64))
            table = table.take(pa.array(np.clip(logical - first, 0, last - first - 1)))
        yield from table.to_batches()
