"""Run lengths: each run's value, and how often it repeats, as two buffers; longer runs than 255 are several."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.chunks import Chunks, Ints
from lancelet.encodings.encoded import MOST_VALUES, EncodedChunks, Pieces, even_counts
from lancelet.encodings.values import Fixed
from lancelet.format.compressions import Flat, Rle
from lancelet.kernels import runs

# What a chunk of runs may take; chunks with more runs hold fewer values.
_CHUNK_BYTES = 8186

__all__ = ["decode", "decode_at", "encode", "stored_bytes"]


def decode(bits: int, chunks: Chunks) -> Fixed:
    """All values of the chunks."""
    counts = np.ascontiguousarray(chunks.counts)
    out = np.empty(chunks.total * (bits // 8), np.uint8)
    runs.expand_runs(chunks.data, *chunks.buffer(0), *chunks.buffer(1), counts, bits // 8, out)
    return Fixed(bits, chunks.total, out)


def decode_at(bits: int, chunks: Chunks, blocks: Ints, indices: Ints) -> Fixed:
    """Single values."""
    out = np.empty(len(indices) * (bits // 8), np.uint8)
    runs.runs_at(chunks.data, *chunks.buffer(0), *chunks.buffer(1), blocks, indices, bits // 8, out)
    return Fixed(bits, len(indices), out)


def stored_bytes(values: Fixed) -> int:
    """Bytes of the runs of all chunks."""
    width = values.bits // 8
    _, lengths, _ = runs.find_runs(values.data, width, _bounds(even_counts(values.count, MOST_VALUES)))
    return len(lengths) * (width + 1)


def encode(values: Fixed) -> EncodedChunks:
    """Chunks of up to 4,096 values, halved as long as one has too many runs."""
    width = values.bits // 8
    counts = even_counts(values.count, MOST_VALUES)
    while True:
        run_values, lengths, found = runs.find_runs(values.data, width, _bounds(counts))
        crowded = (found * (width + 1) > _CHUNK_BYTES) & (counts > 2)
        if not crowded.any():
            break
        counts = _halved(counts, crowded)
    ends = np.cumsum(found)
    value_pieces = Pieces(run_values, (ends - found) * width, found * width)
    return EncodedChunks(Rle(Flat(values.bits), Flat(8)), counts, (value_pieces, Pieces(lengths, ends - found, found)))


def _halved(counts: Ints, which: np.ndarray) -> Ints:
    """Some chunks cut in two, the first part a power of two; only the very last chunk may be none already."""
    largest = np.int64(1) << np.floor(np.log2(counts)).astype(np.int64)
    first = np.where(largest == counts, counts // 2, largest)
    parts = np.stack([np.where(which, first, counts), np.where(which, counts - first, 0)], axis=1).reshape(-1)
    return parts[parts > 0]


def _bounds(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
