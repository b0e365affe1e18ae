"""Byte stream split: all first bytes, then all second bytes, …, which general compression then finds alike."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.chunks import Chunks, require
from lancelet.encodings.values import Fixed
from lancelet.kernels import split

__all__ = ["decode"]


def decode(bits: int, chunks: Chunks) -> Fixed:
    """All values of the chunks."""
    starts, sizes = chunks.buffer(0)
    width = bits // 8
    counts = np.ascontiguousarray(chunks.counts)
    require(sizes, counts * width, "the split buffer")
    out = np.empty(chunks.total * width, np.uint8)
    split.merge_bytes(chunks.data, starts, counts, width, out)
    return Fixed(bits, chunks.total, out)
