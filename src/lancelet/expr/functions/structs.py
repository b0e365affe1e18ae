"""Structs and maps: fields by name, values by key, and new ones from parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import MAP, Datum, Function, cast_to, takes
from lancelet.expr.functions.list_items import bound_lists, equal_items, items_of, list_of, listed
from lancelet.expr.names import field_named, nearest
from lancelet.expr.tree import Call, Column, Expr, Literal
from lancelet.expr.types import common_type, plain
from lancelet.expr.vectors import column, from_numpy, valid_in_all

__all__ = ["FUNCTIONS"]


def _name_in(name: str, argument: Expr) -> str:
    value = argument.value.as_py() if isinstance(argument, Literal) else None
    if not isinstance(value, str):
        raise InvalidInput(f"{name} takes the name of a field as a constant text, found {argument.type}")
    return value


def _bind_get_field(name: str, arguments: Sequence[Expr]) -> Expr:
    """A field of a column is a column again."""
    if len(arguments) < 2:
        raise InvalidInput(f"{name} takes 2 or more arguments, found {len(arguments)}")
    value = arguments[0]
    for argument in arguments[1:]:
        kind = plain(value.type)
        if pat.is_map(kind):
            value = _bind_value(name, [value, argument])
            continue
        field = _name_in(name, argument)
        if isinstance(value, Column) and pat.is_struct(value.type):
            value = field_named(value, field)
            continue
        if not pat.is_struct(kind):
            raise InvalidInput(f"{name} takes a struct or a map as argument 1, found {value.type}")
        names = [each.name for each in kind]
        if field not in names:
            raise InvalidInput(f"there is no field {field!r} in {kind}", hint=nearest(field, names))
        value = Call("get_field", (value, Literal(pa.scalar(field))), kind.field(names.index(field)).type)
    return value


def _get_field(_: Call, values: Sequence[Datum], rows: int) -> Datum:
    return pc.struct_field(column(values[0], rows), values[1].as_py())


def _bind_struct(name: str, arguments: Sequence[Expr]) -> Expr:
    """``struct(a, b)`` has fields c0, c1; ``named_struct('x', a, 'y', b)`` those that are named."""
    if name == "named_struct":
        if not arguments or len(arguments) % 2:
            raise InvalidInput(f"{name} takes names and values in turns, found {len(arguments)} arguments")
        names = [_name_in(name, each) for each in arguments[::2]]
        values = list(arguments[1::2])
    else:
        values = list(arguments)
        names = [f"c{place}" for place in range(len(values))]
    if not values or len(set(names)) < len(names):
        raise InvalidInput(f"{name} takes values with a name each, found {names or 'none'}")
    kinds = [plain(value.type) for value in values]
    fields = [pa.field(each, kind) for each, kind in zip(names, kinds, strict=True)]
    return Call("struct", tuple(cast_to(v, kind) for v, kind in zip(values, kinds, strict=True)), pa.struct(fields))


def _struct(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    return pa.StructArray.from_arrays([column(value, rows) for value in values], fields=list(call.type))


def _keys_type(arguments: Sequence[Expr]) -> pa.DataType:
    return list_of(plain(arguments[0].type).key_type)


def _values_type(arguments: Sequence[Expr]) -> pa.DataType:
    return list_of(plain(arguments[0].type).item_type)


def _entries_type(arguments: Sequence[Expr]) -> pa.DataType:
    kind = plain(arguments[0].type)
    return pa.list_(pa.field("item", pa.struct([kind.key_field, kind.item_field]), False))


def _parts(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    items = items_of(column(values[0], rows))
    if call.function == "map_entries":
        made = listed(items.lengths, items.values, items.valid, pa.list_(items.values.type))
        return made.cast(call.type)
    place = 0 if call.function == "map_keys" else 1
    return listed(items.lengths, items.values.field(place), items.valid, call.type)


def _bind_value(name: str, arguments: Sequence[Expr]) -> Expr:
    if len(arguments) != 2:
        raise InvalidInput(f"{name} takes 2 arguments, found {len(arguments)}")
    kind = plain(arguments[0].type)
    if not pat.is_map(kind):
        raise InvalidInput(f"{name} takes a map as argument 1, found {arguments[0].type}")
    key = common_type(kind.key_type, arguments[1].type)
    if key is None or plain(kind.key_type) != key:
        raise InvalidInput(f"{arguments[1].type} is no key of {kind}")
    returns = list_of(plain(kind.item_type)) if name == "map_extract" else plain(kind.item_type)
    made = "map_extract" if name == "map_extract" else "map_value"
    return Call(made, (cast_to(arguments[0], kind), cast_to(arguments[1], key)), returns)


def _value(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The value of a key, of several the last; null where there is none."""
    maps = column(values[0], rows)
    entries = items_of(maps)
    keys = type(entries)(entries.values.field(0), entries.lengths, entries.nulls)
    hits = np.flatnonzero(equal_items(keys, values[1], rows))
    at = np.full(rows, -1, np.int64)
    at[entries.owners[hits]] = hits
    found = entries.values.field(1).take(from_numpy(np.maximum(at, 0), pa.int64(), at >= 0))
    if call.function == "map_value":
        return found
    return listed(np.ones(rows, np.int64), found, None, call.type)


def _bind_map(name: str, arguments: Sequence[Expr]) -> Expr:
    """``map(keys, values)`` of two lists."""
    if len(arguments) != 2:
        raise InvalidInput(f"{name} takes a list of keys and a list of values, found {len(arguments)} arguments")
    (keys,), _ = bound_lists(name, arguments[:1])
    (items,), _ = bound_lists(name, arguments[1:])
    if pat.is_null(keys.type.value_type):
        raise InvalidInput(f"{name} takes a list of keys, found only nulls")
    return Call(name, (keys, items), pa.map_(keys.type.value_type, items.type.value_type))


def _map(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    lists = [column(value, rows) for value in values]
    keys, items = map(items_of, lists)
    if not np.array_equal(keys.lengths, items.lengths):
        raise InvalidInput("a map takes as many values as keys")
    if keys.values.null_count:
        raise InvalidInput("a map has no null keys")
    valid = valid_in_all(*lists)
    offsets = np.concatenate([[0], np.cumsum(keys.lengths)]).astype(np.int32)
    mask = np.append(~valid, False) if valid is not None else None
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32(), mask=mask), keys.values, items.values).cast(call.type)


FUNCTIONS = (
    Function("get_field", _bind_get_field, _get_field),
    Function("struct", _bind_struct, _struct, ("row",), strict=False, cost=2),
    Function("named_struct", _bind_struct, None, strict=False),
    Function("map_keys", takes(MAP, returns=_keys_type), _parts, cost=5),
    Function("map_values", takes(MAP, returns=_values_type), _parts, cost=5),
    Function("map_entries", takes(MAP, returns=_entries_type), _parts, cost=5),
    Function("map_extract", _bind_value, _value, ("element_at",), strict=False, cost=15),
    Function("map_value", _bind_value, _value, cost=15),
    Function("map", _bind_map, _map, ("make_map",), cost=15),
)
