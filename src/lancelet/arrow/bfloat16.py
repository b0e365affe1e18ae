"""16-bit brain floats: the upper half of a 32-bit float, as a number, a column and a type.

s eeeeeeee mmmmmmm      sign, exponent and the first 7 bits of the fraction of the 32-bit float
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import total_ordering
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput
from lancelet.format.types import BFLOAT16

__all__ = ["BFloat16", "BFloat16Array", "BFloat16Scalar", "BFloat16Type", "bfloat16_array", "cast"]

_SHOWN = 10
_QUIET = np.uint16(0x40)


def _rounded(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The nearest brain floats, ties to even, as their bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    half = (bits >> np.uint32(16)) & np.uint32(1)
    found = ((bits + np.uint32(0x7FFF) + half) >> np.uint32(16)).astype(np.uint16)
    missing = np.isnan(values)
    if missing.any():
        # Rounding could carry a NaN into infinity; one bit keeps it a NaN.
        found = np.where(missing, (bits >> np.uint32(16)).astype(np.uint16) | _QUIET, found)
    return found


def _widened(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


@total_ordering
class BFloat16:
    """One number.

    >>> BFloat16(1.1), BFloat16(1.1).as_float(), BFloat16(1) < BFloat16(2)
    (1.1015625, 1.1015625, True)
    """

    __slots__ = ("_bits",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: float) -> None:
        if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
            raise TypeError(f"a number is expected, not {type(value).__name__}")
        with np.errstate(over="ignore"):
            self._bits = int(_rounded(np.array([value]).astype(np.float32))[0])

    @classmethod
    def from_bytes(cls, bytes: bytes) -> BFloat16:
        """The number in two bytes, the lower first."""
        if len(bytes) != 2:
            raise InvalidInput(f"a brain float has 2 bytes, got {len(bytes)}")
        made = cls.__new__(cls)
        made._bits = int.from_bytes(bytes, "little")
        return made

    def as_float(self) -> float:
        """The number, which every wider float can hold."""
        return float(_widened(np.array([self._bits], np.uint16))[0])

    def __float__(self) -> float:
        return self.as_float()

    def __bytes__(self) -> bytes:
        return self._bits.to_bytes(2, "little")

    def __eq__(self, other: object) -> bool:
        return self.as_float() == other.as_float() if isinstance(other, BFloat16) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.as_float() < other.as_float() if isinstance(other, BFloat16) else NotImplemented

    def __repr__(self) -> str:
        text = f"{self.as_float():g}" if self.as_float().is_integer() else repr(self.as_float())
        return "NaN" if text == "nan" else text

    def __reduce__(self) -> tuple[object, ...]:
        return BFloat16.from_bytes, (bytes(self),)


class BFloat16Scalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One value of a column."""

    def as_py(self, **kwargs: object) -> BFloat16 | None:
        """The number; None for a null."""
        return None if self.value is None else BFloat16.from_bytes(self.value.as_py())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BFloat16Scalar):
            return self.as_py() == other.as_py()
        return self.as_py() == other if isinstance(other, BFloat16) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)


class BFloat16Array(pa.ExtensionArray):  # type: ignore[misc]
    """A column of brain floats."""

    def __str__(self) -> str:
        values = [str(value) for value in self.to_pylist()]
        if len(values) >= 2 * (_SHOWN + 1):
            values = [*values[:_SHOWN], "...", *values[-_SHOWN:]]
        return "[\n" + ",\n".join(f"  {value}" if value != "..." else value for value in values) + "\n]"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>\n{self}"

    def to_numpy(self, zero_copy_only: bool = False) -> npt.NDArray[np.generic]:
        """The values as NumPy has them by the package ``ml_dtypes``, which must be installed. Nulls are refused."""
        if self.null_count:
            raise InvalidInput(f"{self.null_count} values are null, which NumPy has nothing for")
        return self.bits().view(import_module("ml_dtypes").bfloat16)

    def bits(self) -> npt.NDArray[np.uint16]:
        """The 16 bits of each value; those of nulls mean nothing."""
        storage = self.storage
        return np.frombuffer(storage.buffers()[1], np.uint16)[storage.offset : storage.offset + len(storage)]

    def to_float32(self) -> pa.FloatArray:
        """The same numbers as 32-bit floats."""
        mask = np.asarray(self.is_null()) if self.null_count else None
        return pa.array(_widened(self.bits()), pa.float32(), mask=mask)

    @classmethod
    def from_numpy(cls, array: npt.NDArray[np.generic]) -> BFloat16Array:
        """From an array of the ``bfloat16`` of ``ml_dtypes``."""
        if array.dtype.name != "bfloat16":
            raise InvalidInput(f"the array has type {array.dtype}, expected bfloat16")
        if array.ndim != 1:
            raise InvalidInput(f"the array has {array.ndim} dimensions, expected 1")
        return _array(np.ascontiguousarray(array).view(np.uint16), None)


class BFloat16Type(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of brain floats."""

    def __init__(self) -> None:
        super().__init__(pa.binary(2), BFLOAT16)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BFloat16Type:
        return BFloat16Type()

    def __arrow_ext_class__(self) -> type[BFloat16Array]:
        return BFloat16Array

    def __arrow_ext_scalar_class__(self) -> type[BFloat16Scalar]:
        return BFloat16Scalar

    def to_pandas_dtype(self) -> object:
        """The pandas type of such a column."""
        # By name: pandas is an integration, and those lie above.
        return import_module("lancelet.integrations.pandas").PandasBFloat16Type()


def _array(bits: npt.NDArray[np.uint16], valid: npt.NDArray[np.bool_] | None) -> BFloat16Array:
    bitmap = None if valid is None else pa.array(valid).buffers()[1]
    made: BFloat16Array = pa.Array.from_buffers(BFloat16Type(), len(bits), [bitmap, pa.py_buffer(bits)])
    return made


def bfloat16_array(values: Iterable[float | None] | pa.Array) -> BFloat16Array:
    """A column of the brain floats nearest to some numbers; None for nulls.

    >>> bfloat16_array([1.1, None]).to_pylist()
    [1.1015625, None]
    """
    try:
        floats = values if isinstance(values, pa.Array) else pa.array(list(values), pa.float32())
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(f"brain floats are made of numbers: {error}") from None
    floats = floats.cast(pa.float32())
    valid = np.asarray(floats.is_valid()) if floats.null_count else None
    return _array(_rounded(np.asarray(floats.fill_null(0))), valid)


def cast(arr: pa.Array, target_type: pa.DataType | str, *args: object, **kwargs: object) -> pa.Array:
    """As ``pyarrow.compute.cast``, which does not know brain floats: to and from other floats, also within vectors.

    >>> cast(pa.array([1.1], pa.float32()), "bfloat16").to_pylist()
    [1.1015625]
    """
    if isinstance(arr, BFloat16Array):
        if not pa.types.is_floating(target_type):
            raise InvalidInput(f"brain floats are cast to other floats, not to {target_type}")
        return arr.to_float32().cast(target_type)
    if isinstance(target_type, BFloat16Type) or target_type in ("bfloat16", "bf16"):
        if not pa.types.is_floating(arr.type):
            raise InvalidInput(f"brain floats are made of floats, not of {arr.type}")
        return bfloat16_array(arr)
    if pa.types.is_fixed_size_list(arr.type) and isinstance(target_type, pa.FixedSizeListType):
        if arr.type.list_size != target_type.list_size:
            raise InvalidInput(f"vectors of {arr.type.list_size} values are cast to {target_type}")
        size = arr.type.list_size
        values = cast(arr.values.slice(arr.offset * size, len(arr) * size), target_type.value_type)
        return pa.FixedSizeListArray.from_arrays(values, size, mask=arr.is_null() if arr.null_count else None)
    return pc.cast(arr, target_type, *args, **kwargs)


# Another library in the process may have registered a type of the name before: columns then have that one.
with suppress(pa.ArrowKeyError):
    pa.register_extension_type(BFloat16Type())
