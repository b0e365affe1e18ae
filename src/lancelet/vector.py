"""Vectors: tables of them made of lists and NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput

__all__ = ["vec_to_table"]


def vec_to_table(
    data: Mapping[object, Sequence[float]] | Sequence[Sequence[float]] | npt.NDArray[np.floating],
    names: str | Sequence[str] | None = None,
    ndim: int | None = None,
    check_ndim: bool = True,
) -> pa.Table:
    """A table with a column of vectors of 32-bit floats, called ``vector``; of a mapping also its keys, called ``id``.

    ``names`` are other names, and ``ndim`` how many values each vector must have.

    >>> vec_to_table({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_pydict()
    {'id': ['a', 'b'], 'vector': [[1.0, 2.0], [3.0, 4.0]]}
    """
    if isinstance(data, Mapping):
        called = ("id", "vector") if names is None else names
        if isinstance(called, str) or len(called) != 2:
            raise InvalidInput(f"names are {called!r}, expected two: of the keys and of the vectors")
        return pa.table([pa.array(list(data)), _vectors(data.values(), ndim, check_ndim)], names=list(called))
    if not isinstance(data, list | tuple | np.ndarray):
        raise NotImplementedError(f"vectors are given as a dict, a list or an array, not as {type(data)}")
    called = ["vector"] if names is None else [names] if isinstance(names, str) else list(names)
    return pa.table([_vectors(data, ndim, check_ndim)], names=called)


def _vectors(rows: Iterable[Sequence[float]], ndim: int | None, check: bool) -> pa.FixedSizeListArray:
    values = rows if isinstance(rows, np.ndarray) else list(rows)
    if not len(values):
        raise InvalidInput("there are no vectors to make a column of")
    size = len(values[0]) if ndim is None else ndim
    if check or isinstance(values, np.ndarray):
        odd = next((row for row in values if len(row) != size), None)
        if odd is not None:
            raise InvalidInput(f"a vector has {len(odd)} values, expected {size}")
    flat = np.ascontiguousarray(values, np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), size)
