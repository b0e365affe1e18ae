"""Sorting more rows than memory holds: sorted runs put aside in files, then merged a block of each at a time.

tables -> runs, each sorted in memory; all but a single one go to temporary files
       -> a block of each run; the smallest of the blocks' last rows is the bound
       -> rows not beyond the bound are sorted and handed out; blocks used up are followed by the next of their run
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from lancelet.errors import Storage
from lancelet.query.joining import one_batch
from lancelet.query.ordering import SortKey, order_of_rows, sorted_rows, taken

__all__ = ["first_rows", "in_order"]

#: What sorting takes besides the rows: the rows in one piece, their keys, the sorted copy.
_COPIES = 4
#: Rows handed out at a time.
_ROWS = 2**17
#: Runs merged at once; more are merged in several rounds.
_MOST_RUNS = 64


def in_order(tables: Iterable[pa.Table], keys: Sequence[SortKey], *, memory: int) -> Iterator[pa.Table]:
    """All rows in order, holding about ``memory`` bytes of them.

    >>> made = in_order([pa.table({"x": [3, 1]}), pa.table({"x": [2]})], [SortKey(0)], memory=1)
    >>> pa.concat_tables(made)["x"].to_pylist()
    [1, 2, 3]
    """
    with ExitStack() as stack:
        runs: list[Path] = []
        waiting: list[pa.Table] = []
        held = 0
        for table in tables:
            if waiting and held + table.nbytes > memory // _COPIES:
                runs.append(_put_aside(stack, runs, _pieces(_joined(waiting, keys), _block(memory, held, waiting))))
                waiting, held = [], 0
            waiting.append(table)
            held += table.nbytes
        if not runs:
            if waiting:
                yield from _pieces(_joined(waiting, keys), _ROWS)
            return
        runs.append(_put_aside(stack, runs, _pieces(_joined(waiting, keys), _block(memory, held, waiting))))
        waiting = []
        while len(runs) > _MOST_RUNS:
            some, runs = runs[:_MOST_RUNS], runs[_MOST_RUNS:]
            merged = _merged([_Run(stack, path) for path in some], keys)
            # What was first stays first: equal rows keep their order.
            runs.insert(0, _put_aside(stack, [*some, *runs], merged))
        yield from _merged([_Run(stack, path) for path in runs], keys)


def first_rows(tables: Iterable[pa.Table], keys: Sequence[SortKey], count: int) -> pa.Table | None:
    """The first rows in order; no more than twice as many, and one table, are held at once.

    >>> first_rows([pa.table({"x": [3, 1]}), pa.table({"x": [2]})], [SortKey(0)], 2)["x"].to_pylist()
    [1, 2]
    """
    best: pa.Table | None = None
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        # Of a large table only its own first rows can be among those of all.
        waiting.append(sorted_rows(table, keys, most=count) if table.num_rows > count else table)
        rows += waiting[-1].num_rows
        if rows >= max(2 * count, _ROWS):
            best = sorted_rows(pa.concat_tables([*([] if best is None else [best]), *waiting]), keys, most=count)
            waiting, rows = [], 0
    if best is not None:
        waiting.insert(0, best)
    return sorted_rows(pa.concat_tables(waiting), keys, most=count) if waiting else None


def _joined(tables: Sequence[pa.Table], keys: Sequence[SortKey]) -> pa.Table:
    return sorted_rows(pa.concat_tables(tables), keys)


def _block(memory: int, held: int, tables: Sequence[pa.Table]) -> int:
    """Rows of the pieces in which a run is written: many runs must have a block in memory at once."""
    rows = sum(table.num_rows for table in tables)
    return int(min(max(memory // (_COPIES * _MOST_RUNS) * rows // max(held, 1), 64), _ROWS))


def _pieces(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def _put_aside(stack: ExitStack, before: Sequence[Path], pieces: Iterator[pa.Table]) -> Path:
    """A file of the pieces; the folder goes when the stack is closed."""
    if before:
        folder = before[0].parent
    else:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lancelet-sort-")))
    path = folder / f"{len(list(folder.iterdir()))}"
    first = next(pieces)
    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
            writer.write_batch(one_batch(first))
            for piece in pieces:
                writer.write_batch(one_batch(piece))
    except OSError as error:
        hint = "make room there, or name another folder by TMPDIR"
        raise Storage(f"rows cannot be put aside: {error}", uri=str(path), hint=hint) from error
    return path


class _Run:
    """A sorted run being read: the rows of the block at hand that were not handed out yet."""

    def __init__(self, stack: ExitStack, path: Path) -> None:
        # Read, not mapped: what was looked at is not to count as memory of the process.
        self._reader = pa.ipc.open_file(stack.enter_context(pa.OSFile(str(path))))
        self._next = 0
        self.block = self._reader.schema.empty_table()

    @property
    def ended(self) -> bool:
        """Whether no block follows the one at hand."""
        return bool(self._next >= self._reader.num_record_batches)

    def fill(self) -> bool:
        """Have rows at hand; False when there are no more."""
        while not self.block.num_rows and not self.ended:
            self.block = pa.Table.from_batches([self._reader.get_batch(self._next)])
            self._next += 1
        return bool(self.block.num_rows)


def _merged(runs: Sequence[_Run], keys: Sequence[SortKey]) -> Iterator[pa.Table]:
    """The rows of all runs in order. A block of each is in memory, which is why blocks are small."""
    left = list(runs)
    while left := [run for run in left if run.fill()]:
        sizes = np.array([run.block.num_rows for run in left])
        ends = np.cumsum(sizes)
        blocks = pa.concat_tables([run.block for run in left])
        order = order_of_rows(blocks, keys)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        # Rows up to the first of the last rows: behind any of those may stand rows that were not read yet.
        bound = min(
            (int(place[end - 1]) for run, end in zip(left, ends.tolist(), strict=True) if not run.ended),
            default=len(order) - 1,
        )
        out = order[: bound + 1]
        counts = np.bincount(np.searchsorted(ends, out, "right"), minlength=len(left)).tolist()
        yield taken(blocks, out)
        for run, count in zip(left, counts, strict=True):
            run.block = run.block.slice(count)
