"""KMeans: vectors divided into clusters, on whatever device there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from lancelet.errors import InvalidInput
from lancelet.torch import preferred_device
from lancelet.torch.data import TensorDataset
from lancelet.torch.distance import dot_distance, l2_distance
from lancelet.torch.tensors import to_tensor

__all__ = ["KMeans"]

#: Vectors in one piece of memory, or in any number of pieces, which are gone through once for each iteration.
Vectors: TypeAlias = "pa.FixedSizeListArray | npt.NDArray[Any] | torch.Tensor"
_NAMES = {"euclidean": "l2"}
_BATCH = 10240


class KMeans:
    """Finds ``k`` centroids of vectors, by ``metric``: ``"l2"``, ``"cosine"`` or ``"dot"``.

    It stops after ``max_iters`` passes, or when the sum of all distances changes by less than the share ``tolerance``.
    The first centroids are drawn from the vectors, by NumPy, with a ``seed`` or its own, unless they are given.

    >>> vectors = torch.tensor([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
    >>> found = KMeans(2, centroids=vectors[[0, 2]], device="cpu")
    >>> found.fit(vectors)
    >>> found.centroids.tolist(), found.transform(vectors).tolist()
    ([[0.0, 0.5], [9.0, 8.5]], [0, 0, 1, 1])
    """

    def __init__(
        self,
        k: int,
        *,
        metric: str = "l2",
        init: Literal["random"] = "random",
        max_iters: int = 50,
        tolerance: float = 1e-4,
        centroids: torch.Tensor | None = None,
        seed: int | None = None,
        device: str | torch.device | None = None,
    ) -> None:
        named = metric.lower()
        self.metric = _NAMES.get(named, named)
        if self.metric not in ("l2", "cosine", "dot"):
            raise InvalidInput(f"the metric is {metric!r}, expected 'l2', 'cosine' or 'dot'")
        self.k = k
        self.max_iters = max_iters
        self.total_distance = 0.0
        self.centroids = centroids
        self.init = init
        self.device = preferred_device(device)
        self.tolerance = tolerance
        self.seed = seed

    def __repr__(self) -> str:
        return f"KMeans(k={self.k}, metric={self.metric}, device={self.device})"

    def fit(self, data: Iterable[Any] | Vectors, column: str | None = None) -> None:
        """Find the centroids: of an array or a tensor, or of a dataset whose batches, or a column of them, are tensors.

        A dataset is gone through once for each iteration; the first centroids must be given then.
        """
        if isinstance(data, pa.Array | np.ndarray | torch.Tensor):
            whole = _tensor(data)
            if self.centroids is None:
                generator = np.random if self.seed is None else np.random.RandomState(self.seed)
                self.centroids = whole[torch.from_numpy(generator.choice(whole.shape[0], self.k))]
            data = TensorDataset(whole, batch_size=_BATCH)
        if self.centroids is None:
            raise InvalidInput("the first centroids are not known", hint="give centroids, or all vectors as a tensor")
        self.centroids = self.centroids.to(self.device)
        last = 0.0
        for _ in range(self.max_iters):
            found = self._pass(data, column)
            if found is None:
                break
            centroids, total = found
            # A distance of nothing: the vectors are few, or all NaN.
            if total == 0 or abs(total - last) / total < self.tolerance:
                break
            self.centroids, last = centroids, total
            self.total_distance = total

    def transform(self, data: Vectors) -> torch.Tensor:
        """The number of the cluster of each vector; -1 where a value is NaN."""
        return self._nearest(_tensor(data).to(self.device))[0]

    def _nearest(self, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.centroids is None:
            raise InvalidInput("there are no centroids yet", hint="call fit")
        if self.metric == "dot":
            return dot_distance(vectors, self.centroids)
        return l2_distance(
            torch.nn.functional.normalize(vectors) if self.metric == "cosine" else vectors, self.centroids
        )

    def _pass(self, data: Iterable[Any], column: str | None) -> tuple[torch.Tensor, float] | None:
        """The centroids of the clusters as they are now, and the sum of all distances; None if there is no vector."""
        held = self.centroids
        if held is None:
            return None
        # Summed up in 32 bits, also where the vectors are halves.
        sums = torch.zeros(held.shape, device=self.device, dtype=torch.float32)
        counts = torch.zeros(len(held), device=self.device)
        total = torch.tensor(0.0, device=self.device)
        kind: torch.dtype | None = None
        for item in data:
            vectors = (item if column is None else item[column]).to(self.device)
            kind = vectors.dtype
            places, distances = self._nearest(vectors)
            valid = places >= 0
            total += distances[valid].nansum()
            sums.index_add_(0, places[valid], vectors[valid].float())
            counts.index_add_(0, places[valid], torch.ones(int(valid.sum()), device=self.device))
        if kind is None:
            return None
        return self._centroids(sums, counts).type(kind), float(total)

    def _centroids(self, sums: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """The middles of the clusters; an empty one gets half of the largest."""
        centroids = sums / counts[:, None]
        largest = torch.argmax(counts)
        for empty in torch.nonzero(counts == 0).reshape(-1):
            for place in (empty, largest):
                centroids[place] = centroids[largest] * ((torch.rand_like(centroids[largest]) - 0.5) * 0.01 + 1)
        return torch.nn.functional.normalize(centroids) if self.metric == "cosine" else centroids


def _tensor(data: Vectors) -> torch.Tensor:
    if isinstance(data, pa.Array):
        found = to_tensor({"vectors": data})
        if isinstance(found, torch.Tensor):
            return found
    if isinstance(data, np.ndarray):
        return torch.from_numpy(data)
    if isinstance(data, torch.Tensor):
        return data
    raise InvalidInput(f"vectors are given as a {type(data).__name__}, expected an array or a tensor")
