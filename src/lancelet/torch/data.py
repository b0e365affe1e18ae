"""Datasets of PyTorch over tables: batches of tensors in any order and share, or single rows for a loader to pick."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
import torch.utils.data

from lancelet.dataset.functions import dataset as open_dataset
from lancelet.dataset.lance_dataset import LanceDataset as Table
from lancelet.errors import InvalidInput
from lancelet.hf import HuggingFaceConverter
from lancelet.query.blob_outputs import is_blob
from lancelet.sampler import (
    FragmentSampler,
    FullScanSampler,
    Sampler,
    ShardedBatchSampler,
    ShardedFragmentSampler,
    ShuffledSampler,
    maybe_sample,
)
from lancelet.torch.batches import CachedBatches, buffered, concat_batches
from lancelet.torch.dist import get_global_rank, get_global_world_size
from lancelet.torch.tensors import ToTensorFn
from lancelet.torch.tensors import to_tensor as _to_tensor

__all__ = ["LanceDataset", "SafeLanceDataset", "TensorDataset", "ToTensorFn", "concat_batches", "get_safe_loader"]

_ROW_ID = "_rowid"


class LanceDataset(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Batches of a table as tensors: give it to a ``DataLoader`` with ``batch_size=None``, or go through it yourself.

    Without a ``sampler`` each process, and each worker of a loader in it, gets its own share of the fragments
    (``shard_granularity="fragment"``) or of the batches (``"batch"``); ``ShuffledSampler`` shuffles single rows and
    shares itself out in the same way. ``samples`` draws so many rows at random instead. With ``cache`` the first pass
    is kept on disk, in a folder if it names one. ``state_dict`` says how far a pass has come, ``load_state_dict`` lets
    the next one begin there. ``to_tensor_fn`` makes tensors of Arrow batches; None leaves them as they are. Blobs come
    as lists of files, for a ``to_tensor_fn`` of your own.

    >>> import lancelet
    >>> table = lancelet.write_dataset(pa.table({"x": [1, 2, 3], "y": [1.0, 2.0, 3.0]}), "memory://tensors")
    >>> list(LanceDataset(table, batch_size=2, columns=["x"]))
    [tensor([1, 2]), tensor([3])]
    """

    def __init__(
        self,
        dataset: Table | str | os.PathLike[str],
        batch_size: int,
        *args: object,
        dataset_options: Mapping[str, Any] | None = None,
        columns: list[str] | dict[str, str] | None = None,
        filter: str | None = None,
        samples: int | None = 0,
        cache: str | os.PathLike[str] | bool | None = None,
        with_row_id: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        shard_granularity: Literal["fragment", "batch"] | None = None,
        batch_readahead: int = 16,
        to_tensor_fn: ToTensorFn | None = _to_tensor,
        sampler: Sampler | None = None,
        auto_detect_rank: bool = True,
        **kwargs: object,
    ) -> None:
        super().__init__()
        if isinstance(dataset, str | os.PathLike):
            dataset = open_dataset(dataset, **dict(dataset_options or {}))
        if shard_granularity not in (None, "fragment", "batch"):
            raise InvalidInput(f"shard_granularity is {shard_granularity!r}, expected 'fragment' or 'batch'")
        if rank is not None and world_size is not None:
            warnings.warn("rank and world_size are deprecated", DeprecationWarning, stacklevel=2)
        self.dataset = dataset
        self.columns = columns
        self.batch_size = batch_size
        self.samples = samples
        self.filter = filter
        self._blob_columns = _blob_columns(dataset, columns)
        self.with_row_id = with_row_id or bool(self._blob_columns)
        self.batch_readahead = batch_readahead
        self.shard_granularity = shard_granularity
        self.rank = rank
        self.world_size = world_size
        self.sampler = sampler
        self.cache = cache
        self.cached_ds: CachedBatches | None = None
        self._to_tensor_fn = to_tensor_fn
        self._hf_converter = _converter(dataset.schema)
        self._auto_detect_rank = auto_detect_rank
        self._epoch = 0
        # Batches that this pass has handed out, and those that the next one passes over.
        self._done = 0
        self._first = 0

    def __repr__(self) -> str:
        return f"LanceTorchDataset({self.dataset.uri}, size={self.samples})"

    @property
    def schema(self) -> pa.Schema:
        """The columns of a batch before it becomes tensors."""
        if not self.columns:
            return self.dataset.schema
        return self.dataset.scanner(columns=self.columns).projected_schema

    def set_epoch(self, epoch: int) -> None:
        """Say which pass is next: samplers that shuffle have another order in each."""
        self._epoch = epoch
        set_epoch = getattr(self.sampler, "set_epoch", None)
        if set_epoch is not None:
            set_epoch(epoch)

    def state_dict(self) -> dict[str, int]:
        """How far this pass has come in this process."""
        return {"epoch": self._epoch, "batches": self._done}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Let the next pass begin behind the batches that ``state`` counts."""
        self.set_epoch(state["epoch"])
        self._done = self._first = state["batches"]

    def __iter__(self) -> Iterator[Any]:
        first, self._first = self._first, 0
        self._done = first
        for batch in self._batches(first):
            self._done += 1
            given: Any = self._with_blobs(batch) if self._blob_columns else batch
            if self._to_tensor_fn is not None:
                given = self._to_tensor_fn(
                    given, hf_converter=self._hf_converter, use_blob_api=bool(self._blob_columns)
                )
            yield given

    def _batches(self, first: int) -> Iterator[pa.RecordBatch]:
        """The batches of this process from number ``first`` on, from the cache if there is one."""
        if self.cache:
            if self.cached_ds is None:
                self.cached_ds = CachedBatches(lambda: self._read(0), self.cache)
            return islice(iter(self.cached_ds), first, None)
        return self._read(first)

    def _read(self, first: int) -> Iterator[pa.RecordBatch]:
        columns = self._projected()
        if self.samples:
            if self.with_row_id:
                columns = [*columns, _ROW_ID] if isinstance(columns, list) else {**columns, _ROW_ID: _ROW_ID}
            drawn = maybe_sample(
                self.dataset, n=self.samples, columns=columns, batch_size=self.batch_size, filt=self.filter
            )
            return islice(buffered(drawn, self.batch_size), first, None)
        options: dict[str, Any] = {
            "columns": columns,
            "filter": self.filter,
            "batch_size": self.batch_size,
            "with_row_id": self.with_row_id,
            "batch_readahead": self.batch_readahead,
        }
        sampler = self._chosen()
        if first and isinstance(sampler, Sampler) and not isinstance(sampler, FragmentSampler):
            return buffered(sampler.batches_from(self.dataset, first, **options), self.batch_size)
        return islice(buffered(sampler(self.dataset, **options), self.batch_size), first, None)

    def _chosen(self) -> Sampler:
        """The sampler of this process, which is known only when a pass begins: workers of a loader are others."""
        rank, world_size = self.rank, self.world_size
        if self._auto_detect_rank:
            rank = get_global_rank() if rank is None else rank
            world_size = get_global_world_size() if world_size is None else world_size
        if isinstance(self.sampler, ShuffledSampler) and rank is not None and world_size is not None:
            return self.sampler.shared(rank, world_size)
        if self.sampler is not None:
            return self.sampler
        if rank is None or world_size is None:
            if self.shard_granularity is not None:
                raise InvalidInput("rank and world_size are not known", hint="give them, or auto_detect_rank=True")
            return FullScanSampler()
        if self.shard_granularity == "batch":
            return ShardedBatchSampler(rank, world_size)
        return ShardedFragmentSampler(rank, world_size)

    def _projected(self) -> list[str] | dict[str, str]:
        """What is scanned: all that is asked for but blobs, which are taken afterwards."""
        chosen = self.columns or self.dataset.schema.names
        if isinstance(chosen, dict):
            return {name: text for name, text in chosen.items() if name not in self._blob_columns}
        return [name for name in chosen if name not in self._blob_columns]

    def _with_blobs(self, batch: pa.RecordBatch) -> dict[str, Any]:
        ids = batch[_ROW_ID].to_numpy()
        columns: dict[str, Any] = {name: batch[name] for name in batch.schema.names}
        for name in self._blob_columns:
            columns[name] = self.dataset.take_blobs(name, ids=ids)
        return columns


def _blob_columns(dataset: Table, columns: Iterable[str] | None) -> list[str]:
    blobs = {field.name for field in dataset.snapshot.schema.fields if is_blob(field)}
    return [name for name in columns or dataset.schema.names if name in blobs]


def _converter(schema: pa.Schema) -> HuggingFaceConverter | None:
    """What makes tensors of the columns that Hugging Face described, if the table came from there."""
    described = (schema.metadata or {}).get(b"huggingface")
    return None if described is None else HuggingFaceConverter(json.loads(described))


class TensorDataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """The rows of a tensor in batches.

    >>> [batch.tolist() for batch in TensorDataset(np.arange(6).reshape(3, 2), batch_size=2)]
    [[[0, 1], [2, 3]], [[4, 5]]]
    """

    def __init__(self, data: torch.Tensor | npt.NDArray[Any], batch_size: int, *args: object, **kwargs: object) -> None:
        super().__init__()
        if batch_size < 1:
            raise InvalidInput(f"batch_size is {batch_size}, expected at least 1")
        self._data = torch.from_numpy(data) if isinstance(data, np.ndarray) else data
        self._batch_size = batch_size

    def __repr__(self) -> str:
        return "LanceTensorDataset"

    def __len__(self) -> int:
        return -(-int(self._data.shape[0]) // self._batch_size)

    def __getitem__(self, idx: int) -> torch.Tensor:
        if idx >= len(self):
            # What ends a loop over the batches, as pylance has it.
            raise StopIteration
        return self._data[idx * self._batch_size : (idx + 1) * self._batch_size, :]


class SafeLanceDataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """The rows of a table as dictionaries, for a loader that picks them by number: each process opens the table itself.

    >>> import lancelet
    >>> _ = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://single-rows")
    >>> rows = SafeLanceDataset("memory://single-rows")
    >>> len(rows), rows[1], rows.__getitems__([2, 0])
    (3, {'x': 2}, [{'x': 3}, {'x': 1}])
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        *,
        dataset_options: Mapping[str, Any] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.uri = uri
        self.dataset_options = dict(dataset_options or {})
        self._len = open_dataset(uri, **self.dataset_options).count_rows()
        self._ds: Table | None = None

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, idx: int) -> dict[str, Any]:
        return self.__getitems__([idx])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        if self._ds is None:
            self._ds = open_dataset(self.uri, **self.dataset_options)
        rows: list[dict[str, Any]] = self._ds.take(list(indices)).to_pylist()
        return rows


def get_safe_loader(
    dataset: torch.utils.data.Dataset, batch_size: int = 32, num_workers: int = 4, **kwargs: Any
) -> torch.utils.data.DataLoader:
    """A ``DataLoader`` whose workers are spawned and stay from one pass to the next, unless ``kwargs`` say otherwise.

    >>> import lancelet
    >>> _ = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://loaded")
    >>> [batch["x"].tolist() for batch in get_safe_loader(SafeLanceDataset("memory://loaded"), 2, num_workers=0)]
    [[1, 2], [3]]
    """
    options = {"batch_size": batch_size, "num_workers": num_workers, **kwargs}
    if options["num_workers"]:
        workers = {"persistent_workers": True, "multiprocessing_context": torch.multiprocessing.get_context("spawn")}
        options = {**workers, **options}
    return torch.utils.data.DataLoader(dataset, **options)
