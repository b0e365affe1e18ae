"""Shapes: how a nested field falls apart into leaf columns, and how leaf columns become nested arrays again.

A file keeps one column for each leaf. Decoding a page of a leaf gives a *skeleton*: the nested array reduced to the
one path that leads to this leaf (``struct<a, b: list<c>>`` has the skeletons ``struct<a>`` and ``struct<b: list<c>>``).
``merge`` puts the skeletons of all leaves together; structure that several leaves repeat is taken from the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import Corrupt

__all__ = [
    "Leaf",
    "List",
    "Shape",
    "Struct",
    "items_per_row",
    "leaves",
    "merge",
    "path_shape",
    "path_to",
    "skeleton_type",
    "split",
]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field stored as one column of the file."""

    field: pa.Field
    column: int


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct whose fields are stored apart."""

    field: pa.Field
    children: tuple[Shape, ...]
    #: The struct's own column; only in 2.0 it has one.
    column: int = -1


@dataclass(frozen=True, slots=True)
class List:
    """A list, large list, map or structural fixed-size list; the child is its item (a map's is the entries struct)."""

    field: pa.Field
    child: Shape
    #: The column of the list's ends; only in 2.0 it has one.
    column: int = -1


Shape = Leaf | Struct | List


def leaves(shape: Shape) -> Iterator[Leaf]:
    """The leaves in column order."""
    match shape:
        case Leaf():
            yield shape
        case Struct(_, children):
            for child in children:
                yield from leaves(child)
        case List(_, child):
            yield from leaves(child)


def path_to(shape: Shape, column: int) -> tuple[Shape, ...]:
    """The nodes from ``shape`` down to the leaf stored in ``column``, outermost first; empty if it is not below."""
    match shape:
        case Leaf():
            return (shape,) if shape.column == column else ()
        case Struct(_, children):
            tails = (path_to(child, column) for child in children)
        case List(_, child):
            tails = (path_to(child, column) for child in (child,))
    return next(((shape, *tail) for tail in tails if tail), ())


def skeleton_type(path: tuple[Shape, ...]) -> pa.DataType:
    """The type of the nested array reduced to one path; maps appear as lists of their entries."""
    head, *tail = path
    if isinstance(head, Leaf):
        return head.field.type
    item = tail[0].field.with_type(skeleton_type(tuple(tail)))
    if isinstance(head, Struct):
        return pa.struct([item])
    kind = head.field.type
    if pat.is_large_list(kind):
        return pa.large_list(item)
    if pat.is_fixed_size_list(kind):
        return pa.list_(item, kind.list_size)
    return pa.list_(item)


def merge(shape: Shape, skeletons: Mapping[int, pa.Array]) -> pa.Array:
    """The full array from the skeletons of its leaves, all of the same rows."""
    match shape:
        case Leaf(_, column):
            return skeletons[column]
        case Struct(field, children):
            return _merge_struct(field, children, skeletons)
        case List(field, child):
            return _merge_list(field, child, skeletons)


def _first(shape: Shape, skeletons: Mapping[int, pa.Array]) -> pa.Array:
    return skeletons[next(leaves(shape)).column]


def _merge_struct(field: pa.Field, children: tuple[Shape, ...], skeletons: Mapping[int, pa.Array]) -> pa.Array:
    first = _first(children[0], skeletons)
    arrays = []
    for child in children:
        below = {leaf.column: skeletons[leaf.column].field(0) for leaf in leaves(child)}
        if any(len(array) != len(first) for array in below.values()):
            raise Corrupt(f"columns of struct {field.name!r} differ in length", column=field.name)
        arrays.append(merge(child, below))
    kind = pa.struct([child.field for child in children])
    return _with_validity_of(first, kind, [None], arrays)


def _merge_list(field: pa.Field, child: Shape, skeletons: Mapping[int, pa.Array]) -> pa.Array:
    first = _first(child, skeletons)
    kind = field.type
    if pat.is_fixed_size_list(kind):
        size = kind.list_size
        below = {
            column: array.values.slice(array.offset * size, len(array) * size) for column, array in skeletons.items()
        }
        return _with_validity_of(first, pa.list_(child.field, size), [None], [merge(child, below)])
    offsets, below = None, {}
    for leaf in leaves(child):
        array = skeletons[leaf.column]
        here, below[leaf.column] = _rebased(array)
        if offsets is None:
            offsets = here
        elif not np.array_equal(offsets, here):
            raise Corrupt(f"columns of list {field.name!r} disagree on the lengths of its lists", column=field.name)
    items = merge(child, below)
    if pat.is_map(kind):
        target = pa.map_(items.type.field(0), items.type.field(1), keys_sorted=kind.keys_sorted)
    else:
        target = pa.large_list(child.field) if pat.is_large_list(kind) else pa.list_(child.field)
    return _with_validity_of(first, target, [None, pa.py_buffer(offsets)], [items])


def _rebased(array: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Offsets that start at 0 and the items they point into."""
    dtype = np.dtype(np.int64 if pat.is_large_list(array.type) else np.int32)
    if not len(array):
        return np.zeros(1, dtype), array.values.slice(0, 0)
    offsets = np.frombuffer(array.buffers()[1], dtype, len(array) + 1, array.offset * dtype.itemsize)
    first, last = int(offsets[0]), int(offsets[-1])
    return (offsets - dtype.type(first) if first else offsets), array.values.slice(first, last - first)


def _with_validity_of(array: pa.Array, kind: pa.DataType, buffers: list[object], children: list[pa.Array]) -> pa.Array:
    """An array of ``kind`` that is null where ``array`` is."""
    mask = None
    if array.null_count:
        mask = array.buffers()[0]
        if array.offset:
            mask = array.is_valid().buffers()[1]
    return pa.Array.from_buffers(kind, len(array), [mask, *buffers[1:]], array.null_count, children=children)


def items_per_row(path: tuple[Shape, ...]) -> int:
    """Items of the leaf for each row as far as the type fixes it: the product of structural fixed-size lists' sizes."""
    return prod(
        node.field.type.list_size for node in path if isinstance(node, List) and pat.is_fixed_size_list(node.field.type)
    )


def split(shape: Shape, array: pa.Array) -> dict[int, pa.Array]:
    """The skeletons of an array by column: the writer's side of :func:`merge`; copies only the bitmaps of slices."""
    match shape:
        case Leaf(_, column):
            return {column: array}
        case Struct(_, children):
            parts = {}
            for at, child in enumerate(children):
                for column, skeleton in split(child, array.field(at)).items():
                    kind = pa.struct([child.field.with_type(skeleton.type)])
                    parts[column] = _with_validity_of(array, kind, [None], [skeleton])
            return parts
        case List(field, child):
            entries = array.values
            if pat.is_map(field.type):
                entries = pa.StructArray.from_arrays([array.keys, array.items], fields=list(child.field.type))
            buffers, size = array.buffers()[:2], None
            if pat.is_fixed_size_list(field.type):
                buffers, size = buffers[:1], field.type.list_size
            parts = {}
            for column, skeleton in split(child, entries).items():
                kind = _list_of(field.type, child.field.with_type(skeleton.type), size)
                parts[column] = pa.Array.from_buffers(
                    kind, len(array), buffers, array.null_count, array.offset, children=[skeleton]
                )
            return parts


def _list_of(kind: pa.DataType, item: pa.Field, size: int | None) -> pa.DataType:
    if size is not None:
        return pa.list_(item, size)
    return pa.large_list(item) if pat.is_large_list(kind) else pa.list_(item)


def path_shape(path: tuple[Shape, ...]) -> Shape:
    """The shape of a skeleton: each node of the path with the next as its only child."""
    head, *tail = path
    if isinstance(head, Leaf):
        return head
    child = path_shape(tuple(tail))
    field = head.field.with_type(skeleton_type(path))
    return Struct(field, (child,)) if isinstance(head, Struct) else List(field, child)
