"""Writing files of 2.0: which columns a schema has, and an array taken apart into the rows of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.encodings.shape import Leaf, List, Shape, Struct
from lancelet.encodings.v2_0 import blob
from lancelet.encodings.v2_0.node_writer import NodeWriter
from lancelet.encodings.values import Bytes
from lancelet.errors import Unsupported
from lancelet.file.shapes import stored_nodes
from lancelet.format.arrays import BlobColumn, ColumnEncoding, ValuesColumn
from lancelet.format.blobs import is_blob_v1
from lancelet.format.columns import Range
from lancelet.format.fields import Schema

__all__ = ["column_encodings", "node_writers", "split_nodes"]


def column_encodings(schema: Schema) -> list[ColumnEncoding]:
    """How each column is encoded as a whole: only blobs are anything special."""
    return [BlobColumn(ValuesColumn()) if is_blob_v1(field) else ValuesColumn() for field in stored_nodes(schema)]


def node_writers(schema: Schema, shapes: Sequence[Shape]) -> dict[int, NodeWriter]:
    """What encodes each column."""
    fields = list(stored_nodes(schema))
    found = {}
    for shape in shapes:
        for name, node in _nodes(shape, shape.field.name):
            found[node.column] = NodeWriter(node, dict(fields[node.column].metadata), name)
    return found


def _nodes(shape: Shape, name: str) -> Iterator[tuple[str, Shape]]:
    yield name, shape
    below: tuple[Shape, ...] = ()
    if not isinstance(shape, Leaf):
        below = shape.children if isinstance(shape, Struct) else (shape.child,)
    for child in below:
        yield from _nodes(child, f"{name}.{child.field.name}")


def split_nodes(
    shape: Shape, array: pa.Array, blobs: set[int], place: Callable[[Bytes], Range]
) -> Iterator[tuple[int, pa.Array]]:
    """The rows of each column; ``place`` puts the payload of a blob into the file.

    >>> shape = List(pa.field("l", pa.list_(pa.int8())), Leaf(pa.field("item", pa.int8()), 1), 0)
    >>> [(column, len(rows)) for column, rows in split_nodes(shape, pa.array([[1, 2], None]), set(), lambda _: (0, 0))]
    [(0, 2), (1, 2)]
    """
    if isinstance(array, pa.ExtensionArray) and not isinstance(shape, Leaf):
        array = array.storage
    match shape:
        case Leaf(_, column):
            _check_struct(shape, array)
            yield column, blob.describe(array, place) if column in blobs else array
        case Struct(_, children, column):
            _check_struct(shape, array)
            yield column, pa.nulls(len(array))
            for at, child in enumerate(children):
                yield from split_nodes(child, array.field(at), blobs, place)
        case List(field, child, column):
            if not (pat.is_list(field.type) or pat.is_large_list(field.type)):
                raise Unsupported(f"a file of version 2.0 cannot hold type {field.type}", column=field.name)
            yield column, _ends(array)
            # What lies behind null lists is left out.
            yield from split_nodes(child, array.flatten(), blobs, place)


def _check_struct(shape: Shape, array: pa.Array) -> None:
    if pat.is_struct(array.type) and array.null_count:
        raise Unsupported(
            f"struct has {array.null_count:,} nulls, which a file of version 2.0 cannot hold",
            column=shape.field.name,
            hint="write version 2.1 or later",
        )


def _ends(array: pa.Array) -> pa.Array:
    """The lists without their items."""
    if array.null_count or not len(array):
        lengths = pc.list_value_length(array).fill_null(0)
        offsets = np.zeros(len(array) + 1, np.int64)
        np.cumsum(np.asarray(lengths), out=offsets[1:])
    else:
        width = np.dtype(np.int64 if pat.is_large_list(array.type) else np.int32)
        found = np.frombuffer(array.buffers()[1], width, len(array) + 1, array.offset * width.itemsize)
        offsets = found.astype(np.int64) - int(found[0])
    mask = array.is_valid().buffers()[1] if array.null_count else None
    items = pa.nulls(int(offsets[-1]))
    buffers = [mask, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(pa.large_list(pa.null()), len(array), buffers, array.null_count, children=[items])
