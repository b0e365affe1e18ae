"""pandas: columns of 16-bit brain floats."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype

from lancelet.arrow.bfloat16 import BFloat16, BFloat16Array, BFloat16Type, bfloat16_array
from lancelet.format.types import BFLOAT16

__all__ = ["PandasBFloat16Array", "PandasBFloat16Type"]


@register_extension_dtype
class PandasBFloat16Type(ExtensionDtype):  # type: ignore[misc]
    """The type of a pandas column of brain floats; its name is ``lance.bfloat16``.

    >>> import pandas
    >>> pandas.Series([1.1, 2.5], dtype="lance.bfloat16")[0]
    1.1015625
    """

    name = BFLOAT16
    kind = "f"
    type = BFloat16
    na_value = None
    _is_numeric = True

    @classmethod
    def construct_array_type(cls) -> builtins.type[PandasBFloat16Array]:
        """The class of columns."""
        return PandasBFloat16Array

    @classmethod
    def construct_from_string(cls, string: str) -> Self:
        """The type that is called so; TypeError for every other name."""
        if string != BFLOAT16:
            raise TypeError(f"cannot construct a {cls.__name__} from {string!r}")
        return cls()

    def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> PandasBFloat16Array:
        return PandasBFloat16Array(_whole(array))


class PandasBFloat16Array(ExtensionArray):  # type: ignore[misc]
    """A pandas column over an Arrow column of brain floats."""

    def __init__(self, data: BFloat16Array) -> None:
        self.data = data

    @property
    def dtype(self) -> PandasBFloat16Type:
        """Its type."""
        return PandasBFloat16Type()

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.data.nbytes)

    @classmethod
    def from_numpy(cls, array: npt.NDArray[np.generic]) -> PandasBFloat16Array:
        """From an array of the ``bfloat16`` of ``ml_dtypes``."""
        return cls(BFloat16Array.from_numpy(array))

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: object = None, copy: bool = False) -> PandasBFloat16Array:
        return cls(bfloat16_array([None if item is None else float(item) for item in scalars]))

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[PandasBFloat16Array]) -> PandasBFloat16Array:
        return cls(_whole(pa.chunked_array([item.data for item in to_concat], BFloat16Type())))

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int | np.integer):
            return self.data[int(item)].as_py()
        if isinstance(item, slice):
            return PandasBFloat16Array(self.data.take(pa.array(np.arange(len(self))[item])))
        picked = np.asarray(item)
        rows = np.flatnonzero(picked) if picked.dtype == np.bool_ else picked.astype(np.int64)
        return PandasBFloat16Array(self.data.take(pa.array(rows)))

    def __len__(self) -> int:
        return len(self.data)

    def __arrow_array__(self, type: pa.DataType | None = None) -> BFloat16Array:
        return self.data

    def isna(self) -> npt.NDArray[np.bool_]:
        """Which values are null."""
        return np.asarray(self.data.is_null())

    def copy(self) -> PandasBFloat16Array:
        """Itself over the same values, which never change."""
        return PandasBFloat16Array(self.data)

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> PandasBFloat16Array:
        """Values by number; -1 is a null where that is allowed."""
        rows = np.asarray(indices, np.int64)
        missing = rows < 0
        if allow_fill:
            return PandasBFloat16Array(self.data.take(pa.array(rows, mask=missing)))
        return PandasBFloat16Array(self.data.take(pa.array(np.where(missing, rows + len(self), rows))))

    def to_numpy(self, *args: Any, **kwargs: Any) -> npt.NDArray[Any]:
        """The values as NumPy has them by ``ml_dtypes``."""
        return self.data.to_numpy()


def _whole(array: pa.Array | pa.ChunkedArray) -> BFloat16Array:
    if isinstance(array, pa.ChunkedArray):
        storage = pa.chunked_array([chunk.storage for chunk in array.chunks], pa.binary(2)).combine_chunks()
        storage = storage if isinstance(storage, pa.Array) else pa.concat_arrays(storage.chunks)
        array = pa.ExtensionArray.from_storage(BFloat16Type(), storage)
    found: BFloat16Array = array
    return found
