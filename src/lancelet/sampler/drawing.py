"""Drawing rows at random: so many of a dataset, in few requests, or so many of a stream."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from lancelet.dataset.functions import dataset as open_dataset
from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.scan_options import Columns
from lancelet.errors import InvalidInput
from lancelet.sampler.reading import Numbers, as_batch, cut, taken

__all__ = ["PrioritizedItem", "maybe_sample", "reservoir_sampling"]

T = TypeVar("T")
#: Rows whose condition is looked at together.
_TOGETHER = 8192


def maybe_sample(
    dataset: str | os.PathLike[str] | LanceDataset,
    n: int,
    columns: Columns | str,
    batch_size: int = 10240,
    max_takes: int = 2048,
    filt: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """``n`` rows drawn at random, in batches; all rows where there are no more than these.

    Where more than ``max_takes`` are drawn, runs of neighbouring rows are. With a condition ``filt``, runs are drawn
    until enough rows were found that meet it. Python's and NumPy's own generators draw: seed those.

    >>> import lancelet
    >>> made = lancelet.write_dataset(pa.table({"x": range(100)}), "memory://sampled")
    >>> drawn = [x for batch in maybe_sample(made, 10, "x", batch_size=4) for x in batch["x"].to_pylist()]
    >>> len(set(drawn))
    10
    """
    if n < 0 or batch_size < 1 or max_takes < 1:
        found = f"n is {n}, batch_size {batch_size}, max_takes {max_takes}"
        raise InvalidInput(f"{found}: expected at least 0, 1 and 1")
    table = dataset if isinstance(dataset, LanceDataset) else open_dataset(dataset)
    chosen: Columns = [columns] if isinstance(columns, str) else columns
    rows = table.count_rows()
    if n >= rows:
        return table.to_batches(columns=chosen, batch_size=batch_size, filter=filt)
    if filt is not None:
        return cut(_meeting(table, n, chosen, max_takes, filt, rows), batch_size)
    if n > max_takes:
        return _runs(table, n, chosen, batch_size, max_takes, rows)
    picked = np.random.choice(rows, n, replace=False)
    groups = (picked[start : start + batch_size] for start in range(0, n, batch_size))
    return taken(table, groups, chosen, ahead=1)


def _runs(
    table: LanceDataset, n: int, columns: Columns, batch_size: int, most: int, rows: int
) -> Iterator[pa.RecordBatch]:
    """As many runs of neighbouring rows as ``most``, one from each part of the table, until there are ``n`` rows."""
    part, run = rows // most, -(-n // most)
    groups: list[Numbers] = []
    held, left = 0, n
    for start in range(0, rows, part):
        here = min(part, rows - start)
        size = min(run, here, left)
        first = start + (np.random.randint(0, here - size) if size < here else 0)
        groups.append(np.arange(first, first + size))
        held, left = held + size, left - size
        if held >= batch_size or not left:
            yield as_batch(table.take(np.concatenate(groups), columns))
            groups, held = [], 0
        if not left:
            return


def _meeting(
    table: LanceDataset, n: int, columns: Columns, most: int, condition: str, rows: int
) -> Iterator[pa.RecordBatch]:
    """Rows that meet a condition, from runs in random order, until there are ``n``."""
    run = -(-n // most)
    runs = list(range(-(-rows // run)))
    random.shuffle(runs)
    together = max(_TOGETHER // run, 1)
    left = n
    for at in range(0, len(runs), together):
        numbers = np.concatenate([np.arange(i * run, min((i + 1) * run, rows)) for i in runs[at : at + together]])
        met = as_batch(table.take(numbers, {"met": condition}))["met"]
        kept = numbers[np.asarray(met.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)][:left]
        if len(kept):
            yield as_batch(table.take(kept, columns))
        left -= len(kept)
        if not left:
            return


@dataclass(order=True)
class PrioritizedItem(Generic[T]):
    """Something in a heap, ordered by its priority alone."""

    priority: int
    item: T = field(compare=False)


def reservoir_sampling(stream: Iterable[T], k: int) -> list[T]:
    """``k`` items of a stream that is gone through once, each as likely as any other; all where there are fewer.

    >>> len(set(reservoir_sampling(range(100), 5)))
    5
    """
    generator = np.random.default_rng()
    kept: list[T] = []
    for seen, item in enumerate(stream):
        if len(kept) < k:
            kept.append(item)
        elif (place := int(generator.integers(0, seen + 1))) < k:
            kept[place] = item
    return kept


def through_heap(batches: Iterable[T], generator: random.Random, size: int) -> Iterator[T]:
    """The items of a stream about shuffled: each leaves when one of a smaller number, drawn for it, comes in."""
    heap: list[PrioritizedItem[T]] = []
    for batch in batches:
        entry = PrioritizedItem(generator.randint(0, size * 2 - 1), batch)
        if len(heap) < size:
            heappush(heap, entry)
        else:
            yield heappushpop(heap, entry).item
    for entry in heap:
        yield entry.item
