"""Columns of Arrow as tensors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import torch

from lancelet.file.blob_file import BlobFile
from lancelet.format.types import BFLOAT16

__all__ = ["Converter", "ToTensorFn", "to_tensor"]


class Converter(Protocol):
    """What makes tensors, or whatever training takes, of columns that are no numbers."""

    def to_pytorch(self, col: str, array: pa.Array) -> Any:
        """The values of a column; None if it is not one that it knows."""


class ToTensorFn(Protocol):
    """What is called for each batch: Arrow columns go in, tensors come out."""

    def __call__(
        self,
        batch: pa.RecordBatch | Mapping[str, Any],
        *,
        hf_converter: Converter | None = None,
        use_blob_api: bool = False,
        **kwargs: Any,
    ) -> dict[str, torch.Tensor] | torch.Tensor:
        """The tensors of a batch."""


def to_tensor(
    batch: pa.RecordBatch | Mapping[str, Any],
    *,
    uint64_as_int64: bool = True,
    hf_converter: Converter | None = None,
    use_blob_api: bool = False,
    **kwargs: Any,
) -> dict[str, torch.Tensor] | torch.Tensor:
    """A tensor for each column; of a single column the tensor itself.

    Numbers, booleans, brain floats, and fixed-size lists and tensors of them are taken as they lie in memory. A null
    makes NaN of a number. Other columns go to the converter, if it knows them.

    >>> to_tensor(pa.record_batch({"x": [1, 2], "y": [1.5, None]}))
    {'x': tensor([1, 2]), 'y': tensor([1.5000,    nan], dtype=torch.float64)}
    """
    names = batch.schema.names if isinstance(batch, pa.RecordBatch) else list(batch)
    made: dict[str, torch.Tensor] = {}
    for name in names:
        column = batch[name]
        if isinstance(column, list) and any(isinstance(item, BlobFile) for item in column):
            raise NotImplementedError(
                f"column {name!r} holds blobs, of which no tensor is made: give a to_tensor_fn that reads them"
            )
        tensor = _column(column)
        if tensor is None and hf_converter is not None:
            tensor = hf_converter.to_pytorch(name, column)
        if tensor is None:
            raise ValueError(
                f"column {name!r} is of {column.type}, of which no tensor is made: expected numbers, booleans, "
                "or fixed-size lists of numbers; choose other columns, or give a to_tensor_fn"
            )
        if uint64_as_int64 and isinstance(tensor, torch.Tensor) and tensor.dtype == torch.uint64:
            tensor = tensor.to(torch.int64)
        made[name] = tensor
    return next(iter(made.values())) if len(made) == 1 else made


def _column(column: pa.Array) -> torch.Tensor | None:
    """The tensor of a column; None where there is none for its type."""
    if isinstance(column.type, pa.FixedShapeTensorType):
        column = column.storage
    kind = column.type
    if _is_brain(kind):
        return _brain_floats(column)
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size
        # The values of a list array are those of all rows of its buffer, whatever slice it is.
        values = column.values.slice(column.offset * width, len(column) * width)
        if _is_brain(kind.value_type):
            return _brain_floats(values).view(-1, width)
        if _is_number(kind.value_type):
            return _numbers(values).reshape(-1, width)
        return None
    if _is_number(kind) or pa.types.is_boolean(kind):
        return _numbers(column)
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_brain(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == BFLOAT16


def _numbers(column: pa.Array) -> torch.Tensor:
    found = column.to_numpy(zero_copy_only=False)
    if found.dtype == np.object_:
        raise ValueError(f"a column of {column.type} holds nulls, which no tensor has: filter them, or fill them")
    return _shared(found)


def _brain_floats(column: pa.Array) -> torch.Tensor:
    storage = column.storage if isinstance(column, pa.ExtensionArray) else column
    buffer = storage.buffers()[1]
    if buffer is None or not len(storage):
        return torch.empty(0, dtype=torch.bfloat16)
    bits = np.frombuffer(buffer, np.uint16, len(storage), storage.offset * 2)
    tensor = _shared(bits).view(torch.bfloat16)
    if storage.null_count:
        tensor = tensor.clone()
        tensor[_shared(column.is_null().to_numpy(zero_copy_only=False))] = float("nan")
    return tensor


def _shared(values: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor over the same memory. That Arrow's memory is not to be written to is for the user to know."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable", category=UserWarning)
        return torch.from_numpy(values)
