"""Between Arrow and NumPy: values without their nulls, arrays from values and nulls, one value for all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

__all__ = [
    "Bools",
    "Numbers",
    "by_value",
    "column",
    "from_numpy",
    "list_spans",
    "made_list",
    "nulls_of",
    "raw_values",
    "spread",
    "valid_in_all",
]

#: Of whatever width and kind the type has.
Numbers: TypeAlias = npt.NDArray[Any]
Bools: TypeAlias = npt.NDArray[np.bool_]


def column(value: pa.Array | pa.Scalar, rows: int) -> pa.Array:
    """A value for each row.

    >>> column(pa.scalar(1), 2).to_pylist()
    [1, 1]
    """
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, value.type)
    return value


def raw_values(array: pa.Array) -> Numbers:
    """The numbers of an array of fixed width, with anything where it is null; a view where that can be."""
    if pat.is_boolean(array.type):
        filled = pc.fill_null(array, False) if array.null_count else array
        return np.asarray(filled.to_numpy(zero_copy_only=False), bool)
    width = array.type.bit_width // 8
    if width > 8:
        raise TypeError(f"{array.type} has no numbers of NumPy")
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), _dtype(array.type))
    return np.frombuffer(data, _dtype(array.type), len(array), array.offset * width)


def _dtype(kind: pa.DataType) -> np.dtype[np.generic]:
    if pat.is_floating(kind):
        return np.dtype(f"f{kind.bit_width // 8}")
    return np.dtype(f"{'u' if pat.is_unsigned_integer(kind) else 'i'}{kind.bit_width // 8}")


def nulls_of(array: pa.Array) -> Bools | None:
    """Where an array is null; None if nowhere."""
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), bool) if array.null_count else None


def valid_in_all(*arrays: pa.Array) -> Bools | None:
    """Where none of the arrays is null; None if that is everywhere."""
    found = [nulls for array in arrays if (nulls := nulls_of(array)) is not None]
    if not found:
        return None
    null = found[0]
    for more in found[1:]:
        null = null | more
    return ~null


def from_numpy(values: npt.NDArray[np.generic], kind: pa.DataType, valid: Bools | None = None) -> pa.Array:
    """An array of a fixed-width type over NumPy's numbers, null where not valid.

    >>> from_numpy(np.array([1, 2]), pa.date32(), np.array([True, False])).to_pylist()
    [datetime.date(1970, 1, 2), None]
    """
    mask = None if valid is None or valid.all() else np.packbits(valid, bitorder="little")
    bitmap = None if mask is None else pa.py_buffer(mask)
    if pat.is_boolean(kind):
        data = np.packbits(np.asarray(values, bool), bitorder="little")
    else:
        data = np.ascontiguousarray(values, _dtype(kind))
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(data)])


def spread(values: pa.Array, rows: int, chosen: Bools) -> pa.Array:
    """Values of the chosen rows at their places, null elsewhere."""
    places = np.cumsum(chosen, dtype=np.int64) - 1
    return values.take(from_numpy(places, pa.int64(), chosen)) if rows else values


def list_spans(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], pa.Array]:
    """Of each list where its items begin and how many they are, none for null, and the items of all.

    >>> starts, lengths, items = list_spans(pa.array([[1, 2], None, [3]]))
    >>> starts.tolist(), lengths.tolist(), items.to_pylist()
    ([0, 2, 2], [2, 0, 1], [1, 2, 3])
    """
    kind = array.type
    nulls = nulls_of(array)
    if pat.is_fixed_size_list(kind):
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * kind.list_size
        lengths = np.full(len(array), kind.list_size, np.int64)
    else:
        wide = np.dtype(np.int64 if pat.is_large_list(kind) else np.int32)
        data = array.buffers()[1]
        offsets = np.zeros(len(array) + 1, np.int64)
        if data is not None and len(array):
            offsets = np.frombuffer(data, wide, len(array) + 1, array.offset * wide.itemsize).astype(np.int64)
        starts, lengths = offsets[:-1], np.diff(offsets)
    if nulls is not None:
        lengths = np.where(nulls, 0, lengths)
    return starts, lengths, array.values


def made_list(lengths: npt.NDArray[np.int64], items: pa.Array, valid: Bools | None = None) -> pa.Array:
    """Lists of so many items each, one after another; null where not valid, and of no items there.

    >>> made_list(np.array([1, 0, 2]), pa.array([1, 2, 3])).to_pylist()
    [[1], [], [2, 3]]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    bitmap = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    small = offsets[-1] <= np.iinfo(np.int32).max
    kind = pa.list_(pa.field("item", items.type)) if small else pa.large_list(pa.field("item", items.type))
    data = pa.py_buffer(offsets.astype(np.int32) if small else offsets)
    return pa.Array.from_buffers(kind, len(lengths), [bitmap, data], children=[items])


def by_value(
    compute: Callable[..., object], values: Sequence[pa.Array | pa.Scalar], rows: int, kind: pa.DataType
) -> pa.Array:
    """What Python computes of the arguments, once for each combination that occurs; null where one is null.

    For functions that Arrow has no kernel for and that are rarely asked for.

    >>> by_value(lambda text, times: text * times, [pa.array(["a", None]), pa.scalar(2)], 2, pa.string()).to_pylist()
    ['aa', None]
    """
    constants = [value.as_py() if isinstance(value, pa.Scalar) else None for value in values]
    if any(isinstance(value, pa.Scalar) and not value.is_valid for value in values):
        return pa.nulls(rows, kind)
    varying = [(place, value) for place, value in enumerate(values) if isinstance(value, pa.Array)]
    if not varying:
        return pa.repeat(pa.scalar(compute(*constants), kind), rows)
    encoded = [value.dictionary_encode() for _, value in varying]
    valid = valid_in_all(*(value for _, value in varying))
    code = np.zeros(rows, np.int64)
    for each in encoded:
        code = code * max(len(each.dictionary), 1) + raw_values(each.indices.fill_null(0))
        if len(encoded) > 1:
            # Numbered anew, so that the next product cannot overflow.
            code = np.unique(code, return_inverse=True)[1]
    if valid is not None:
        code = np.where(valid, code, -1)
    seen, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    made: list[object] = []
    picked = [value.take(pa.array(first)).to_pylist() for _, value in varying]
    for place, which in enumerate(seen.tolist()):
        if which < 0:
            made.append(None)
            continue
        arguments = list(constants)
        for (position, _), items in zip(varying, picked, strict=True):
            arguments[position] = items[place]
        made.append(compute(*arguments))
    return pa.array(made, kind).take(pa.array(inverse))
