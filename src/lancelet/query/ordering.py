"""Orders of rows: by several values, each up or down, nulls first or last; equal rows stay as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import OverBudget, Unsupported
from lancelet.index.sorting import sort_places
from lancelet.query.joining import one_array
from lancelet.query.picking import pick

__all__ = ["SortKey", "check_sortable", "order_of_rows", "sorted_rows", "taken"]

Ints = npt.NDArray[np.int64]
_WORDS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column of rows to be ordered, by its number. NaN is larger than any number, 0.0 larger than -0.0."""

    column: int
    ascending: bool = True
    nulls_first: bool = False


def check_sortable(kind: pa.DataType, name: str) -> None:
    """Unsupported for values that have no order.

    >>> check_sortable(pa.list_(pa.int8()), "x")
    Traceback (most recent call last):
    lancelet.errors.Unsupported: rows cannot be ordered by values of type list<item: int8> [column=x]
    """
    inner = kind.value_type if pat.is_dictionary(kind) else kind
    if pat.is_nested(inner) or isinstance(inner, pa.BaseExtensionType) or pat.is_interval(inner):
        raise Unsupported(f"rows cannot be ordered by values of type {kind}", column=name)


def order_of_rows(rows: pa.Table, keys: Sequence[SortKey]) -> Ints:
    """The numbers of the rows, the first one's first.

    >>> order_of_rows(pa.table([[2, None, 1]], names=["x"]), [SortKey(0, ascending=False)]).tolist()
    [0, 2, 1]
    """
    columns = [_sortable(_whole(rows.column(key.column))) for key in keys]
    if len(keys) == 1:
        return _by_one(columns[0], keys[0])
    # What is null comes by a column of its own, so that each key can have its nulls at either end.
    named: dict[str, pa.Array] = {}
    orders: list[tuple[str, str]] = []
    for number, (key, column) in enumerate(zip(keys, columns, strict=True)):
        if column.null_count:
            named[f"null {number}"] = column.is_null()
            orders.append((f"null {number}", "descending" if key.nulls_first else "ascending"))
        named[f"{number}"] = column
        orders.append((f"{number}", "ascending" if key.ascending else "descending"))
    return np.asarray(pc.sort_indices(pa.table(named), sort_keys=orders)).astype(np.int64)


def _by_one(column: pa.Array, key: SortKey) -> Ints:
    count, nulls = len(column), column.null_count
    if key.ascending:
        places = sort_places(column)
        present, missing = places[nulls:], places[:nulls]
    else:
        # Backwards twice: equal values keep their order.
        places = count - 1 - sort_places(column[::-1])[::-1]
        present, missing = places[: count - nulls], places[count - nulls :]
    return np.concatenate([missing, present] if key.nulls_first else [present, missing])


def sorted_rows(rows: pa.Table, keys: Sequence[SortKey], *, most: int | None = None) -> pa.Table:
    """The rows in order, at most so many.

    >>> sorted_rows(pa.table([["b", "a"]], names=["x"]), [SortKey(0)], most=1).to_pydict()
    {'x': ['a']}
    """
    return taken(rows, order_of_rows(rows, keys)[:most])


def taken(rows: pa.Table, numbers: Ints) -> pa.Table:
    """Some rows, in the order of their numbers.

    >>> taken(pa.table({"x": pa.chunked_array([[1], [2]])}), np.array([1, 0]))["x"].to_pylist()
    [2, 1]
    """
    columns = []
    for column in rows.columns:
        whole = one_array(column.chunks, column.type)
        columns.append(column.take(pa.array(numbers)) if whole is None else pick(whole, numbers))
    return pa.Table.from_arrays(columns, schema=rows.schema) if columns else rows.slice(0, len(numbers))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = one_array(column.chunks, column.type)
    if whole is None:
        found = f"{column.nbytes:,} bytes of values to order rows by do not fit one array"
        raise OverBudget(found, hint="order by shorter values, or fewer rows")
    return whole


def _sortable(array: pa.Array) -> pa.Array:
    """The values in a form of which every part of Arrow knows the order that is meant here."""
    kind = array.type
    if pat.is_dictionary(kind):
        return _sortable(array.dictionary_decode())
    if pat.is_null(kind):
        return pa.nulls(len(array), pa.int8())
    if pat.is_duration(kind):
        return array.view(pa.int64())
    if not pat.is_floating(kind):
        return array
    # As whole numbers: all bits but the sign turned around where the sign is set. One NaN, above infinity.
    width = kind.bit_width
    largest = (1 << (width - 1)) - 1
    values = array.view(_WORDS[width]).fill_null(0).to_numpy()
    numbers = values ^ ((values >> (width - 1)) & largest)
    numbers[np.isnan(values.view(f"f{width // 8}"))] = largest
    mask = np.asarray(array.is_null()) if array.null_count else None
    return pa.array(numbers, mask=mask)
