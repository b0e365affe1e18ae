"""Lists made from lists: items put in, taken out, replaced, put in order, or cut out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import Datum, Function, integer_of
from lancelet.expr.functions.list_items import (
    Int64s,
    Items,
    as_list,
    bound_lists,
    equal_items,
    items_of,
    list_and_item,
    list_of,
    listed,
    numbered,
    sort_ranks,
)
from lancelet.expr.limits import within_limits
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import is_list, plain
from lancelet.expr.vectors import Bools, column, raw_values, valid_in_all

__all__ = ["FUNCTIONS"]


def _kept(items: Items, keep: Bools, kind: pa.DataType) -> pa.Array:
    """The lists without the items that are not kept."""
    counts = np.bincount(items.owners[keep], minlength=len(items.lengths))
    return listed(counts, items.values.filter(pa.array(keep)), items.valid, kind)


def _ordered(items: Items, order: Int64s, kind: pa.DataType) -> pa.Array:
    return listed(items.lengths, items.values.take(pa.array(order)), items.valid, kind)


def _bind_put_in(name: str, arguments: Sequence[Expr]) -> Expr:
    """``array_append(list, item)`` and ``array_prepend(item, list)``."""
    if len(arguments) != 2:
        raise InvalidInput(f"{name} takes 2 arguments, found {len(arguments)}")
    value, item = arguments if name == "array_append" else reversed(arguments)
    lists, (bound,), kind = list_and_item(name, value, item, widen=True)
    return Call(name, (lists, bound) if name == "array_append" else (bound, lists), kind)


def _put_in(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """A null list is taken for an empty one."""
    lists, added = (column(value, rows) for value in (values if call.function == "array_append" else values[::-1]))
    items = items_of(lists)
    count = len(items.values)
    lengths = items.lengths + 1
    ends = np.cumsum(lengths)
    places = np.full(count + rows, -1, np.int64)
    if call.function == "array_append":
        places[ends - 1] = count + np.arange(rows)
    else:
        places[ends - lengths] = count + np.arange(rows)
    places[places < 0] = np.arange(count)
    whole = pa.concat_arrays([items.values.cast(added.type), added]).take(pa.array(places))
    return listed(lengths, whole, None, call.type)


def _bind_lists(name: str, arguments: Sequence[Expr]) -> Expr:
    if not arguments or (name != "array_concat" and len(arguments) != 2):
        wanted = "1 or more arguments" if name == "array_concat" else "2 arguments"
        raise InvalidInput(f"{name} takes {wanted}, found {len(arguments)}")
    bound, kind = bound_lists(name, arguments)
    return Call(name, tuple(bound), kind)


def _concat(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """One list after another; null only where all are."""
    parts = [items_of(column(value, rows)) for value in values]
    owners = np.concatenate([part.owners for part in parts])
    order = np.argsort(owners, kind="stable")
    whole = pa.concat_arrays([part.values for part in parts]).take(pa.array(order))
    lengths = np.sum([part.lengths for part in parts], axis=0)
    nulls = [part.nulls if part.nulls is not None else np.zeros(rows, bool) for part in parts]
    return listed(lengths, whole, ~np.all(nulls, axis=0), call.type)


def _as_sets(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Each item once: those of either list, of both, or of the first alone."""
    lists = [column(value, rows) for value in values]
    one, two = map(items_of, lists)
    codes = numbered(one.values, two.values)
    span = int(max(each.max(initial=0) for each in codes)) + 1
    keys = [part.owners * span + code for part, code in zip((one, two), codes, strict=True)]
    if call.function == "array_union":
        joined, picked = np.concatenate(keys), pa.concat_arrays([one.values, two.values])
        owners = np.concatenate([one.owners, two.owners])
    else:
        inside = np.isin(keys[0], keys[1])
        chosen = np.flatnonzero(inside if call.function == "array_intersect" else ~inside)
        joined, picked, owners = keys[0][chosen], one.values.take(pa.array(chosen)), one.owners[chosen]
    first = np.sort(np.unique(joined, return_index=True)[1])
    order = first[np.argsort(owners[first], kind="stable")]
    counts = np.bincount(owners[order], minlength=rows)
    return listed(counts, picked.take(pa.array(order)), valid_in_all(*lists), call.type)


def _bind_one(name: str, arguments: Sequence[Expr]) -> Expr:
    most = 3 if name == "array_sort" else 1
    if not 1 <= len(arguments) <= most:
        raise InvalidInput(f"{name} takes {'1 to 3 arguments' if most > 1 else '1 argument'}, found {len(arguments)}")
    lists = as_list(name, arguments[0], 1)
    kind = list_of(plain(plain(lists.type).value_type), lists.type)
    if name == "flatten":
        inner = plain(kind.value_type)
        kind = list_of(inner.value_type, inner, kind) if is_list(inner) else kind
    words = [each.value.as_py() if isinstance(each, Literal) else None for each in arguments[1:]]
    for word, known in zip(words, (("ASC", "DESC"), ("NULLS FIRST", "NULLS LAST")), strict=False):
        if not isinstance(word, str) or word.upper() not in known:
            raise InvalidInput(f"{name} knows no order {word!r}", hint=f"there are {' and '.join(known)}")
    return Call(name, (lists, *(Literal(pa.scalar(str(word).upper())) for word in words)), kind)


def _distinct(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    (codes,) = numbered(items.values)
    keys = items.owners * (int(codes.max(initial=0)) + 1) + codes
    keep = np.zeros(len(keys), bool)
    keep[np.unique(keys, return_index=True)[1]] = True
    return _kept(items, keep, call.type)


def _sort(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    ranks = sort_ranks(items.values)
    words = [value.as_py() for value in values[1:]]
    if "DESC" in words:
        ranks = np.where(ranks == 0, 0, ranks.max(initial=0) + 1 - ranks)
    if "NULLS LAST" in words:
        ranks = np.where(ranks == 0, ranks.max(initial=0) + 1, ranks)
    return _ordered(items, np.lexsort((ranks, items.owners)), call.type)


def _reverse(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    places = np.arange(len(items.values))
    ends = np.repeat(2 * items.begins + items.lengths - 1, items.lengths)
    return _ordered(items, ends - places, call.type)


def _compact(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    return _kept(items, np.asarray(items.values.is_valid()), call.type)


def _pop(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    keep = np.ones(len(items.values), bool)
    some = items.lengths > 0
    front = call.function == "array_pop_front"
    keep[(items.begins if front else items.begins + items.lengths - 1)[some]] = False
    return _kept(items, keep, call.type)


def _flatten(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    lists = column(values[0], rows)
    items = items_of(lists)
    if not is_list(items.values.type):
        return lists.cast(call.type)
    inner = items_of(items.values)
    lengths = np.bincount(items.owners, inner.lengths, minlength=rows).astype(np.int64)
    return listed(lengths, inner.values, items.valid, call.type)


def _bind_remove(name: str, arguments: Sequence[Expr]) -> Expr:
    counted = name == "array_remove_n"
    if len(arguments) != 2 + counted:
        raise InvalidInput(f"{name} takes {2 + counted} arguments, found {len(arguments)}")
    lists, (item,), kind = list_and_item(name, *arguments[:2], widen=True)
    limit = integer_of(name, arguments[2], 3) if counted else Literal(pa.scalar(1 if name == "array_remove" else 2**31))
    return Call("array_remove_n", (lists, item, limit), kind)


def _among_first(items: Items, chosen: Bools, limits: Int64s) -> Bools:
    """Those of the chosen items that are among the first so many of their list."""
    counted = np.cumsum(chosen)
    before = np.concatenate([[0], counted])[items.begins]
    among = counted - np.repeat(before, items.lengths) <= np.repeat(limits, items.lengths)
    return np.asarray(chosen & among)


def _remove(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    chosen = equal_items(items, values[1], rows)
    return _kept(items, ~_among_first(items, chosen, raw_values(column(values[2], rows))), call.type)


def _bind_replace(name: str, arguments: Sequence[Expr]) -> Expr:
    counted = name == "array_replace_n"
    if len(arguments) != 3 + counted:
        raise InvalidInput(f"{name} takes {3 + counted} arguments, found {len(arguments)}")
    lists, items, kind = list_and_item(name, *arguments[:3], widen=True)
    limit = (
        integer_of(name, arguments[3], 4) if counted else Literal(pa.scalar(1 if name == "array_replace" else 2**31))
    )
    return Call("array_replace_n", (lists, *items, limit), kind)


def _replace(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    chosen = _among_first(items, equal_items(items, values[1], rows), raw_values(column(values[3], rows)))
    others = column(values[2], rows)
    count = len(items.values)
    places = np.where(chosen, count + items.owners, np.arange(count))
    whole = pa.concat_arrays([items.values, others.cast(items.values.type)])
    return _ordered(Items(whole, items.lengths, items.nulls), places, call.type)


def _bind_slice(name: str, arguments: Sequence[Expr]) -> Expr:
    if not 3 <= len(arguments) <= 4:
        raise InvalidInput(f"{name} takes 3 to 4 arguments, found {len(arguments)}")
    lists = as_list(name, arguments[0], 1)
    kind = list_of(plain(plain(lists.type).value_type), lists.type)
    bounds = [integer_of(name, each, place) for place, each in enumerate(arguments[1:], 2)]
    return Call(name, (lists, *bounds), kind)


def _slice(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Items from one place to another, both counted from 1, or from -1 at the end, and both included."""
    arrays = [column(value, rows) for value in values]
    items = items_of(arrays[0])
    low, high = raw_values(arrays[1]), raw_values(arrays[2])
    step = raw_values(arrays[3]) if len(arrays) > 3 else np.ones(rows, np.int64)
    if np.any(step == 0):
        raise InvalidInput("items are taken in steps of 1 or more, or backwards of -1 or less; found 0")
    lengths = items.lengths
    first = np.where(low < 0, np.maximum(lengths + low, 0), np.maximum(low - 1, 0))
    last = np.where(high < 0, lengths + high, np.minimum(high, lengths) - 1)
    backwards = step < 0
    begin = np.where(backwards, last, first)
    span = np.where(backwards, begin - first, last - begin)
    counts = np.where((span >= 0) & (begin < lengths) & (begin >= 0), span // np.abs(step) + 1, 0)
    valid = valid_in_all(*arrays)
    if valid is not None:
        counts = np.where(valid, counts, 0)
    inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    places = np.repeat(items.begins + begin, counts) + inside * np.repeat(step, counts)
    return listed(counts, items.values.take(pa.array(places)), valid, call.type)


def _bind_resize(name: str, arguments: Sequence[Expr]) -> Expr:
    if not 2 <= len(arguments) <= 3:
        raise InvalidInput(f"{name} takes 2 to 3 arguments, found {len(arguments)}")
    fill = arguments[2] if len(arguments) > 2 else Literal(pa.scalar(None))
    lists, (item,), kind = list_and_item(name, arguments[0], fill, widen=True)
    return Call(name, (lists, integer_of(name, arguments[1], 2), item), kind)


def _resize(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """As many items as asked for: cut off, or filled up."""
    lists, sizes, fill = (column(value, rows) for value in values)
    items = items_of(lists)
    valid = valid_in_all(lists, sizes)
    wanted = np.maximum(raw_values(sizes), 0)
    if valid is not None:
        wanted = np.where(valid, wanted, 0)
    within_limits(call.function, wanted)
    inside = np.arange(int(wanted.sum())) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    owners = np.repeat(np.arange(rows), wanted)
    there = inside < items.lengths[owners]
    places = np.where(there, items.begins[owners] + inside, len(items.values) + owners)
    whole = pa.concat_arrays([items.values, fill.cast(items.values.type)]).take(pa.array(places))
    return listed(wanted, whole, valid, call.type)


_SETS = ("array_union", "array_intersect", "array_except")


def _named(name: str) -> tuple[str, ...]:
    return (name.replace("array_", "list_"),)


FUNCTIONS = (
    Function(
        "array_append",
        _bind_put_in,
        _put_in,
        ("list_append", "array_push_back", "list_push_back"),
        strict=False,
        cost=20,
    ),
    Function(
        "array_prepend",
        _bind_put_in,
        _put_in,
        ("list_prepend", "array_push_front", "list_push_front"),
        strict=False,
        cost=20,
    ),
    Function("array_concat", _bind_lists, _concat, ("list_concat", "array_cat", "list_cat"), strict=False, cost=20),
    *(Function(name, _bind_lists, _as_sets, _named(name), cost=30) for name in _SETS),
    Function("array_distinct", _bind_one, _distinct, ("list_distinct",), cost=30),
    Function("array_sort", _bind_one, _sort, ("list_sort",), cost=40),
    Function("array_reverse", _bind_one, _reverse, ("list_reverse",), cost=20),
    Function("array_compact", _bind_one, _compact, ("list_compact",), cost=20),
    Function("array_pop_front", _bind_one, _pop, ("list_pop_front",), cost=20),
    Function("array_pop_back", _bind_one, _pop, ("list_pop_back",), cost=20),
    Function("flatten", _bind_one, _flatten, cost=10),
    *(
        Function(name, _bind_remove, _remove, _named(name), strict=False, cost=20)
        for name in ("array_remove", "array_remove_n", "array_remove_all")
    ),
    *(
        Function(name, _bind_replace, _replace, _named(name), strict=False, cost=20)
        for name in ("array_replace", "array_replace_n", "array_replace_all")
    ),
    Function("array_slice", _bind_slice, _slice, ("list_slice",), cost=20),
    Function("array_resize", _bind_resize, _resize, ("list_resize",), strict=False, cost=20),
)
