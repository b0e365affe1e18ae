"""What lists are asked: whether they hold something, where, and how many items they have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import Datum, Function, cast_to, integer_of
from lancelet.expr.functions.list_items import (
    as_list,
    bound_lists,
    equal_items,
    items_of,
    list_and_item,
    listed,
    numbered,
)
from lancelet.expr.list_building import segments_all, segments_any
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import is_list, plain
from lancelet.expr.vectors import column, from_numpy, nulls_of, raw_values, valid_in_all

__all__ = ["FUNCTIONS"]

_NOTHING = Literal(pa.scalar(None, pa.bool_()))


def _exactly(name: str, arguments: Sequence[Expr], *counts: int) -> None:
    if len(arguments) not in counts:
        wanted = " or ".join(map(str, counts))
        raise InvalidInput(f"{name} takes {wanted} arguments, found {len(arguments)}")


def _bind_has(name: str, arguments: Sequence[Expr]) -> Expr:
    _exactly(name, arguments, 2)
    if pat.is_null(arguments[1].type):
        return _NOTHING
    lists, (item,), _ = list_and_item(name, *arguments)
    return Call(name, (lists, item), pa.bool_())


def _has(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    lists = column(values[0], rows)
    items = items_of(lists)
    wanted = column(values[1], rows) if isinstance(values[1], pa.Array) else values[1]
    valid = valid_in_all(lists, wanted) if isinstance(wanted, pa.Array) else items.valid
    if isinstance(wanted, pa.Scalar) and not wanted.is_valid:
        return pa.nulls(rows, pa.bool_())
    return from_numpy(segments_any(equal_items(items, wanted, rows), items.lengths), pa.bool_(), valid)


def _bind_both(name: str, arguments: Sequence[Expr]) -> Expr:
    _exactly(name, arguments, 2)
    (one, two), _ = bound_lists(name, arguments)
    return Call(name, (one, two), pa.bool_())


def _has_several(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Whether any or all items of the second list are in the first."""
    if any(isinstance(value, pa.Scalar) and not value.is_valid for value in values):
        return pa.nulls(rows, pa.bool_())
    lists, others = column(values[0], rows), column(values[1], rows)
    one, two = items_of(lists), items_of(others)
    codes, wanted = numbered(one.values, two.values)
    span = int(max(codes.max(initial=0), wanted.max(initial=0))) + 1
    found = np.isin(two.owners * span + wanted, one.owners * span + codes)
    join = segments_all if call.function == "array_has_all" else segments_any
    return from_numpy(join(found, two.lengths), pa.bool_(), valid_in_all(lists, others))


def _bind_position(name: str, arguments: Sequence[Expr]) -> Expr:
    _exactly(name, arguments, *((2, 3) if name == "array_position" else (2,)))
    lists, (item,), _ = list_and_item(name, *arguments[:2])
    start = [integer_of(name, each, 3) for each in arguments[2:]]
    returns = pa.uint64() if name == "array_position" else pa.list_(pa.uint64())
    return Call(name, (lists, item, *start), returns)


def _position(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Places are counted from 1."""
    lists = column(values[0], rows)
    items = items_of(lists)
    equal = equal_items(items, values[1], rows)
    places = np.arange(len(equal)) - np.repeat(items.begins, items.lengths) + 1
    if len(values) > 2:
        equal &= places >= np.repeat(raw_values(column(values[2], rows)), items.lengths)
    hits = np.flatnonzero(equal)
    owners = items.owners[hits]
    if call.function == "array_positions":
        counts = np.bincount(owners, minlength=rows)
        return listed(counts, pa.array(places[hits], pa.uint64()), items.valid, call.type)
    first = np.zeros(rows, np.uint64)
    # Written from the last to the first: the first stays.
    first[owners[::-1]] = places[hits][::-1]
    return from_numpy(first, pa.uint64(), first > 0)


def _bind_length(name: str, arguments: Sequence[Expr]) -> Expr:
    _exactly(name, arguments, *((1, 2) if name == "array_length" else (1,)))
    if name == "cardinality" and arguments and pat.is_map(plain(arguments[0].type)):
        return Call(name, (cast_to(arguments[0], plain(arguments[0].type)),), pa.uint64())
    lists = as_list(name, arguments[0], 1)
    if len(arguments) == 1:
        return Call(name, (lists,), pa.uint64())
    levels = arguments[1].value.as_py() if isinstance(arguments[1], Literal) else None
    if not isinstance(levels, int) or not 1 <= levels < 2**31:
        raise InvalidInput(f"{name} takes a constant of at least 1 as argument 2")
    return Call(name, (lists, Literal(pa.scalar(levels))), pa.uint64())


def _length(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    lists = column(values[0], rows)
    levels = values[1].as_py() if len(values) > 1 else 1
    if pat.is_map(lists.type):
        return from_numpy(items_of(lists).lengths, pa.uint64(), items_of(lists).valid)
    for _level in range(levels - 1):
        # Of lists of lists, the first one tells.
        if not is_list(lists.type) or not is_list(lists.type.value_type):
            return pa.nulls(rows, pa.uint64())
        items = items_of(lists)
        there = items.lengths > 0
        lists = items.values.take(from_numpy(np.where(there, items.begins, 0), pa.int64(), there))
    found = items_of(lists)
    return from_numpy(found.lengths, pa.uint64(), found.valid)


def _bind_list(name: str, arguments: Sequence[Expr]) -> Expr:
    _exactly(name, arguments, 1)
    lists = as_list(name, arguments[0], 1)
    returns = {"empty": pa.bool_(), "array_ndims": pa.uint64(), "array_dims": pa.list_(pa.uint64())}[name]
    return Call(name, (lists,), returns)


def _empty(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    return from_numpy(items.lengths == 0, pa.bool_(), items.valid)


def _depth(kind: pa.DataType) -> int:
    depth = 0
    while is_list(kind):
        kind, depth = kind.value_type, depth + 1
    return depth


def _ndims(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    lists = column(values[0], rows)
    nulls = nulls_of(lists)
    return from_numpy(np.full(rows, _depth(lists.type)), pa.uint64(), None if nulls is None else ~nulls)


def _dims(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The length of a list and of its first lists; null where one of them has no items."""
    lists = column(values[0], rows)
    depth = _depth(lists.type)
    sizes = [pc.fill_null(_length(call, [lists, pa.scalar(level + 1)], rows), 0) for level in range(depth)]
    table = np.stack([raw_values(each) for each in sizes], axis=1)
    full = np.all(table > 0, axis=1)
    nulls = nulls_of(lists)
    valid = full if nulls is None else full & ~nulls
    return listed(np.where(valid, depth, 0), pa.array(table[valid].ravel(), pa.uint64()), valid, call.type)


FUNCTIONS = (
    Function("array_has", _bind_has, _has, ("array_contains", "list_has", "list_contains"), cost=10),
    Function("array_has_all", _bind_both, _has_several, ("list_has_all",), cost=15),
    Function("array_has_any", _bind_both, _has_several, ("list_has_any", "arrays_overlap"), cost=15),
    Function(
        "array_position",
        _bind_position,
        _position,
        ("list_position", "array_indexof", "list_indexof"),
        strict=False,
        cost=10,
    ),
    Function("array_positions", _bind_position, _position, ("list_positions",), strict=False, cost=10),
    Function("array_length", _bind_length, _length, ("list_length",), cost=2),
    Function("cardinality", _bind_length, _length, cost=2),
    Function("empty", _bind_list, _empty, ("array_empty", "list_empty"), cost=2),
    Function("array_ndims", _bind_list, _ndims, ("list_ndims",)),
    Function("array_dims", _bind_list, _dims, ("list_dims",), cost=5),
)
