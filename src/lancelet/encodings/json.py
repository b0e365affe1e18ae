"""JSON columns: text as Arrow has it, JSONB as files do, at any depth of a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.values import Bytes, Variable, from_arrow
from lancelet.errors import InvalidInput
from lancelet.format.fields import EXTENSION_NAME
from lancelet.kernels import jsonb, jsonb_encode

__all__ = ["holds_json", "json_from_text", "json_to_text", "shown_field", "with_shown_json", "with_stored_json"]

_STORED = (EXTENSION_NAME.encode(), b"lance.json")


def json_from_text(texts: pa.Array) -> pa.LargeBinaryArray:
    """JSON documents as JSONB; InvalidInput names the first row that is none.

    >>> json_from_text(pa.array(["1", None])).to_pylist()
    [b' \\x00\\x00\\x00 \\x00\\x00\\x02P\\x01', None]
    """
    if isinstance(texts, pa.ExtensionArray):
        texts = texts.storage
    if not _is_text(texts.type):
        raise InvalidInput(f"JSON given as {texts.type}, expected text")
    if pat.is_string_view(texts.type):
        texts = texts.cast(pa.large_string())
    return _converted(texts, pa.large_binary(), jsonb_encode.encode)


def json_to_text(documents: pa.Array) -> pa.StringArray | pa.LargeStringArray:
    """JSONB as text, as pylance renders it; large_string where one array of string cannot hold it.

    >>> json_to_text(json_from_text(pa.array(['{"b": 1.0, "a": [ ]}', None]))).to_pylist()
    ['{"a":[],"b":1.0}', None]
    """
    if not pat.is_large_binary(documents.type):
        raise InvalidInput(f"JSONB given as {documents.type}, expected large_binary")
    return _converted(documents, None, jsonb.decode)


_Offsets: TypeAlias = npt.NDArray[np.int64]
_Kernel: TypeAlias = Callable[[_Offsets, Bytes, Bytes], tuple[_Offsets, Bytes]]


def _converted(array: pa.Array, kind: pa.DataType | None, kernel: _Kernel) -> pa.Array:
    values = from_arrow(array)
    if not isinstance(values, Variable):
        raise InvalidInput(f"documents given as {array.type}, expected values of variable width")
    valid = np.ones(len(array), np.uint8)
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    offsets, data = kernel(values.offsets.astype(np.int64, copy=False), values.data, valid)
    if kind is None:
        kind = pa.string() if len(data) <= np.iinfo(np.int32).max else pa.large_string()
    validity = np.packbits(valid, bitorder="little") if array.null_count else None
    buffers = [validity, offsets.astype(np.int32) if kind == pa.string() else offsets, data]
    return pa.Array.from_buffers(kind, len(array), [*map(_buffer, buffers)], array.null_count)


def holds_json(field: pa.Field) -> bool:
    """Whether JSONB is stored in the field or somewhere below it.

    >>> stored = pa.field("j", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})
    >>> holds_json(pa.field("l", pa.list_(stored))), holds_json(pa.field("b", pa.large_binary()))
    (True, False)
    """
    if _STORED in (field.metadata or {}).items():
        return bool(pat.is_large_binary(field.type))
    return any(map(holds_json, _children(field.type)))


def with_stored_json(array: pa.Array, field: pa.Field) -> pa.Array:
    """The array with JSONB where the field stores JSON and the array has text; everything else as it is.

    >>> stored = pa.field("item", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})
    >>> with_stored_json(pa.array([["1"]]), pa.field("l", pa.list_(stored))).type
    ListType(list<item: large_binary>)
    """
    if not holds_json(field):
        return array
    if pat.is_large_binary(field.type):
        return json_from_text(array) if _is_text(array.type) else array
    kind = array.type
    if isinstance(array, pa.ExtensionArray) or kind.id != field.type.id or kind.num_fields != field.type.num_fields:
        return array
    offsets, children = _taken_apart(array)
    made = [with_stored_json(child, wanted) for child, wanted in zip(children, _children(field.type), strict=True)]
    kind = _with_children(kind, [child.with_type(new.type) for child, new in zip(_children(kind), made, strict=True)])
    validity = np.packbits(array.is_valid(), bitorder="little") if array.null_count else None
    buffers = [validity] if offsets is None else [validity, offsets]
    return pa.Array.from_buffers(kind, len(array), [*map(_buffer, buffers)], array.null_count, children=made)


def _is_text(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(at) for at in range(kind.num_fields)] if pat.is_nested(kind) else []


def _taken_apart(array: pa.Array) -> tuple[npt.NDArray[np.signedinteger] | None, list[pa.Array]]:
    """The offsets of lists, from 0 on, and the children, without what a slice of the array leaves out."""
    kind = array.type
    if pat.is_struct(kind):
        return None, [array.field(at) for at in range(kind.num_fields)]
    if pat.is_fixed_size_list(kind):
        return None, [array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)]
    wide = np.dtype(np.int64 if pat.is_large_list(kind) else np.int32)
    offsets = np.zeros(1, wide)
    if len(array):
        offsets = np.frombuffer(array.buffers()[1], wide, len(array) + 1, array.offset * wide.itemsize)
    items = array.values
    if pat.is_map(kind):
        items = pa.StructArray.from_arrays([array.keys, array.items], fields=_children(kind.field(0).type))
    return offsets - offsets[0], [items.slice(offsets[0], offsets[-1] - offsets[0])]


def _with_children(kind: pa.DataType, children: list[pa.Field]) -> pa.DataType:
    if pat.is_struct(kind):
        return pa.struct(children)
    if pat.is_map(kind):
        return pa.map_(*_children(children[0].type))
    if pat.is_fixed_size_list(kind):
        return pa.list_(children[0], kind.list_size)
    return pa.large_list(children[0]) if pat.is_large_list(kind) else pa.list_(children[0])


def _buffer(part: npt.NDArray[np.generic] | None) -> pa.Buffer | None:
    return None if part is None else pa.py_buffer(part)


def shown_field(field: pa.Field) -> pa.Field:
    """The field as users see it: with Arrow's JSON type where JSONB is stored.

    >>> stored = pa.field("j", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})
    >>> shown_field(stored).type
    JsonType(extension<arrow.json>)
    """
    if not holds_json(field):
        return field
    if pat.is_large_binary(field.type):
        kept = {key: value for key, value in field.metadata.items() if not key.startswith(b"ARROW:extension:")}
        return pa.field(field.name, pa.json_(pa.string()), field.nullable, kept or None)
    return field.with_type(_with_children(field.type, [shown_field(child) for child in _children(field.type)]))


def with_shown_json(array: pa.Array, field: pa.Field) -> pa.Array:
    """The array of a stored field as :func:`shown_field` has it: text in place of JSONB.

    >>> stored = pa.field("item", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})
    >>> lists = pa.array([[b" \\x00\\x00\\x00 \\x00\\x00\\x02P\\x01"]], pa.list_(stored))
    >>> made = with_shown_json(lists, pa.field("l", lists.type))
    >>> made.type, made.to_pylist()
    (ListType(list<item: extension<arrow.json>>), [['1']])
    """
    if not holds_json(field):
        return array
    if pat.is_large_binary(field.type):
        return pa.ExtensionArray.from_storage(pa.json_(pa.string()), json_to_text(array).cast(pa.string()))
    offsets, children = _taken_apart(array)
    made = [with_shown_json(child, below) for child, below in zip(children, _children(field.type), strict=True)]
    validity = np.packbits(array.is_valid(), bitorder="little") if array.null_count else None
    buffers = [validity] if offsets is None else [validity, offsets]
    kind = shown_field(field).type
    return pa.Array.from_buffers(kind, len(array), [*map(_buffer, buffers)], array.null_count, children=made)
