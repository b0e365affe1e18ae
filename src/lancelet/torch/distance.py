"""Distances between vectors, all of one tensor to all of another, or each to its nearest, on any device."""

from __future__ import annotations

from collections.abc import Callable

import torch

from lancelet.errors import InvalidInput

__all__ = ["argmin_l2", "cosine_distance", "dot_distance", "l2_distance", "pairwise_cosine", "pairwise_l2"]

#: So many distances are computed together: 256 MiB of 32-bit floats.
_TOGETHER = 2**26
#: Types in which processors do not multiply matrices, or badly.
_HALVES = (torch.float16, torch.bfloat16)


def pairwise_cosine(x: torch.Tensor, y: torch.Tensor, *, y2: torch.Tensor | None = None) -> torch.Tensor:
    """The cosine distance of each row of ``x`` from each of ``y``; ``y2`` are the lengths of the rows of ``y``.

    >>> pairwise_cosine(torch.eye(2), torch.tensor([[2.0, 0.0]])).tolist()
    [[0.0], [1.0]]
    """
    _check(x, y)
    lengths = torch.linalg.norm(y, dim=1) if y2 is None else y2
    return 1 - (x @ y.T) / torch.linalg.norm(x, dim=1).reshape(-1, 1) / lengths.reshape(1, -1)


def cosine_distance(vectors: torch.Tensor, centroids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For each vector the number of the centroid that is nearest by cosine, and its distance.

    >>> [found.tolist() for found in cosine_distance(torch.tensor([[0.0, 3.0]]), torch.eye(2))]
    [[1], [0.0]]
    """
    _check(vectors, centroids)
    lengths = torch.linalg.norm(centroids, dim=1)
    return _nearest(vectors, centroids, lambda some: pairwise_cosine(some, centroids, y2=lengths))


def pairwise_l2(x: torch.Tensor, y: torch.Tensor, y2: torch.Tensor | None = None) -> torch.Tensor:
    """The squared distance of each row of ``x`` from each of ``y``; ``y2`` are the squared lengths of the latter.

    >>> pairwise_l2(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 3.0], [1.0, 1.0]])).tolist()
    [[4.0, 1.0]]
    """
    _check(x, y)
    if x.dtype != y.dtype or (y2 is not None and x.dtype != y2.dtype):
        raise InvalidInput(f"the types are not one: x has {x.dtype}, y {y.dtype}")
    kind = x.dtype
    if x.device.type == "cpu" and kind in _HALVES:
        x, y = x.float(), y.float()
        y2 = None if y2 is None else y2.float()
    squares = (y * y).sum(dim=1) if y2 is None else y2
    return ((x * x).sum(dim=1).reshape(-1, 1) + squares.reshape(1, -1) - 2 * (x @ y.T)).type(kind)


def argmin_l2(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For each row of ``x`` the squared distance of the nearest row of ``y``, and its number, each as a column.

    >>> [found.tolist() for found in argmin_l2(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 3.0], [1.0, 1.0]]))]
    [[[1.0]], [[1]]]
    """
    distances, places = torch.min(torch.cdist(x[None], y[None], p=2.0)[0], dim=1, keepdim=True)
    return distances.pow(2), places


def l2_distance(
    vectors: torch.Tensor, centroids: torch.Tensor, y2: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each vector the number of the nearest centroid, -1 where a value is NaN, and its squared distance.

    >>> [found.tolist() for found in l2_distance(torch.tensor([[0.0, 3.0]]), torch.eye(2))]
    [[1], [4.0]]
    """
    _check(vectors, centroids)
    kind = vectors.dtype
    if vectors.device.type == "cpu" and kind in _HALVES:
        vectors, centroids = vectors.float(), centroids.float()
    places, distances = _nearest(vectors, centroids, lambda some: torch.cdist(some[None], centroids[None])[0])
    return torch.where(distances.isnan(), -1, places), distances.pow(2).type(kind)


def dot_distance(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For each row of ``x`` the number of the row of ``y`` of the largest product, -1 for NaN, and 1 less that product.

    >>> [found.tolist() for found in dot_distance(torch.tensor([[0.0, 3.0]]), torch.eye(2))]
    [[1], [-2.0]]
    """
    _check(x, y)
    places, distances = _nearest(x, y, lambda some: 1 - some @ y.T)
    return torch.where(distances.isnan(), -1, places), distances


def _check(x: torch.Tensor, y: torch.Tensor) -> None:
    if x.dim() != 2 or y.dim() != 2:
        raise InvalidInput(f"x and y must be 2-D matrices, got shapes {tuple(x.shape)} and {tuple(y.shape)}")


def _nearest(
    x: torch.Tensor, y: torch.Tensor, distances: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Places and distances of the nearest, of so many vectors at a time that their distances fit in memory."""
    found = [torch.min(distances(some), dim=1) for some in x.split(max(_TOGETHER // max(len(y), 1), 1))]
    return torch.cat([item.indices for item in found]), torch.cat([item.values for item in found])
