"""A sampler that shuffles single rows, holds nothing, and can begin anywhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.scan_options import Columns, Condition
from lancelet.query.request import ROW_ID
from lancelet.rows.permutation import Permutation
from lancelet.sampler.reading import Numbers, taken
from lancelet.sampler.sampler import Sampler, checked_share

__all__ = ["ShuffledSampler"]


class ShuffledSampler(Sampler):
    """Batches of rows from anywhere in the table: in each epoch every row once, in another order.

    The order is computed, not held, so that a table of any size is shuffled at no cost, and any batch of it can be the
    first. Batches are dealt out to ``world_size`` processes; without a ``rank`` to as many workers of PyTorch as there
    are. ``drop_last`` leaves out what is too little for a full batch for each. With a filter the ids of the rows that
    meet it are held, 8 bytes each.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": range(5)}), "memory://shuffled")
    >>> sampler = ShuffledSampler(seed=7)
    >>> batches = [batch["x"].to_pylist() for batch in sampler(dataset, batch_size=2)]
    >>> sorted(x for batch in batches for x in batch)
    [0, 1, 2, 3, 4]
    >>> [batch["x"].to_pylist() for batch in sampler.batches_from(dataset, 1, batch_size=2)] == batches[1:]
    True
    """

    def __init__(
        self, rank: int | None = None, world_size: int | None = None, seed: int = 0, *, drop_last: bool = False
    ) -> None:
        self._share = None if rank is None else checked_share(rank, world_size or 1)
        self._seed = seed
        self._epoch = 0
        self._drop_last = drop_last

    def set_epoch(self, epoch: int) -> None:
        """Say which pass over the data is next: each has another order."""
        self._epoch = epoch

    def shared(self, rank: int, world_size: int) -> ShuffledSampler:
        """The same for one of several processes, if this one is for any."""
        if self._share is not None:
            return self
        made = ShuffledSampler(rank, world_size, self._seed, drop_last=self._drop_last)
        made.set_epoch(self._epoch)
        return made

    def __call__(
        self,
        ds: LanceDataset,
        *args: object,
        batch_size: int = 128,
        columns: Columns | None = None,
        filter: Condition | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: object,
    ) -> Iterator[pa.RecordBatch]:
        """The batches of this process."""
        return self.batches_from(
            ds,
            0,
            batch_size=batch_size,
            columns=columns,
            filter=filter,
            batch_readahead=batch_readahead,
            with_row_id=with_row_id,
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
        """The batches from number ``first`` on; those before cost nothing."""
        found = None if filter is None else _ids(ds, filter)
        total = ds.count_rows() if found is None else len(found)
        groups = self._groups(total, batch_size, first)
        if found is not None:
            groups = (found[group] for group in groups)
        return taken(ds, groups, columns, by_id=found is not None, with_row_id=with_row_id, ahead=batch_readahead)

    def _groups(self, total: int, size: int, first: int) -> Iterator[Numbers]:
        rank, world_size = self._share or (0, 1)
        order = Permutation(total, self._seed * 2**32 + self._epoch)
        end = total - total % (size * world_size) if self._drop_last else total
        for start in range((first * world_size + rank) * size, end, world_size * size):
            yield order.at(np.arange(start, min(start + size, end)))


def _ids(dataset: LanceDataset, condition: Condition) -> Numbers:
    found: Numbers = dataset.to_table(columns=[], filter=condition, with_row_id=True)[ROW_ID].to_numpy()
    return found
