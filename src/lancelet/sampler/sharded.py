"""Samplers that deal batches out to several processes, in order or shuffled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa

from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.scan_options import Columns, Condition
from lancelet.errors import InvalidInput
from lancelet.sampler.drawing import through_heap
from lancelet.sampler.reading import Numbers, cut, taken
from lancelet.sampler.sampler import Sampler, checked_share, torch_share

__all__ = ["ShardedBatchSampler", "ShardedFixedBatchSampler"]

#: How many batches are held to be handed out in another order than they came.
_HELD = 256


class ShardedBatchSampler(Sampler):
    """Every ``world_size``-th batch of the table falls to a process; with ``randomize`` in random order.

    With a filter every ``world_size``-th row that meets it does. All rows that do are read by every process then, and
    their batches are shuffled as far as 256 of them reach.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": range(7)}), "memory://dealt-out")
    >>> [batch["x"].to_pylist() for batch in ShardedBatchSampler(0, 2)(dataset, batch_size=2)]
    [[0, 1], [4, 5]]
    """

    def __init__(self, rank: int, world_size: int, randomize: bool = False, seed: int = 0) -> None:
        self._rank, self._world_size = checked_share(rank, world_size)
        self._randomize = randomize
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Say which pass over the data is next: each has another order."""
        self._epoch = epoch

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedBatchSampler:
        """The share of this process as ``torch.distributed`` knows it."""
        return ShardedBatchSampler(*torch_share(), randomize=randomize, seed=seed)

    def __call__(  # type: ignore[override]
        self,
        dataset: LanceDataset,
        *args: object,
        batch_size: int = 128,
        columns: Columns | None = None,
        filter: Condition | None = None,
        batch_readahead: int = 16,
        with_row_id: bool | None = None,
        **kwargs: object,
    ) -> Iterator[pa.RecordBatch]:
        """The batches of this process."""
        return self.batches_from(
            dataset,
            0,
            batch_size=batch_size,
            columns=columns,
            filter=filter,
            batch_readahead=batch_readahead,
            with_row_id=bool(with_row_id),
        )

    def batches_from(
        self,
        ds: LanceDataset,
        first: int,
        *,
        batch_size: int = 128,
        columns: Columns | None = None,
        filter: Condition | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The batches from number ``first`` on; without a filter those before cost nothing."""
        if filter is not None:
            found = self._filtered(ds, batch_size, columns, filter, with_row_id=with_row_id)
            return islice(found, first, None)
        groups = self._groups(ds.count_rows(), batch_size, first)
        return taken(ds, groups, columns, with_row_id=with_row_id, ahead=batch_readahead)

    def _groups(self, total: int, size: int, first: int) -> Iterator[Numbers]:
        starts = list(range(self._rank * size, total, self._world_size * size))
        if self._randomize:
            random.Random(self._seed + self._epoch).shuffle(starts)
        return (np.arange(start, min(start + size, total)) for start in starts[first:])

    def _filtered(
        self, dataset: LanceDataset, size: int, columns: Columns | None, condition: Condition, *, with_row_id: bool
    ) -> Iterator[pa.RecordBatch]:
        batches = dataset.to_batches(columns=columns, filter=condition, with_row_id=with_row_id)
        found = cut(self._every_nth(batches), size)
        return through_heap(found, random.Random(self._seed + self._epoch), _HELD) if self._randomize else found

    def _every_nth(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = 0
        for batch in batches:
            first = (self._rank - seen) % self._world_size
            seen += batch.num_rows
            yield batch.take(pa.array(np.arange(first, batch.num_rows, self._world_size)))


class ShardedFixedBatchSampler(ShardedBatchSampler):
    """Deals out numbers of rows instead of rows: lists of neighbouring ones, as a ``batch_sampler`` of PyTorch does.

    Each process has one stretch of the table, cut into batches; with ``randomize`` these come in random order.

    >>> list(ShardedFixedBatchSampler(1, 2, batch_size=2, total_num_rows=7))
    [[4, 5], [6]]
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        randomize: bool = False,
        seed: int = 0,
        batch_size: int = 0,
        total_num_rows: int = 0,
    ) -> None:
        super().__init__(rank, world_size, randomize, seed)
        if total_num_rows and batch_size < 1:
            raise InvalidInput(f"batch_size is {batch_size}, expected at least 1")
        self._batch_size = batch_size
        stretch = -(-total_num_rows // world_size)
        self._stretch = range(min(rank * stretch, total_num_rows), min((rank + 1) * stretch, total_num_rows))

    @staticmethod
    def from_torch(  # type: ignore[override]
        batch_size: int, total_num_rows: int, randomize: bool = False, seed: int = 0
    ) -> ShardedFixedBatchSampler:
        """The share of this process as ``torch.distributed`` knows it."""
        return ShardedFixedBatchSampler(*torch_share(), randomize, seed, batch_size, total_num_rows)

    def __len__(self) -> int:
        return -(-len(self._stretch) // self._batch_size) if self._stretch else 0

    def __iter__(self) -> Iterator[list[int]]:
        numbers, size = self._stretch, self._batch_size
        batches = [numbers[start : start + size] for start in range(0, len(numbers), size or 1)]
        if self._randomize:
            random.Random(self._seed + self._epoch).shuffle(batches)
        return map(list, batches)
