"""Distances of the vectors in an Arrow column to queries; NaN for a row that has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.kernels import distances
from lancelet.query.nearest import Metric, Nearest, VectorKind
from lancelet.query.selection import from_bits

__all__ = ["Prepared", "distances_to", "prepared"]

Floats = npt.NDArray[np.float32]
#: Numbers of other types are brought to those that kernels take so many bytes at a time, which stay in the cache.
_CHUNK = 2**18
#: Types of the numbers as files hold them.
_STORED = {"float16": "u2", "bfloat16": "u2", "float32": "f4", "float64": "f8", "uint8": "u1"}


class Prepared:
    """Queries in the form that a column's vectors are compared with."""

    def __init__(self, nearest: Nearest) -> None:
        self.nearest = nearest
        self.function: Callable[[npt.NDArray[np.generic], npt.NDArray[np.generic], Floats], None] = {
            Metric.L2: distances.squared_l2,
            Metric.COSINE: distances.cosine,
            Metric.DOT: distances.dot_products,
            Metric.HAMMING: distances.hamming,
        }[nearest.metric]  # type: ignore[assignment]
        self.queries: list[npt.NDArray[np.generic]] = [
            np.ascontiguousarray(_query(query, nearest.kind)) for query in nearest.queries
        ]

    def of_vectors(self, values: npt.NDArray[np.generic], query: npt.NDArray[np.generic]) -> Floats:
        """The distances of vectors, one after the other, to a query."""
        size = self.nearest.kind.size
        out = np.empty(len(values) // size, np.float32)
        for start, some in _chunks(values, self.nearest.kind):
            self.function(some, query, out[start : start + len(some) // size])
        if self.nearest.metric is Metric.DOT:
            np.subtract(np.float32(1), out, out=out)
        return out


def prepared(nearest: Nearest) -> Prepared:
    """What a search needs to know of its queries."""
    return Prepared(nearest)


def _query(query: Floats, kind: VectorKind) -> npt.NDArray[np.generic]:
    match kind.numbers:
        case "float16":
            # As precise as the vectors, so that a vector of the column is at no distance from itself.
            with np.errstate(over="ignore"):
                return query.astype(np.float16).astype(np.float32)
        case "float64":
            return query.astype(np.float64)
        case "uint8":
            return query.astype(np.uint8)
    return query


def _chunks(values: npt.NDArray[np.generic], kind: VectorKind) -> Iterator[tuple[int, npt.NDArray[np.generic]]]:
    """The numbers as kernels take them, whole vectors at a time, each piece with the number of its first vector."""
    if kind.numbers not in ("float16", "bfloat16"):
        yield 0, values
        return
    rows = max(_CHUNK // (4 * kind.size), 1)
    room = np.empty(min(rows * kind.size, len(values)), np.float32)
    for start in range(0, len(values) // kind.size, rows):
        some = values[start * kind.size : (start + rows) * kind.size]
        out = room[: len(some)]
        if kind.numbers == "float16":
            distances.widen_halves(some.view(np.uint16), out)
        else:
            np.left_shift(some, 16, out=out.view(np.uint32), dtype=np.uint32)
        yield start, out


def distances_to(ready: Prepared, array: pa.Array) -> list[Floats]:
    """For each question the distances of all rows of a column.

    >>> from lancelet.expr import Column
    >>> from lancelet.query.nearest import vector_kind
    >>> rows = pa.array([[1, 2], None, [3, 2]], pa.list_(pa.float32(), 2))
    >>> asked = Nearest(column=Column(("v",), rows.type), kind=vector_kind(rows.type, "v"), k=1, batch=False,
    ...                 queries=np.array([[1, 1]], np.float32), metric=Metric.L2)
    >>> distances_to(prepared(asked), rows)
    [array([ 1., nan,  5.], dtype=float32)]
    """
    array = _storage(array)
    if not ready.nearest.kind.several:
        missing = _missing(array)
        values = _numbers(array, ready.nearest.kind)
        return [_without(ready.of_vectors(values, query), missing) for query in ready.queries]
    return _of_several(ready, array)


def _of_several(ready: Prepared, array: pa.Array) -> list[Floats]:
    """For each question the least distance of a row's vectors to each query vector, all of these together."""
    offsets = np.asarray(array.offsets).astype(np.int64)
    vectors = _storage(array.values).slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    offsets = offsets - offsets[0]
    missing, values = _missing(vectors), _numbers(vectors, ready.nearest.kind)
    counts = np.diff(offsets)
    some = np.flatnonzero((counts > 0) & from_bits(array.is_valid()))
    found = []
    for query in ready.queries:
        least = np.full(len(array), np.nan, np.float32)
        if len(some):
            each = _without(ready.of_vectors(values, query), missing)
            # Every other place ends a row: what lies between rows, of those that are null, is passed over.
            bounds = np.stack([offsets[some], offsets[some] + counts[some]], axis=1).ravel()
            each = np.append(each, np.float32(np.nan))
            # Vectors without a distance are passed over where the row has others.
            least[some] = np.fmin.reduceat(each, bounds)[::2]
        found.append(least)
    return found if ready.nearest.batch else [np.sum(found, axis=0, dtype=np.float32)]


def _storage(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _numbers(array: pa.Array, kind: VectorKind) -> npt.NDArray[np.generic]:
    """The numbers of all vectors, those of null ones too."""
    items = _storage(array.values)
    dtype = np.dtype(_STORED[kind.numbers])
    first, count = array.offset * kind.size, len(array) * kind.size
    buffer = items.buffers()[1]
    if buffer is None or not count:
        return np.zeros(count, dtype)
    values = np.frombuffer(buffer, dtype, count, (items.offset + first) * dtype.itemsize)
    return values if values.flags.aligned else values.copy()


def _missing(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which vectors are null, or have a null in them; None where none is."""
    size = array.type.list_size
    missing: npt.NDArray[np.bool_] | None = None
    if array.null_count:
        missing = np.logical_not(from_bits(array.is_valid()))
    items = _storage(array.values).slice(array.offset * size, len(array) * size)
    if items.null_count:
        within: npt.NDArray[np.bool_] = np.any((~from_bits(items.is_valid())).reshape(len(array), size), axis=1)
        missing = within if missing is None else missing | within
    return missing


def _without(found: Floats, missing: npt.NDArray[np.bool_] | None) -> Floats:
    if missing is not None:
        found[missing] = np.nan
    return found
