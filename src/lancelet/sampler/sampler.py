"""The contract of samplers, and who of how many a process is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from itertools import islice

import pyarrow as pa

from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.scan_options import Columns, Condition
from lancelet.errors import InvalidInput

__all__ = ["Sampler", "checked_share", "torch_share"]


class Sampler(ABC):
    """Hands out batches of a dataset in an order of its own: a subclass says which by being called."""

    @abstractmethod
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
        """The batches, one after the other."""

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
        """The batches from number ``first`` on, as they follow where work was broken off.

        Here those before are read and passed over; samplers that know where they are go there at once.
        """
        all_of_them = self(
            ds,
            batch_size=batch_size,
            columns=columns,
            filter=filter,
            batch_readahead=batch_readahead,
            with_row_id=with_row_id,
        )
        return islice(all_of_them, first, None)


def checked_share(rank: int, world_size: int) -> tuple[int, int]:
    """The number of a process and of all of them; InvalidInput where there is no such process.

    >>> checked_share(1, 4)
    (1, 4)
    """
    if world_size < 1 or not 0 <= rank < world_size:
        raise InvalidInput(f"rank is {rank} of {world_size} processes, expected 0 or more and less than there are")
    return rank, world_size


def torch_share() -> tuple[int, int]:
    """The number of this process and of all, as ``torch.distributed`` knows them."""
    # By name: PyTorch is an integration, and those lie above.
    distributed = import_module("torch.distributed")
    return int(distributed.get_rank()), int(distributed.get_world_size())
