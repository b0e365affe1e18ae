"""Samplers that read fragment by fragment: all of them, or those that fall to one of several processes."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterable, Iterator

import pyarrow as pa

from lancelet.dataset.fragments.lance_fragment import LanceFragment
from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.scan_options import Columns, Condition
from lancelet.sampler.sampler import Sampler, checked_share, torch_share

__all__ = ["FragmentSampler", "FullScanSampler", "ShardedFragmentSampler"]


class FragmentSampler(Sampler):
    """Reads fragments one after the other: a subclass says which."""

    def __call__(  # type: ignore[override]
        self,
        dataset: LanceDataset,
        *args: object,
        batch_size: int = 128,
        columns: Columns | None = None,
        filter: Condition | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: object,
    ) -> Iterator[pa.RecordBatch]:
        """The batches of the fragments."""
        fragments = list(self.iter_fragments(dataset, *args, **kwargs))
        if not fragments:
            return
        scanner = dataset.scanner(
            columns=columns, filter=filter, batch_size=batch_size, with_row_id=with_row_id, fragments=fragments
        )
        yield from scanner.to_batches()

    @abstractmethod
    def iter_fragments(self, ds: LanceDataset, *args: object, **kwargs: object) -> Iterable[LanceFragment]:
        """The fragments in the order in which they are read."""


class FullScanSampler(FragmentSampler):
    """All rows in the order of the table.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://full-scan")
    >>> [batch["x"].to_pylist() for batch in FullScanSampler()(dataset, batch_size=2)]
    [[1, 2], [3]]
    """

    def iter_fragments(self, dataset: LanceDataset, **kwargs: object) -> Iterable[LanceFragment]:  # type: ignore[override]
        """All fragments."""
        return dataset.get_fragments()


class ShardedFragmentSampler(FragmentSampler):
    """Every fragment falls to one of ``world_size`` processes; with ``randomize`` another one in each epoch.

    The cheapest way to share a table out, where it has many fragments of about one size.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://shared-out", max_rows_per_file=1)
    >>> [batch["x"].to_pylist() for batch in ShardedFragmentSampler(0, 2)(dataset, batch_size=1)]
    [[1], [3]]
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
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedFragmentSampler:
        """The share of this process as ``torch.distributed`` knows it."""
        return ShardedFragmentSampler(*torch_share(), randomize=randomize, seed=seed)

    def iter_fragments(self, dataset: LanceDataset, **kwargs: object) -> Iterable[LanceFragment]:  # type: ignore[override]
        """The fragments of this process."""
        fragments = dataset.get_fragments()
        if self._randomize:
            random.Random(self._seed + self._epoch).shuffle(fragments)
        return fragments[self._rank :: self._world_size]
