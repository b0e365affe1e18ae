"""Byte stream split: all first bytes, then all second bytes, …, which general compression then finds alike."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.chunks import Chunks, require
from lancelet.encodings.encoded import EncodedChunks, even_counts, even_pieces, values_per_chunk
from lancelet.encodings.values import Fixed
from lancelet.format.compressions import ByteStreamSplit, Flat
from lancelet.kernels import split

__all__ = ["decode", "encode"]


def decode(bits: int, chunks: Chunks) -> Fixed:
    """All values of the chunks."""
    starts, sizes = chunks.buffer(0)
    width = bits // 8
    counts = np.ascontiguousarray(chunks.counts)
    require(sizes, counts * width, "the split buffer")
    out = np.empty(chunks.total * width, np.uint8)
    split.merge_bytes(chunks.data, starts, counts, width, out)
    return Fixed(bits, chunks.total, out)


def encode(values: Fixed) -> EncodedChunks:
    """The bytes of each chunk's values sorted by their place."""
    width = values.bits // 8
    counts = even_counts(values.count, values_per_chunk(values.bits))
    out = np.empty(values.count * width, np.uint8)
    split.split_bytes(values.data, width, counts, out)
    return EncodedChunks(ByteStreamSplit(Flat(values.bits)), counts, (even_pieces(out, counts, width),))
