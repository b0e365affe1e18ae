"""Fitting: which fields of a table rows have values for, and the rows as the table orders and names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.format.extensions import stored_field
from lancelet.format.fields import EXTENSION_NAME, Field, Schema
from lancelet.ops.blob_input import BLOB_VALUES, blob_values, is_marked_blob

__all__ = ["conformed", "fitting"]


def fitting(table: Schema, rows: Schema, *, updates_only: bool = False) -> Schema:
    """The fields of a table that rows have values for; InvalidInput where the rows do not fit.

    Columns, and fields of structs, may come in any order; those that may be null may be missing, and any column where
    the rows are only to change some that are there.

    >>> table = Schema((Field("a", "int32"), Field("b", "string", nullable=False))).with_ids()
    >>> [item.id for item in fitting(table, Schema((Field("b", "string"),))).fields]
    [1]
    >>> fitting(table, Schema((Field("a", "int64"), Field("b", "string"))))
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: column has type int64, expected int32 [column=a]
    """
    fields = _present(table.fields, rows.fields, "", "the table", all_may_miss=updates_only)
    if not fields:
        raise InvalidInput("the rows have none of the table's columns", hint=f"it has: {_names(table.fields)}")
    return Schema(fields, table.metadata)


def _present(
    expected: Iterable[Field], found: Iterable[Field], path: str, owner: str, *, all_may_miss: bool = False
) -> tuple[Field, ...]:
    """Those of the expected fields, pruned, that there is anything of."""
    given = {item.name: item for item in found}
    known = {item.name for item in expected}
    for name in given:
        if name not in known:
            hint = f"it has: {_names(expected)}"
            raise InvalidInput(f"{owner} has no column {name!r}", column=f"{path}{name}", hint=hint)
    present = []
    for item in expected:
        if item.name in given:
            present.append(_checked(item, given[item.name], f"{path}{item.name}"))
        elif not item.nullable and not all_may_miss:
            raise InvalidInput(
                f"the rows lack column {item.name!r}, which may not be null", column=f"{path}{item.name}"
            )
    return tuple(present)


def _checked(expected: Field, found: Field, path: str) -> Field:
    if expected.extension_name == BLOB_VALUES and (found.extension_name == BLOB_VALUES or is_marked_blob(found)):
        return expected
    if found.logical_type != expected.logical_type:
        raise InvalidInput(f"column has type {found.logical_type}, expected {expected.logical_type}", column=path)
    if expected.logical_type == "struct":
        children = _present(expected.children, found.children, f"{path}.", repr(path))
        return expected if children == expected.children else replace(expected, children=children)
    if len(found.children) != len(expected.children):
        names = [child.name for child in found.children], [child.name for child in expected.children]
        raise InvalidInput(f"column has fields {names[0]}, expected {names[1]}", column=path)
    # What the items of lists and maps are called makes no difference. Of structs in them all fields are stored: those
    # that are missing as nulls.
    for inner, other in zip(expected.children, found.children, strict=True):
        _checked(inner, other, f"{path}.{inner.name}")
    return expected


def _names(fields: Iterable[Field]) -> list[str]:
    return sorted(item.name for item in fields)


def conformed(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches with columns, and fields of structs, as a schema orders them; fields missing in structs become null.

    ``schema`` is the one that files get but for blobs, which come as users write them.

    >>> rows = pa.record_batch({"y": [1], "x": [2]})
    >>> [batch.schema.names for batch in conformed([rows], pa.schema({"x": pa.int64(), "y": pa.int64()}))]
    [['x', 'y']]
    """
    for batch in batches:
        if batch.schema.names == schema.names and batch.schema.types == schema.types:
            yield batch
            continue
        columns = [_conformed(batch.column(item.name), item) for item in schema]
        fields = [pa.field(item.name, array.type) for item, array in zip(schema, columns, strict=True)]
        yield pa.record_batch(columns, schema=pa.schema(fields))


def _conformed(array: pa.Array, field: pa.Field) -> pa.Array:
    # Who has imported an implementation of an extension gets its types, others the storage with metadata.
    field = stored_field(field)
    found, kind = array.type, field.type
    if (field.metadata or {}).get(EXTENSION_NAME.encode()) == BLOB_VALUES.encode():
        return blob_values(array)
    if found == kind or not pat.is_nested(found):
        return array
    if pat.is_struct(found) and pat.is_struct(kind):
        return _struct(array, kind)
    if pat.is_map(found) and pat.is_map(kind):
        items = [_conformed(array.keys, kind.key_field), _conformed(array.items, kind.item_field)]
        if items[0] is array.keys and items[1] is array.items:
            return array
        return pa.MapArray.from_arrays(_offsets(array), *items, mask=_mask(array))
    if found.id == kind.id and (pat.is_list(found) or pat.is_large_list(found)):
        items = _conformed(array.values, kind.value_field)
        if items.type == array.values.type:
            return array
        made = pa.ListArray if pat.is_list(found) else pa.LargeListArray
        return made.from_arrays(_offsets(array), items, mask=_mask(array))
    if pat.is_fixed_size_list(found) and pat.is_fixed_size_list(kind):
        size = found.list_size
        items = _conformed(array.values.slice(array.offset * size, len(array) * size), kind.value_field)
        return pa.FixedSizeListArray.from_arrays(items, size, mask=_mask(array))
    return array


def _struct(array: pa.StructArray, kind: pa.DataType) -> pa.Array:
    names = [array.type.field(place).name for place in range(array.type.num_fields)]
    children = []
    for place in range(kind.num_fields):
        inner = kind.field(place)
        known = inner.name in names
        children.append(
            _conformed(array.field(names.index(inner.name)), inner) if known else pa.nulls(len(array), inner.type)
        )
    fields = [pa.field(kind.field(place).name, child.type) for place, child in enumerate(children)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(array))


def _offsets(array: pa.Array) -> pa.Array:
    """The offsets of lists in memory of their own: pyarrow takes no slice of offsets together with a mask."""
    return pa.array(array.offsets.to_numpy(), array.offsets.type)


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
