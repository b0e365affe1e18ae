"""Values out of lists, and lists out of values: single items, extremes, text, ranges, distances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput
from lancelet.expr.casting import converted
from lancelet.expr.functions.conditional import alike_values
from lancelet.expr.functions.define import INTEGER, TEXT, Datum, Function, cast_to, integer_of, takes
from lancelet.expr.functions.list_items import as_list, items_of, list_of, listed, sort_ranks
from lancelet.expr.limits import within_limits
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import is_nested, is_number, is_text, plain
from lancelet.expr.vectors import Bools, by_value, column, from_numpy, raw_values, valid_in_all

__all__ = ["FUNCTIONS"]


def _item_type(arguments: Sequence[Expr]) -> pa.DataType:
    return plain(plain(arguments[0].type).value_type)


def _bind_element(name: str, arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 2:
        raise InvalidInput(f"{name} takes 2 arguments, found {len(arguments)}")
    lists = as_list(name, arguments[0], 1)
    return Call(name, (lists, integer_of(name, arguments[1], 2)), _item_type([lists]))


def _element(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The item at a place that is counted from 1, or from -1 at the end; null where there is none."""
    lists, places = (column(value, rows) for value in values)
    items = items_of(lists)
    wanted = raw_values(places)
    at = np.where(wanted > 0, wanted - 1, items.lengths + wanted)
    there = (at >= 0) & (at < items.lengths) & (wanted != 0)
    valid = valid_in_all(lists, places)
    there = there if valid is None else there & valid
    return items.values.take(from_numpy(np.where(there, items.begins + at, 0), pa.int64(), there))


def _bind_list(name: str, arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 1:
        raise InvalidInput(f"{name} takes 1 argument, found {len(arguments)}")
    lists = as_list(name, arguments[0], 1)
    return Call(name, (lists,), _item_type([lists]))


def _picked(values: pa.Array, at: np.ndarray, there: Bools) -> pa.Array:
    return values.take(from_numpy(np.where(there, at, 0), pa.int64(), there))


def _extreme(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Nulls are passed over."""
    items = items_of(column(values[0], rows))
    ranks, owners = sort_ranks(items.values), items.owners
    known = np.flatnonzero(np.asarray(items.values.is_valid()))
    order = known[np.lexsort((ranks[known], owners[known]))]
    counts = np.bincount(owners[known], minlength=rows)
    ends = np.cumsum(counts)
    there = counts > 0
    at = (ends - counts) if call.function == "array_min" else ends - 1
    best = order[np.where(there, at, 0)] if len(order) else np.zeros(rows, np.int64)
    return _picked(items.values, best, there)


def _any_value(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    known = np.flatnonzero(np.asarray(items.values.is_valid()))
    first = np.full(rows, -1, np.int64)
    first[items.owners[known][::-1]] = known[::-1]
    return _picked(items.values, first, first >= 0)


def _bind_to_text(name: str, arguments: Sequence[Expr]) -> Expr:
    if not 2 <= len(arguments) <= 3:
        raise InvalidInput(f"{name} takes 2 to 3 arguments, found {len(arguments)}")
    lists = as_list(name, arguments[0], 1)
    if is_nested(_item_type([lists])):
        raise InvalidInput(f"{name} joins texts and numbers, found items of {_item_type([lists])}")
    rest = takes(TEXT, TEXT, least=1, returns=pa.string())(name, arguments[1:])
    return Call(name, (lists, *rest.arguments), pa.string())  # type: ignore[union-attr]


def _to_text(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Items joined to one text; nulls are left out, or shown as a text that is given."""
    lists = column(values[0], rows)
    items = items_of(lists)
    texts = converted(items.values, pa.string())
    shown = values[2] if len(values) > 2 else None
    if isinstance(shown, pa.Array):
        shown = shown.take(pa.array(items.owners))
    if shown is not None and not (isinstance(shown, pa.Scalar) and not shown.is_valid):
        texts = pc.coalesce(texts, shown)
    keep = np.asarray(texts.is_valid())
    counts = np.bincount(items.owners[keep], minlength=rows)
    made = listed(counts, texts.filter(pa.array(keep)), items.valid, pa.list_(pa.string()))
    return pc.binary_join(made, values[1]).cast(call.type)


def _split(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The parts of a text between delimiters; the letters of it where the delimiter is null."""
    text = column(values[0], rows)
    given = [value.as_py() if isinstance(value, pa.Scalar) else None for value in values[1:]]
    if any(isinstance(value, pa.Array) for value in values[1:]) or not given[0]:
        return by_value(_parts, [text, *(value for value in values[1:] if value is not None)], rows, call.type)
    parts = pc.split_pattern(text, pattern=given[0])
    items = items_of(parts)
    words = items.values
    if len(given) > 1 and given[1] is not None:
        words = pc.if_else(pc.equal(words, given[1]), pa.scalar(None, words.type), words)
    # Nothing has no parts.
    lengths = np.where(np.asarray(pc.fill_null(pc.equal(text, ""), False)), 0, items.lengths)
    kept = np.repeat(lengths == items.lengths, items.lengths)
    return listed(lengths, words.filter(pa.array(kept)), items.valid, call.type)


def _parts(text: str, delimiter: str, null: str | None = None) -> list[str | None]:
    if not text:
        return []
    return [None if part == null else part for part in (text.split(delimiter) if delimiter else [text])]


def _bind_range(name: str, arguments: Sequence[Expr]) -> Expr:
    if not 1 <= len(arguments) <= 3:
        raise InvalidInput(f"{name} takes 1 to 3 arguments, found {len(arguments)}")
    first = [Literal(pa.scalar(0))] if len(arguments) == 1 else []
    step = [Literal(pa.scalar(1))] if len(arguments) < 3 else []
    return takes(INTEGER, INTEGER, INTEGER, returns=pa.list_(pa.int64()))(name, [*first, *arguments, *step])


def _range(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Numbers from one to another, which ``generate_series`` includes."""
    arrays = [column(value, rows) for value in values]
    valid = valid_in_all(*arrays)
    start, stop, step = map(raw_values, arrays)
    known = np.ones(rows, bool) if valid is None else valid
    if np.any((step == 0) & known):
        raise InvalidInput(f"{call.function} goes in steps of 0, expected another number")
    stride = np.where(step == 0, 1, step)
    ahead = (stop.astype(float) - start) / stride
    within_limits(call.function, np.where(known, np.maximum(ahead, 0), 0))
    inclusive = call.function == "generate_series"
    span = np.where(stride > 0, stop - start, start - stop) + (1 if inclusive else 0)
    counts = np.where(known, np.maximum(-(-span // np.abs(stride)), 0), 0)
    inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    numbers = np.repeat(start, counts) + inside * np.repeat(stride, counts)
    return listed(counts, pa.array(numbers), valid, call.type)


def _bind_repeat(name: str, arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 2:
        raise InvalidInput(f"{name} takes 2 arguments, found {len(arguments)}")
    kind = plain(arguments[0].type)
    return Call(name, (cast_to(arguments[0], kind), integer_of(name, arguments[1], 2)), list_of(kind))


def _repeat(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    value, times = (column(each, rows) for each in values)
    counts = np.where(np.asarray(times.is_valid()), np.maximum(raw_values(times), 0), 0)
    within_limits(call.function, counts)
    repeated = value.take(pa.array(np.repeat(np.arange(rows), counts)))
    return listed(counts, repeated, valid_in_all(times), call.type)


def _bind_make(name: str, arguments: Sequence[Expr]) -> Expr:
    if not arguments:
        return Literal(pa.scalar([], pa.list_(pa.null())))
    made, kind = alike_values(name, arguments)
    return Call(name, tuple(made), list_of(kind))


def _make(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    arrays = [column(value, rows) for value in values]
    count = len(arrays)
    places = np.arange(count * rows).reshape(count, rows).T.ravel()
    return listed(np.full(rows, count), pa.concat_arrays(arrays).take(pa.array(places)), None, call.type)


def _bind_vectors(name: str, arguments: Sequence[Expr]) -> Expr:
    count = 1 if name == "array_normalize" else 2
    if len(arguments) != count:
        raise InvalidInput(f"{name} takes {count} arguments, found {len(arguments)}")
    bound = [as_list(name, value, place + 1) for place, value in enumerate(arguments)]
    if not all(is_number(plain(value.type).value_type) for value in bound):
        raise InvalidInput(f"{name} takes lists of numbers, found {', '.join(str(each.type) for each in arguments)}")
    doubles = pa.list_(pa.field("item", pa.float64()))
    returns = doubles if name == "array_normalize" else pa.float64()
    return Call(name, tuple(cast_to(value, doubles) for value in bound), returns)


def _distance(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Euclid's distance; null where a number is, an error where the lengths differ."""
    lists = [column(value, rows) for value in values]
    one, two = map(items_of, lists)
    valid = valid_in_all(*lists)
    known = np.ones(rows, bool) if valid is None else valid
    if np.any(known & (one.lengths != two.lengths)):
        raise InvalidInput(f"{call.function} takes lists of the same length")
    kept = [part.values.filter(pa.array(known[part.owners])) for part in (one, two)]
    owners = one.owners[known[one.owners]]
    squares = (raw_values(kept[0]) - raw_values(kept[1])) ** 2
    total = np.bincount(owners, squares, minlength=rows)
    odd = np.asarray(pc.or_(kept[0].is_null(), kept[1].is_null()))
    known = known & (np.bincount(owners[odd], minlength=rows) == 0)
    return from_numpy(np.sqrt(total), pa.float64(), known)


def _normalize(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Lists of length one; of zeros and of nulls null."""
    lists = column(values[0], rows)
    items = items_of(lists)
    numbers = raw_values(items.values)
    norm = np.sqrt(np.bincount(items.owners, numbers**2, minlength=rows))
    odd = np.asarray(items.values.is_null())
    with np.errstate(all="ignore"):
        made = numbers / np.repeat(norm, items.lengths)
    valid = np.bincount(items.owners[odd], minlength=rows) == 0
    valid = valid & (norm > 0) if items.valid is None else valid & (norm > 0) & items.valid
    keep = np.repeat(valid, items.lengths)
    return listed(np.where(valid, items.lengths, 0), pa.array(made[keep]), valid, call.type)


def _bind_zip(name: str, arguments: Sequence[Expr]) -> Expr:
    if not arguments:
        raise InvalidInput(f"{name} takes 1 or more arguments, found 0")
    bound = [as_list(name, value, place + 1) for place, value in enumerate(arguments)]
    fields = [pa.field(str(place + 1), _item_type([value])) for place, value in enumerate(bound)]
    return Call(name, tuple(bound), pa.list_(pa.field("item", pa.struct(fields))))


def _zip(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Items of the same place together; shorter lists are filled up with nulls."""
    parts = [items_of(column(value, rows)) for value in values]
    lengths = np.max([part.lengths for part in parts], axis=0)
    owners = np.repeat(np.arange(rows), lengths)
    inside = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    columns = []
    for part in parts:
        there = inside < part.lengths[owners]
        columns.append(_picked(part.values, part.begins[owners] + inside, there))
    fields = list(call.type.value_type)
    made = pa.StructArray.from_arrays(columns, fields=fields)
    nulls = [part.nulls if part.nulls is not None else np.zeros(rows, bool) for part in parts]
    return listed(lengths, made, ~np.all(nulls, axis=0), call.type)


def _text_list(arguments: Sequence[Expr]) -> pa.DataType:
    return pa.list_(plain(arguments[0].type) if is_text(arguments[0].type) else pa.string())


FUNCTIONS = (
    Function("array_element", _bind_element, _element, ("list_element", "array_extract", "list_extract"), cost=10),
    Function("array_max", _bind_list, _extreme, ("list_max",), cost=30),
    Function("array_min", _bind_list, _extreme, ("list_min",), cost=30),
    Function("array_any_value", _bind_list, _any_value, ("list_any_value",), cost=10),
    Function(
        "array_to_string",
        _bind_to_text,
        _to_text,
        ("list_to_string", "array_join", "list_join"),
        strict=False,
        cost=20,
    ),
    Function(
        "string_to_array",
        takes(TEXT, TEXT, TEXT, least=2, returns=_text_list),
        _split,
        ("string_to_list",),
        strict=False,
        cost=20,
    ),
    Function("range", _bind_range, _range, cost=10),
    Function("generate_series", _bind_range, _range, cost=10),
    Function("array_repeat", _bind_repeat, _repeat, ("list_repeat",), strict=False, cost=10),
    Function("make_array", _bind_make, _make, ("make_list",), strict=False, cost=10),
    Function("array_distance", _bind_vectors, _distance, ("list_distance",), cost=10),
    Function("array_normalize", _bind_vectors, _normalize, ("list_normalize",), cost=10),
    Function("arrays_zip", _bind_zip, _zip, ("list_zip",), strict=False, cost=20),
)
