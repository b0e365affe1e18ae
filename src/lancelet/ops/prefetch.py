"""Reading ahead: the next batches of a source are made on a thread of their own while the last ones are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

__all__ = ["ahead_of"]

#: So many bytes are handed over at a time: few enough to hold twice, enough to be worth the thread.
_PIECE = 8 * 2**20


def ahead_of(batches: Iterable[pa.RecordBatch], *, piece: int = _PIECE) -> Iterator[pa.RecordBatch]:
    """The same batches; while some are worked on, about ``piece`` bytes of those that follow are read.

    Errors of the source are raised where its batches end. When the iterator is closed, the source is read no further.

    >>> [batch.num_rows for batch in ahead_of([pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})])]
    [2, 1]
    """
    source = iter(batches)
    with ThreadPoolExecutor(1, thread_name_prefix="lancelet-source") as thread:
        waiting = thread.submit(_next_piece, source, piece)
        while True:
            found, error = waiting.result()
            if found and error is None:
                waiting = thread.submit(_next_piece, source, piece)
            yield from found
            if error is not None:
                raise error
            if not found:
                return


def _next_piece(source: Iterator[pa.RecordBatch], size: int) -> tuple[list[pa.RecordBatch], Exception | None]:
    """The next batches of so many bytes together, fewer at the end; and the error that ended the source, if one did."""
    found: list[pa.RecordBatch] = []
    taken = 0
    try:
        for batch in source:
            found.append(batch)
            taken += batch.nbytes
            if taken >= size:
                break
    except Exception as error:  # noqa: BLE001 - whatever the caller's iterator raises is the caller's to see
        return found, error
    return found, None
