"""Flattening: from a nested array to its leaves, each with the layers of structure that lie above it.

The writer's counterpart of ``shape.merge`` and ``nested.build``. What no reader could see is dropped on the way: items
behind null lists, offsets of slices, values in null slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.encodings.shape import Leaf, List, Shape, Struct
from lancelet.errors import Unsupported
from lancelet.kernels.layers import Items, Lists

__all__ = ["LeafArray", "flatten"]

#: Bytes of the validity of a block of bit packing.
_BLOCK_BYTES = 128


@dataclass(frozen=True, slots=True)
class LeafArray:
    """One leaf: its values, and the layers above and including its own, innermost first."""

    leaf: Leaf
    values: pa.Array
    layers: tuple[Items | Lists, ...]


def flatten(shape: Shape, array: pa.Array) -> Iterator[LeafArray]:
    """The leaves of ``array`` in column order.

    >>> shape = Leaf(pa.field("a", pa.int64()), 0)
    >>> [(part.values.to_pylist(), part.layers[0].null_count) for part in flatten(shape, pa.array([1, None]))]
    [([1, 1], 1)]
    """
    return _descend(shape, array, (), None)


def _descend(
    shape: Shape, array: pa.Array, above: tuple[Items | Lists, ...], around: pa.Array | None
) -> Iterator[LeafArray]:
    """``above`` are the layers met so far, innermost first; ``around`` says which entries no null struct hides."""
    match shape:
        case Leaf():
            yield LeafArray(shape, _clean(array, around), (_items(array), *above))
        case Struct(_, children):
            visible = _both(around, array)
            layers = (_items(array), *above)
            for at, child in enumerate(children):
                yield from _descend(child, array.field(at), layers, visible)
        case List(field, child) if pat.is_fixed_size_list(field.type):
            yield from _descend_fixed(shape, array, above, around)
        case List(field, child):
            lists, items = _lists(array, around)
            if pat.is_map(field.type):
                # Entries are never null; pyarrow may carry a bitmap for them all the same.
                items = pa.StructArray.from_arrays(items.flatten(), fields=list(items.type))
            yield from _descend(child, items, (lists, *above), None)


def _descend_fixed(
    shape: List, array: pa.Array, above: tuple[Items | Lists, ...], around: pa.Array | None
) -> Iterator[LeafArray]:
    """A list of structs of one size: every layer above is repeated for each item."""
    size = array.type.list_size
    if any(isinstance(layer, Lists) for layer in above):
        raise Unsupported(
            f"fixed-size lists of structs inside lists, in column {shape.field.name!r}", column=shape.field.name
        )
    items = array.values.slice(array.offset * size, len(array) * size)
    layers = tuple(_repeated(layer, size) for layer in (_items(array), *above) if isinstance(layer, Items))
    visible = _both(around, array)
    if visible is not None:
        visible = pa.array(np.repeat(np.asarray(visible), size))
    yield from _descend(shape.child, items, layers, visible)


def _repeated(layer: Items, size: int) -> Items:
    if layer.validity is None:
        return Items(layer.length * size, None, 0)
    end = layer.bit_offset + layer.length
    bits = np.unpackbits(layer.validity, count=end, bitorder="little")[layer.bit_offset :]
    return Items(layer.length * size, np.packbits(np.repeat(bits, size), bitorder="little"), layer.null_count * size)


def _items(array: pa.Array) -> Items:
    if pat.is_null(array.type):
        return Items(len(array), np.zeros((len(array) + 7) // 8, np.uint8), len(array))
    if isinstance(array, pa.DictionaryArray):
        array = _dictionary_nulls_in_keys(array).indices
    nulls = array.null_count
    if not nulls:
        return Items(len(array), None, 0)
    return Items(len(array), np.frombuffer(array.buffers()[0], np.uint8), nulls, array.offset)


def _lists(array: pa.Array, around: pa.Array | None) -> tuple[Lists, pa.Array]:
    """The list layer with offsets from 0, and the items that are left once hidden ones are gone."""
    count = len(array)
    dtype = np.dtype(np.int64 if pat.is_large_list(array.type) else np.int32)
    nulls, validity, bit_offset = 0, None, 0
    if array.null_count:
        nulls, validity, bit_offset = array.null_count, np.frombuffer(array.buffers()[0], np.uint8), array.offset
    if not count:
        return Lists(np.zeros(1, np.int64), None, 0), array.values.slice(0, 0)
    offsets = np.frombuffer(array.buffers()[1], dtype, count + 1, array.offset * dtype.itemsize)
    items = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    offsets = offsets.astype(np.int64) - int(offsets[0])
    shown = _both(around, array)
    if shown is not None:
        lengths = np.diff(offsets)
        keep = np.asarray(shown)
        if lengths[~keep].any():
            items = items.filter(pa.array(np.repeat(keep, lengths)))
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(keep, lengths, 0))])
    return Lists(offsets, validity, nulls, bit_offset), items


def _both(around: pa.Array | None, array: pa.Array) -> pa.Array | None:
    """Where the entry is valid and nothing around it is null; None where that is everywhere."""
    own = array.is_valid() if array.null_count else None
    if around is None or own is None:
        return own if around is None else around
    return pc.and_(around, own)


def _clean(array: pa.Array, around: pa.Array | None) -> pa.Array:
    """The leaf's values; where no reader looks, others of them, or nothing: so they pack well and tell nothing."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if isinstance(array, pa.DictionaryArray):
        return _dictionary_nulls_in_keys(array)
    if pat.is_null(kind) or pat.is_struct(kind):
        return array
    shown = _both(around, array)
    if shown is None:
        return array
    if pat.is_fixed_size_list(kind):
        return _clean_fixed_size_list(array, shown)
    if pat.is_string(kind) or pat.is_large_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind):
        empty: object = "" if pat.is_string(kind) or pat.is_large_string(kind) else b""
        return pc.if_else(shown, _without_nulls(array), pa.scalar(empty, kind))
    return _filled(array if around is None else pc.if_else(shown, array, pa.scalar(None, kind)))


def _filled(array: pa.Array) -> pa.Array:
    """The value before in each null slot, so that nulls neither end runs nor put in a value of their own.

    Blocks of bit packing without any value are zero throughout: they take no bits then.
    """
    kind = array.type
    if pat.is_duration(kind):
        return _filled(array.view(pa.int64())).view(kind)
    filled = pc.fill_null_forward(array)
    if filled.null_count:
        filled = pc.fill_null_backward(filled)
    used = np.frombuffer(array.is_valid().buffers()[1], np.uint8, (len(array) + 7) // 8)
    blocks = np.add.reduceat(used, np.arange(0, len(used), _BLOCK_BYTES), dtype=np.int64) > 0
    if blocks.all():
        return filled
    keep = pa.array(np.repeat(blocks, 8 * _BLOCK_BYTES)[: len(array)])
    return pc.if_else(keep, _without_nulls(filled), _zero(kind))


def _without_nulls(array: pa.Array) -> pa.Array:
    """The same buffers with no validity: null slots show whatever bytes lie there."""
    if not array.null_count:
        return array
    return pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]], 0, array.offset)


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(32 + kind.bit_width // 8))])[0]


def _clean_fixed_size_list(array: pa.Array, shown: pa.Array) -> pa.Array:
    """Null vectors become vectors of nulls-free zeros only where they are not that already: mostly they are."""
    size = array.type.list_size
    items = array.values.slice(array.offset * size, len(array) * size)
    keep = pa.array(np.repeat(np.asarray(shown), size))
    if isinstance(items, pa.ExtensionArray):
        items = items.storage
    if pat.is_fixed_size_list(items.type):
        return pa.FixedSizeListArray.from_arrays(_clean_inner_list(items, keep), type=_plain_list(array.type))
    zeroed = pc.if_else(keep, items, _zero(items.type))
    return pa.FixedSizeListArray.from_arrays(zeroed, type=_plain_list(array.type))


def _clean_inner_list(array: pa.Array, keep: pa.Array) -> pa.Array:
    """Lists that are items themselves: their own nulls are values of the list around them and stay."""
    if not array.null_count:
        return _clean_fixed_size_list(array, keep)
    cleaned = _clean_fixed_size_list(array, pc.and_(keep, array.is_valid()))
    mask = pc.and_(keep, array.is_null())
    return pa.FixedSizeListArray.from_arrays(cleaned.values, type=cleaned.type, mask=mask)


def _plain_list(kind: pa.DataType) -> pa.DataType:
    item = kind.value_type
    if isinstance(item, pa.BaseExtensionType):
        return pa.list_(item.storage_type, kind.list_size)
    return kind


def _dictionary_nulls_in_keys(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Nulls of a dictionary column live in its keys; the values then hold none."""
    if not array.dictionary.null_count:
        return array
    positions = np.cumsum(np.asarray(array.dictionary.is_valid())) - 1
    moved = pc.if_else(array.dictionary.is_valid(), pa.array(positions), None).take(array.indices)
    return pa.DictionaryArray.from_arrays(moved.cast(array.indices.type), array.dictionary.drop_null())
