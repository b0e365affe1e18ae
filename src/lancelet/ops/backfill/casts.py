"""Casting columns, also those within structs: what is read, and the columns as other types in their structs again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr import Call, Column, Expr

__all__ = ["Path", "cast_requests", "cast_rows", "cast_values", "null_at"]

#: Names from the top down.
Path: TypeAlias = tuple[str, ...]

_NULL = "null "


def cast_requests(paths: Iterable[Path], schema: pa.Schema) -> tuple[tuple[str, Expr], ...]:
    """Columns to ask a scan for: those to cast, and whether each struct around one is null.

    >>> table = pa.schema({"s": pa.struct({"x": pa.int64()})})
    >>> [name for name, _ in cast_requests([("s", "x")], table)]
    ['["s", "x"]', 'null ["s"]']
    """
    columns: dict[str, Expr] = {}
    for path in paths:
        columns[json.dumps(path)] = _column(path, schema)
        for depth in range(1, len(path)):
            struct = path[:depth]
            columns[_NULL + json.dumps(struct)] = Call("is_null", (_column(struct, schema),), pa.bool_())
    return tuple(columns.items())


def _column(path: Path, schema: pa.Schema) -> Column:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return Column(path, kind)


def cast_rows(batch: pa.RecordBatch, kinds: Mapping[Path, pa.DataType], names: Mapping[Path, str]) -> pa.RecordBatch:
    """What was asked for as columns of other types, under the names that columns and structs have from now on."""
    made = {path: cast_values(batch.column(json.dumps(path)), kind, ".".join(path)) for path, kind in kinds.items()}
    found = _children((), made, names, batch)
    return pa.record_batch([array for _, array in found], names=[name for name, _ in found])


def _children(
    above: Path, made: Mapping[Path, pa.Array], names: Mapping[Path, str], batch: pa.RecordBatch
) -> list[tuple[str, pa.Array]]:
    """The columns right below a struct, or at the top."""
    depth = len(above)
    found = []
    for path in dict.fromkeys(item[: depth + 1] for item in made if item[:depth] == above):
        array = made.get(path)
        if array is None:
            inner = _children(path, made, names, batch)
            missing = batch.column(_NULL + json.dumps(path))
            array = pa.StructArray.from_arrays(
                [child for _, child in inner], names=[name for name, _ in inner], mask=missing
            )
        found.append((names.get(path, path[-1]), array))
    return found


def cast_values(array: pa.Array, kind: pa.DataType, column: str) -> pa.Array:
    """Values as another type; InvalidInput where one does not fit, or would not be the same.

    >>> cast_values(pa.array([1, None]), pa.int8(), "x").type
    DataType(int8)
    """
    try:
        made = array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidInput(f"the column cannot be cast to {kind}: {error}", column=column) from None
    _check_range(array, made, column)
    return made


def _check_range(before: pa.Array, after: pa.Array, column: str) -> None:
    """Narrower floats have no room for the largest numbers, which Arrow makes infinite."""
    while pat.is_list(after.type) or pat.is_large_list(after.type) or pat.is_fixed_size_list(after.type):
        before, after = before.flatten(), after.flatten()
    if pat.is_floating(before.type) and pat.is_floating(after.type) and after.type.bit_width < before.type.bit_width:
        wide = pc.cast(after, before.type)
        lost = pc.and_(pc.is_inf(wide), pc.invert(pc.is_inf(before)))
        if pc.any(lost).as_py():
            value = before.filter(lost)[0].as_py()
            raise InvalidInput(f"the column cannot be cast to {after.type}: {value} is too large", column=column)


def null_at(path: Sequence[str], schema: pa.Schema) -> Expr:
    """The condition for a row to have a null at a path where no struct around it is null.

    >>> table = pa.schema({"s": pa.struct({"x": pa.int64()})})
    >>> null_at(["s", "x"], table).function
    'and'
    """
    where: Expr = Call("is_null", (_column(tuple(path), schema),), pa.bool_())
    for depth in range(1, len(path)):
        there = Call("is_not_null", (_column(tuple(path[:depth]), schema),), pa.bool_())
        where = Call("and", (where, there), pa.bool_())
    return where
