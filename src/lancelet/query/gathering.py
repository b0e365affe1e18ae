"""Gathering pieces of a column, read in the order of storage, into the order in which rows were asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings import memory
from lancelet.encodings.values import fixed_bits
from lancelet.query.joining import one_array
from lancelet.query.picking import pick

__all__ = ["gathered"]

Ints = npt.NDArray[np.int64]


def gathered(pieces: Sequence[pa.Array | pa.ChunkedArray], order: Ints | None) -> pa.ChunkedArray:
    """One column of pieces: value ``i`` of them all comes to stand at ``order[i]``; None leaves all where they are.

    >>> gathered([pa.array(["a"]), pa.array(["b", "c"])], np.array([2, 0, 1])).to_pylist()
    ['b', 'c', 'a']
    """
    kind = pieces[0].type
    chunks = [chunk for piece in pieces for chunk in (piece.chunks if isinstance(piece, pa.ChunkedArray) else [piece])]
    if order is None:
        return pa.chunked_array(chunks, kind)
    width = _width(kind)
    if width and not any(map(_has_nulls, chunks)):
        return pa.chunked_array([_scattered(chunks, kind, width, order)], kind)
    # The place of each value among the pieces.
    where = np.empty(len(order), np.int64)
    where[order] = np.arange(len(order))
    whole = one_array(chunks, kind)
    if whole is None:
        return pa.chunked_array(chunks, kind).take(pa.array(where))
    return pa.chunked_array([pick(whole, where)], kind)


def _width(kind: pa.DataType) -> int:
    """Bytes of each value in one buffer; 0 for types whose values take more than that."""
    if isinstance(kind, pa.BaseExtensionType):
        return 0
    if pat.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    bits = fixed_bits(kind)
    return 0 if bits is None or bits < 8 or pat.is_boolean(kind) else bits // 8


def _has_nulls(array: pa.Array) -> bool:
    """Whether any value, or any item of a list of fixed size, is null."""
    return array.null_count > 0 or (pat.is_fixed_size_list(array.type) and _has_nulls(array.values))


def _scattered(chunks: Sequence[pa.Array], kind: pa.DataType, width: int, order: Ints) -> pa.Array:
    out = memory.empty(len(order) * width)
    # NumPy moves words as numbers, and other items as pieces of memory: either is far faster than rows of bytes.
    item = np.dtype(f"u{width}" if width in (1, 2, 4, 8) else f"V{width}")
    items = out.view(item)
    done = 0
    for chunk in chunks:
        items[order[done : done + len(chunk)]] = _bytes_of(chunk).view(item)
        done += len(chunk)
    return _of_bytes(kind, len(order), out)


def _bytes_of(array: pa.Array) -> npt.NDArray[np.uint8]:
    while pat.is_fixed_size_list(array.type):
        size = array.type.list_size
        array = array.values.slice(array.offset * size, len(array) * size)
    width = array.type.bit_width // 8
    if not len(array):
        return np.empty(0, np.uint8)
    return np.frombuffer(array.buffers()[1], np.uint8, len(array) * width, array.offset * width)


def _of_bytes(kind: pa.DataType, count: int, data: npt.NDArray[np.uint8]) -> pa.Array:
    if pat.is_fixed_size_list(kind):
        items = _of_bytes(kind.value_type, count * kind.list_size, data)
        return pa.Array.from_buffers(kind, count, [None], 0, children=[items])
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)], 0)
