"""Searches for the nearest vectors, as users ask for them: checked, and brought to the form that queries take."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.format.fields import Schema
from lancelet.query.facts import facts_of
from lancelet.query.nearest import Nearest, metric_named, vector_kind
from lancelet.query.request import column_named
from lancelet.query.vector_indexes import metric_of_index
from lancelet.schema.lance_schema import LanceSchema
from lancelet.table.snapshot import Snapshot

__all__ = ["NearestOptions", "check_nearest", "nearest_of", "query_vector"]

_MODES = ("fast", "normal", "accurate")
#: Rows that a search finds if nobody says how many.
_USUAL = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestOptions:
    """What is asked for. What only tells an approximate index how hard to try is checked, and not used."""

    column: str
    q: object
    k: int | None = None
    metric: str | None = None
    nprobes: int | None = None
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    refine_factor: int | None = None
    use_index: bool = True
    ef: int | None = None
    query_parallelism: int | None = None
    approx_mode: str = "normal"
    distance_range: tuple[float | None, float | None] | None = None
    search_effort: float | None = None

    def __post_init__(self) -> None:
        for name, lowest in (("k", 1), ("minimum_nprobes", 0), ("maximum_nprobes", 0), ("refine_factor", 1), ("ef", 1)):
            _check_least(name, getattr(self, name), lowest)
        if self.search_effort is None:
            _check_least("nprobes", self.nprobes, 1)
        _check_least("query_parallelism", self.query_parallelism, -1)
        least, most = self.minimum_nprobes, self.maximum_nprobes
        if least is not None and most is not None and least > most:
            raise InvalidInput(f"minimum_nprobes is {least}, above maximum_nprobes, {most}")
        if self.approx_mode not in _MODES:
            raise InvalidInput(f"approx_mode is {self.approx_mode!r}, expected one of {', '.join(_MODES)}")
        if self.distance_range is not None and len(self.distance_range) != 2:
            raise InvalidInput(f"distance_range is {self.distance_range!r}, expected a lower and an upper bound")


def _check_least(name: str, value: int | None, least: int) -> None:
    if value is not None and operator.index(value) < least:
        raise InvalidInput(f"{name} is {value}, expected at least {least}")


def check_nearest(options: NearestOptions, schema: Schema) -> NearestOptions:
    """The options with the query as an array of vectors, all of the column's size.

    InvalidInput where there is no such column or sizes differ; TypeError where the column, or the query, holds no
    vectors.
    """
    field = LanceSchema(schema).field_case_insensitive(options.column)
    if field is None:
        known = ", ".join(item.name for item in schema.fields)
        raise InvalidInput(f"there is no column {options.column!r}", column=options.column, hint=f"there are: {known}")
    size = _vector_size(field.to_arrow().type)
    if size is None:
        raise TypeError(f"column {options.column!r} has type {field.to_arrow().type}, expected vectors")
    vectors = query_vector(options.q)
    if vectors.shape[-1] != size:
        text = f"the query vector has {vectors.shape[-1]} values, those of the column have {size}"
        raise InvalidInput(text, column=options.column)
    return replace(options, q=vectors)


def nearest_of(options: NearestOptions, snapshot: Snapshot, *, prefilter: bool, limit: int | None = None) -> Nearest:
    """What is to be found, checked against the columns of a version; the metric that of an index, if there is one.

    Where ``k`` is not said it is ``limit``.

    >>> import lancelet
    >>> table = pa.table({"v": pa.array([[0, 1], [2, 3]], pa.list_(pa.float32(), 2))})
    >>> dataset = lancelet.write_dataset(table, "memory://nearest-of")
    >>> nearest_of(NearestOptions(column="v", q=[1, 1]), dataset.snapshot, prefilter=True).k
    10
    """
    checked = check_nearest(options, snapshot.schema)
    facts = facts_of(snapshot.manifest)
    column = column_named(checked.column, facts.bound)
    kind = vector_kind(column.type, checked.column)
    queries = np.asarray(checked.q, np.float32)
    if checked.metric is not None:
        metric = metric_named(checked.metric)
    else:
        metric = metric_of_index(snapshot, facts, column) or kind.metrics[0]
    lowest, highest = checked.distance_range or (None, None)
    return Nearest(
        column=column,
        kind=kind,
        queries=np.atleast_2d(queries),
        batch=queries.ndim == 2 and not kind.several,
        k=checked.k or limit or _USUAL,
        metric=metric,
        lowest=lowest,
        highest=highest,
        prefilter=prefilter,
    )


def _vector_size(kind: pa.DataType) -> int | None:
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return kind.list_size if pa.types.is_fixed_size_list(kind) else None


def query_vector(query: object) -> npt.NDArray[np.float32]:
    """A query as one vector, or several as rows of a matrix. TypeError where it is no list of numbers.

    >>> query_vector([1, 2]), query_vector([[1, 2], [3, 4]]).shape
    (array([1., 2.], dtype=float32), (2, 2))
    """
    if isinstance(query, pa.ExtensionScalar):
        query = query.value
    if isinstance(query, pa.FixedSizeListScalar | pa.ListScalar):
        query = query.values
    if isinstance(query, pa.Array | pa.ChunkedArray):
        query = _of_arrow(query)
    elif isinstance(query, str | bytes) or not isinstance(query, Iterable):
        raise TypeError(f"a query vector is a list of numbers, not {type(query).__name__}")
    elif not isinstance(query, Sequence | np.ndarray):
        query = list(query)
    try:
        found = np.asarray(query, np.float32)
    except (TypeError, ValueError) as error:
        raise TypeError(f"a query vector is a list of numbers, and several are of one length: {error}") from None
    if found.ndim not in (1, 2) or not found.size:
        raise InvalidInput(f"the query has shape {found.shape}, expected one vector, or a list of them")
    return found


def _of_arrow(query: pa.Array | pa.ChunkedArray) -> object:
    if isinstance(query, pa.ChunkedArray):
        query = query.combine_chunks()
    if isinstance(query, pa.ExtensionArray):
        query = query.storage
    if pa.types.is_fixed_size_list(query.type) or pa.types.is_list(query.type):
        return query.to_pylist()
    if not (pa.types.is_floating(query.type) or pa.types.is_integer(query.type)):
        raise TypeError(f"a query vector is a list of numbers, not of {query.type}")
    return query.to_numpy(zero_copy_only=False)
