"""What is asked of a search for the nearest vectors: the column, the queries, how far apart vectors are, how many."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr import Column

__all__ = ["DISTANCE", "QUERY_INDEX", "Metric", "Nearest", "VectorKind", "metric_named", "search_fields", "vector_kind"]

#: Columns that a search adds: how far a row is from the query, and from which one where there are several.
DISTANCE, QUERY_INDEX = "_distance", "query_index"

_FIELDS = {DISTANCE: pa.field(DISTANCE, pa.float32()), QUERY_INDEX: pa.field(QUERY_INDEX, pa.int32(), nullable=False)}


class Metric(Enum):
    """How far apart two vectors are."""

    #: The sum of the squared differences.
    L2 = "l2"
    #: 1 less the cosine of the angle between; vectors of zeros are nowhere.
    COSINE = "cosine"
    #: 1 less the sum of the products.
    DOT = "dot"
    #: How many bits differ.
    HAMMING = "hamming"


_NAMES = {
    "l2": Metric.L2,
    "euclidean": Metric.L2,
    "cosine": Metric.COSINE,
    "dot": Metric.DOT,
    "hamming": Metric.HAMMING,
}


def metric_named(name: str) -> Metric:
    """The metric with a name, in whatever case; InvalidInput for an unknown one.

    >>> metric_named("Euclidean")
    <Metric.L2: 'l2'>
    """
    found = _NAMES.get(name.lower())
    if found is None:
        raise InvalidInput(f"metric is {name!r}, expected one of {', '.join(_NAMES)}")
    return found


@dataclass(frozen=True, slots=True)
class VectorKind:
    """What the vectors of a column are: how many numbers of which type, and whether a row has several of them."""

    #: ``float16``, ``bfloat16``, ``float32``, ``float64`` or ``uint8``.
    numbers: str
    size: int
    several: bool

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that there are for such vectors, the usual one first."""
        return (Metric.HAMMING,) if self.numbers == "uint8" else (Metric.L2, Metric.COSINE, Metric.DOT)


_NUMBERS = {
    pa.float16(): "float16",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.uint8(): "uint8",
}


def vector_kind(kind: pa.DataType, column: str) -> VectorKind:
    """What vectors a type holds. TypeError where it holds none, InvalidInput where they cannot be searched.

    >>> vector_kind(pa.list_(pa.float32(), 8), "v")
    VectorKind(numbers='float32', size=8, several=False)
    """
    inner, several = _storage(kind), False
    if pat.is_list(inner) or pat.is_large_list(inner):
        inner, several = _storage(inner.value_type), True
    if not pat.is_fixed_size_list(inner):
        raise TypeError(f"column {column!r} has type {kind}, expected vectors: lists of a fixed size")
    numbers = _numbers(inner.value_type)
    if numbers is None:
        known = ", ".join([*_NUMBERS.values(), "bfloat16"])
        raise InvalidInput(f"vectors of {inner.value_type} cannot be searched, only those of {known}", column=column)
    return VectorKind(numbers, inner.list_size, several)


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _numbers(kind: pa.DataType) -> str | None:
    if isinstance(kind, pa.BaseExtensionType):
        return "bfloat16" if kind.extension_name == "lance.bfloat16" else None
    return _NUMBERS.get(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The rows to find: the ``k`` whose vectors are nearest to each query; equal distances by row id.

    A row whose vector is null, or has no distance because something in it is null or NaN, is never found.
    """

    column: Column
    kind: VectorKind
    #: A vector each; for a column of several vectors a row they are together one query.
    queries: npt.NDArray[np.float32]
    #: Whether answers say by ``query_index`` to which query they belong.
    batch: bool
    k: int
    metric: Metric
    #: Distances from the first bound up to but not including the second.
    lowest: float | None = None
    highest: float | None = None
    #: Whether the condition of the request chooses the rows to search, or some of those that were found.
    prefilter: bool = False

    def __post_init__(self) -> None:
        name = ".".join(self.column.path)
        if self.k < 1:
            raise InvalidInput(f"k is {self.k}, expected at least 1")
        if self.queries.ndim != 2 or self.queries.shape[1] != self.kind.size:
            found = f"the query has {self.queries.shape[-1]} values, the vectors of the column have {self.kind.size}"
            raise InvalidInput(found, column=name)
        if self.metric not in self.kind.metrics:
            known = ", ".join(metric.value for metric in self.kind.metrics)
            found = f"there is no {self.metric.value} distance of vectors of {self.kind.numbers}"
            raise InvalidInput(found, column=name, hint=f"there is {known}")
        if self.kind.numbers == "uint8" and not _are_bytes(self.queries):
            raise InvalidInput("the query has values that are no whole numbers from 0 to 255", column=name)

    @property
    def questions(self) -> int:
        """To how many questions the answers belong."""
        return len(self.queries) if self.batch else 1


def _are_bytes(queries: npt.NDArray[np.float32]) -> bool:
    return bool(np.all((queries >= 0) & (queries <= 255) & (queries == np.floor(queries))))


def search_fields(nearest: Nearest | None) -> list[pa.Field]:
    """The columns that a search adds to those of the table."""
    if nearest is None:
        return []
    return [*([_FIELDS[QUERY_INDEX]] if nearest.batch else []), _FIELDS[DISTANCE]]
