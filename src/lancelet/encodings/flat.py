"""Flat: values stored as they are, back to back; single bits for booleans."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.chunks import Chunks, Ints, join_bits, join_bytes, require
from lancelet.encodings.encoded import EncodedChunks, bit_pieces, even_counts, even_pieces, values_per_chunk
from lancelet.encodings.values import Fixed
from lancelet.errors import Corrupt
from lancelet.format.compressions import Flat
from lancelet.kernels import chunk_rows

__all__ = ["decode", "decode_at", "decode_block", "encode"]


def decode(bits: int, chunks: Chunks) -> Fixed:
    """All values of the chunks."""
    if bits == 1:
        return Fixed(1, chunks.total, join_bits(chunks, 0))
    return Fixed(bits, chunks.total, join_bytes(chunks, 0, _width(bits)))


def decode_at(bits: int, chunks: Chunks, blocks: Ints, indices: Ints) -> Fixed:
    """The values at ``indices[i]`` within chunk ``blocks[i]``, none of the others touched."""
    starts, sizes = chunks.buffer(0)
    if bits == 1:
        require(sizes, (chunks.counts + 7) // 8, "the bit buffer")
        position = starts[blocks] * 8 + indices
        picked = (chunks.data[position >> 3] >> (position & 7).astype(np.uint8)) & np.uint8(1)
        return Fixed(1, len(indices), np.packbits(picked, bitorder="little"))
    width = _width(bits)
    require(sizes, chunks.counts * width, "the value buffer")
    out = np.empty(len(indices) * width, np.uint8)
    chunk_rows.values_at(chunks.data, starts, sizes, width, blocks, indices, out)
    return Fixed(bits, len(indices), out)


def decode_block(bits: int, data: np.ndarray, count: int) -> Fixed:
    """``count`` values from one buffer, as a view of it."""
    if bits != 1:
        _width(bits)
    needed = (count * bits + 7) // 8
    if len(data) < needed:
        raise Corrupt(f"flat buffer has {len(data):,} bytes, expected {needed:,} for {count:,} values of {bits} bits")
    return Fixed(bits, count, data[:needed])


def encode(values: Fixed) -> EncodedChunks:
    """The values as they are: nothing is copied."""
    counts = even_counts(values.count, values_per_chunk(values.bits))
    pieces = bit_pieces(values.data, counts) if values.bits == 1 else even_pieces(values.data, counts, values.bits // 8)
    return EncodedChunks(Flat(values.bits), counts, (pieces,))


def _width(bits: int) -> int:
    if bits % 8 or not bits:
        raise Corrupt(f"flat values of {bits} bits, expected 1 or a multiple of 8")
    return bits // 8
