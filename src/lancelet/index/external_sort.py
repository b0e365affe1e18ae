"""Sorting more rows than fit in memory: sorted runs in temporary files, merged block by block.

batches -> runs, each sorted in memory, spilled but for a single one
        -> of each run a block; the smallest of the blocks' last values is the bound
        -> what is not beyond the bound leaves all blocks, is sorted and handed out; blocks used up are refilled
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from lancelet.index.order import Ascending
from lancelet.index.sorting import sort_places, sort_together

__all__ = ["IDS", "VALUES", "merged_rows", "rows_of", "sorted_rows"]

#: The columns of rows to be indexed: a value, and what the index is to call the row.
VALUES, IDS = "values", "ids"

#: What sorting a run takes: the rows themselves, gathered into one piece, their keys and places, and the sorted copy.
_COPIES = 4
#: Rows of a batch that is handed out.
_BATCH_ROWS = 2**18
#: Fewer rows make blocks slow, however little memory there is.
_SMALLEST_BLOCK = 2**10


def rows_of(values: pa.Array, ids: pa.Array) -> pa.RecordBatch:
    """Rows to be indexed.

    >>> rows_of(pa.array(["a"]), pa.array([7], pa.uint64())).schema.names
    ['values', 'ids']
    """
    return pa.record_batch([values, ids], [VALUES, IDS])


def sorted_rows(batches: Iterable[pa.RecordBatch], *, memory: int) -> Iterator[pa.RecordBatch]:
    """Rows in order of their values, nulls first, holding about ``memory`` bytes; what does not fit waits in files.

    Rows of equal values come in the order in which they were given, unless files were needed.
    """
    with ExitStack() as stack:
        spilled: list[Path] = []
        waiting: list[pa.RecordBatch] = []
        held = rows = 0
        for batch in batches:
            if held + batch.nbytes > memory // _COPIES and waiting:
                spilled.append(_spill(stack, waiting, max(_SMALLEST_BLOCK, _block_rows(memory, held, rows)), spilled))
                waiting, held, rows = [], 0, 0
            if batch.num_rows:
                waiting.append(batch)
                held, rows = held + batch.nbytes, rows + batch.num_rows
        if not spilled:
            yield from _pieces(_sorted(waiting)) if waiting else ()
            return
        if waiting:
            spilled.append(_spill(stack, waiting, max(_SMALLEST_BLOCK, _block_rows(memory, held, rows)), spilled))
            waiting = []
        yield from merged_rows([_read(stack, path) for path in spilled], memory=memory)


def merged_rows(runs: Sequence[Iterator[pa.RecordBatch]], *, memory: int) -> Iterator[pa.RecordBatch]:
    """Rows of several runs, each in order of its values, in order of all values; about ``memory`` bytes are held.

    >>> ids = pa.array([7, 8], pa.uint64())
    >>> odd, even = rows_of(pa.array([1, 3]), ids), rows_of(pa.array([2, 4]), ids)
    >>> [batch[VALUES].to_pylist() for batch in merged_rows([iter([odd]), iter([even])], memory=2**20)]
    [[1, 2, 3], [4]]
    """
    # Half for the blocks at hand, the rest for what is taken from them, sorted and handed out.
    size = memory // (2 * _COPIES * max(len(runs), 1))
    left = [_Run(run) for run in runs]
    while True:
        left = [run for run in left if run.fill(size)]
        if not left:
            return
        bound = _smallest([run.last() for run in left])
        taken = [part for part in (run.take(bound) for run in left) if part.num_rows]
        yield from _pieces(_sorted(taken))


def _block_rows(memory: int, held: int, rows: int) -> int:
    """Rows of the pieces that a run is written in: a block is made of as many as there is room for."""
    return int(memory / 256 / max(held / max(rows, 1), 1))


def _sorted(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    values = [batch.column(VALUES) for batch in batches]
    found, ids = sort_together(values, [batch.column(IDS).to_numpy() for batch in batches])
    return rows_of(found, pa.array(ids))


def _joined(arrays: list[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _pieces(rows: pa.RecordBatch, size: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)


def _spill(stack: ExitStack, batches: list[pa.RecordBatch], piece: int, before: list[Path]) -> Path:
    """Write one sorted run; the folder goes when the stack is closed."""
    if before:
        path = before[0].parent / str(len(before))
    else:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lancelet-sort-"))) / "0"
    rows = _sorted(batches)
    batches.clear()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        for part in _pieces(rows, piece):
            writer.write_batch(part)
    return path


def _read(stack: ExitStack, path: Path) -> Iterator[pa.RecordBatch]:
    """The pieces of a run that was written; its file is closed with the stack."""
    reader = pa.ipc.open_file(stack.enter_context(pa.OSFile(str(path), "rb")))
    return (reader.get_batch(number) for number in range(reader.num_record_batches))


class _Run:
    """A sorted run being read: the rows of the block at hand that have not been handed out."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.values: Ascending | None = None
        self.ids: pa.Array | None = None

    def fill(self, size: int) -> bool:
        """Have a block at hand of about ``size`` bytes; False when the run is at its end."""
        if self.values is not None and len(self.values):
            return True
        parts: list[pa.RecordBatch] = []
        held = 0
        while held < size:
            part = next(self._batches, None)
            if part is None:
                break
            if part.num_rows:
                parts.append(part)
                held += part.nbytes
        if not parts:
            return False
        self._hold(_joined([part.column(VALUES) for part in parts]), _joined([part.column(IDS) for part in parts]))
        return True

    def _hold(self, values: pa.Array, ids: pa.Array) -> None:
        self.values, self.ids = Ascending(values, exact=True), ids

    def last(self) -> pa.Scalar:
        """The largest value at hand."""
        assert self.values is not None
        return self.values.values[len(self.values) - 1]

    def take(self, bound: pa.Scalar) -> pa.RecordBatch:
        """Take the rows that are not beyond a bound."""
        assert self.values is not None
        assert self.ids is not None
        end = self.values.span(None, bound)[1] if bound.is_valid else self.values.nulls
        values, ids = self.values.values, self.ids
        self._hold(values[end:], ids[end:])
        return rows_of(values[:end], ids[:end])


def _smallest(values: list[pa.Scalar]) -> pa.Scalar:
    """The first of some values in the order of index files; null before all others."""
    listed = pa.concat_arrays([pa.repeat(value, 1) for value in values])
    return listed[int(sort_places(listed)[0])]
