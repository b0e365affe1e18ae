"""Run lengths: each run's value, and how often it repeats, as two buffers; longer runs than 255 are several."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.chunks import Chunks, Ints
from lancelet.encodings.values import Fixed
from lancelet.kernels import runs

__all__ = ["decode", "decode_at"]


def decode(bits: int, chunks: Chunks) -> Fixed:
    """All values of the chunks."""
    value_starts, value_sizes = chunks.buffer(0)
    length_starts, length_sizes = chunks.buffer(1)
    counts = np.ascontiguousarray(chunks.counts)
    out = np.empty(chunks.total * (bits // 8), np.uint8)
    runs.expand_runs(chunks.data, value_starts, value_sizes, length_starts, length_sizes, counts, out, bits // 8)
    return Fixed(bits, chunks.total, out)


def decode_at(bits: int, chunks: Chunks, blocks: Ints, indices: Ints) -> Fixed:
    """Single values: the chunks they lie in are expanded whole."""
    ends = np.cumsum(chunks.counts)
    width = bits // 8
    whole = decode(bits, chunks).data.reshape(-1, width)
    picked = whole[(ends - chunks.counts)[blocks] + indices]
    return Fixed(bits, len(indices), np.ascontiguousarray(picked).reshape(-1))
