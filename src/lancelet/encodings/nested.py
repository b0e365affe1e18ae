"""Nesting: from the levels and values of one leaf to its skeleton array, and the check that both fit its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.budget import nulls
from lancelet.encodings.chunk_levels import Levels
from lancelet.encodings.shape import Leaf, List, Shape, Struct
from lancelet.encodings.values import Bytes, Values, to_arrow
from lancelet.errors import Corrupt, Unsupported
from lancelet.format.layouts import Layer
from lancelet.kernels import levels
from lancelet.kernels.layers import Items, Lists

__all__ = ["Leveled", "build"]


@dataclass(frozen=True, slots=True)
class Leveled:
    """What a page holds: the levels, where it has them, and one value for each visible item; no values if all null."""

    layers: tuple[Layer, ...]
    repetition: Levels | None
    definition: Levels | None
    num_items: int
    values: Values | None


def build(path: Sequence[Shape], page: Leveled) -> pa.Array:
    """The skeleton array that ``path`` describes, one entry for each row."""
    if len(path) != len(page.layers):
        raise Corrupt(f"page has {len(page.layers)} layers, expected {len(path)} for type {path[0].field.type}")
    if _plain(page):
        return _leaf_array(path[-1], page, page.num_items, None, 0)
    structure = levels.unravel(page.repetition, page.definition, page.layers, num_items=page.num_items)
    item = structure[0]
    array = _leaf_array(path[-1], page, item.length, item.validity, item.null_count)
    if len(array) != item.length:
        raise Corrupt(f"page holds {len(array):,} values, its levels ask for {item.length:,}")
    inner, scale = path[-1], 1
    for node, layer in zip(reversed(path[:-1]), structure[1:], strict=True):
        if pat.is_fixed_size_list(node.field.type):
            scale *= node.field.type.list_size
        array = _wrap(node, inner, _every(layer, scale), array)
        inner = node
    return array


def _plain(page: Leveled) -> bool:
    return page.definition is None and page.repetition is None and page.layers == (Layer.ALL_VALID_ITEM,)


def _leaf_array(leaf: Shape, page: Leveled, count: int, validity: Bytes | None, null_count: int) -> pa.Array:
    if not isinstance(leaf, Leaf):
        raise Corrupt(f"column {leaf.field.name!r} is not a leaf")
    kind = leaf.field.type
    if page.values is None:
        if pat.is_struct(kind) and not kind.num_fields:
            return pa.Array.from_buffers(kind, count, [None], 0, children=[])
        return nulls(count, kind)
    return to_arrow(page.values, kind, validity, null_count)


def _wrap(node: Shape, inner: Shape, layer: Items | Lists, array: pa.Array) -> pa.Array:
    item = inner.field.with_type(array.type)
    mask = None if layer.validity is None else pa.py_buffer(layer.validity)
    if isinstance(node, Struct):
        if not isinstance(layer, Items):
            raise Corrupt(f"page has a list layer where {node.field.name!r} is a struct")
        return pa.Array.from_buffers(pa.struct([item]), layer.length, [mask], layer.null_count, children=[array])
    if pat.is_fixed_size_list(node.field.type):
        kind = pa.list_(item, node.field.type.list_size)
        return pa.Array.from_buffers(kind, layer.length, [mask], layer.null_count, children=[array])
    if not isinstance(node, List) or not isinstance(layer, Lists):
        raise Corrupt(f"page has no list layer for {node.field.name!r}")
    large = pat.is_large_list(node.field.type)
    offsets = layer.offsets
    if not large:
        if offsets[-1] > np.iinfo(np.int32).max:
            raise Unsupported(
                f"{int(offsets[-1]):,} list items in one batch exceed 32-bit offsets",
                hint="read fewer rows at a time, or store the column as large_list",
            )
        offsets = offsets.astype(np.int32)
    kind = pa.large_list(item) if large else pa.list_(item)
    buffers = [mask, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, layer.length, buffers, layer.null_count, children=[array])


def _every(layer: Items | Lists, scale: int) -> Items | Lists:
    """What stands around lists of one size is repeated for each of their items in the levels: one of each is kept."""
    if scale == 1:
        return layer
    if not isinstance(layer, Items) or layer.length % scale:
        raise Corrupt(f"page has {layer.length:,} items, expected a multiple of {scale} for fixed-size lists")
    count = layer.length // scale
    if layer.validity is None:
        return Items(count, None, 0)
    valid = np.unpackbits(layer.validity, count=layer.length, bitorder="little")[::scale]
    return Items(count, np.packbits(valid, bitorder="little"), count - int(np.count_nonzero(valid)))
