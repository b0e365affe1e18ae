"""FSST: strings in which one table's symbols of up to eight bytes stand for single codes."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.chunks import Chunks
from lancelet.encodings.values import Bytes, Variable
from lancelet.encodings.variable import offset_type
from lancelet.kernels import fsst, fsst_encode

__all__ = ["decode", "decode_chunks", "encode"]

# The longest symbol: no string grows by more.
_GROWTH = 8
# The byte of a symbol table whose lowest bit says that strings are encoded at all.
_ENCODED_FLAG = 3


def decode(symbol_table: bytes, packed: Variable) -> Variable:
    """The plain strings."""
    room = _GROWTH * int(packed.offsets[-1] - packed.offsets[0])
    offsets = np.empty(packed.count + 1, offset_type(room))
    data = np.empty(room, np.uint8)
    size = fsst.decode(_table(symbol_table), packed.data, packed.offsets, offsets, data)
    return Variable(packed.count, offsets, data[:size])


def decode_chunks(symbol_table: bytes, offset_bits: int, chunks: Chunks) -> Variable:
    """The plain strings of mini-blocks, straight from their bytes.

    The output is reserved for the worst case; memory that decoding does not reach is never touched.
    """
    starts, sizes = chunks.buffer(0)
    room = _GROWTH * int(sizes.sum())
    offsets = np.empty(chunks.total + 1, offset_type(room))
    data = np.empty(room, np.uint8)
    counts = np.ascontiguousarray(chunks.counts)
    size = fsst.decode_chunks(_table(symbol_table), chunks.data, starts, sizes, counts, offset_bits // 8, offsets, data)
    return Variable(chunks.total, offsets, data[:size])


def encode(values: Variable) -> tuple[bytes, Variable] | None:
    """A symbol table learned from the strings, and the strings in its codes; None if symbols would not help."""
    table = fsst_encode.train(values.data, values.offsets)
    if not table[_ENCODED_FLAG] & 1:
        return None
    room = 2 * int(values.offsets[-1] - values.offsets[0])
    offsets = np.empty(values.count + 1, offset_type(room))
    data = np.empty(room, np.uint8)
    size = fsst_encode.encode(table, values.data, values.offsets, offsets, data)
    return table, Variable(values.count, offsets, data[:size])


def _table(symbol_table: bytes) -> Bytes:
    return np.frombuffer(symbol_table, np.uint8)
