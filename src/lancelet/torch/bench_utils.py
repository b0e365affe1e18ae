"""How good an index is: the true neighbours, and how many of them were found."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from lancelet.dataset.lance_dataset import LanceDataset as Table
from lancelet.errors import InvalidInput
from lancelet.torch import preferred_device
from lancelet.torch.data import LanceDataset
from lancelet.torch.distance import pairwise_cosine, pairwise_l2

__all__ = ["ground_truth", "infer_vector_column", "recall", "sort_tensors"]

_DISTANCES = {"l2": pairwise_l2, "cosine": pairwise_cosine}


def sort_tensors(source: torch.Tensor, other: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The ``k`` smallest values of each row, and what is in the same places of another tensor.

    >>> [found.tolist() for found in sort_tensors(torch.tensor([[3, 1, 2]]), torch.tensor([[30, 10, 20]]), 2)]
    [[[1, 2]], [[10, 20]]]
    """
    values, places = torch.sort(source, dim=1)
    return values[:, :k], torch.gather(other, 1, places[:, :k])


def ground_truth(
    ds: Table,
    column: str,
    query: torch.Tensor | npt.NDArray[Any],
    metric_type: str = "L2",
    k: int = 100,
    batch_size: int = 10240,
    device: str | None = None,
) -> torch.Tensor:
    """The ids of the ``k`` rows nearest to each query vector, by ``"l2"`` or ``"cosine"``, of all rows of a table.

    >>> import lancelet
    >>> vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0.0, 1.0, 1.0, 5.0, 5.0], pa.float32()), 2)
    >>> table = lancelet.write_dataset(pa.table({"v": vectors}), "memory://ground-truth")
    >>> ground_truth(table, "v", np.float32([[4, 4]]), k=2, device="cpu").tolist()
    [[2, 1]]
    """
    distance = _DISTANCES.get(metric_type.lower())
    if distance is None:
        raise InvalidInput(f"metric_type is {metric_type!r}, expected 'l2' or 'cosine'")
    place = preferred_device(device)
    wanted = (torch.from_numpy(query) if isinstance(query, np.ndarray) else query).to(place)
    ids = torch.empty((len(wanted), 0), dtype=torch.int64, device=place)
    distances = torch.empty((len(wanted), 0), dtype=wanted.dtype, device=place)
    for batch in LanceDataset(ds, batch_size=batch_size, columns=[column], with_row_id=True):
        found = distance(wanted, batch[column].to(place))
        rows = batch["_rowid"].to(place).broadcast_to(found.shape)
        distances, ids = sort_tensors(torch.cat([distances, found], 1), torch.cat([ids, rows], 1), k)
    return ids


def recall(expected: npt.NDArray[Any], actual: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Which share of the true neighbours of each query was found.

    >>> recall(np.array([[1, 2]]), np.array([[2, 3]])).tolist()
    [0.5]
    """
    if expected.shape != actual.shape:
        raise InvalidInput(f"expected has the shape {expected.shape}, actual {actual.shape}")
    return np.array([np.isin(one, other).sum() / len(one) for one, other in zip(expected, actual, strict=True)])


def infer_vector_column(ds: Table) -> str | None:
    """The first column of vectors; None if there is none.

    >>> import lancelet
    >>> infer_vector_column(lancelet.write_dataset(pa.table({"x": [1]}), "memory://no-vectors")) is None
    True
    """
    for field in ds.schema:
        kind = field.type
        if pa.types.is_fixed_size_list(kind) or (isinstance(kind, pa.FixedShapeTensorType) and len(kind.shape) == 1):
            return str(field.name)
    return None
