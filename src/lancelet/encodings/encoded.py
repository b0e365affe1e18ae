"""What codecs make of a page's values: the value buffers of its chunks, before they are put together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lancelet.encodings.chunks import Ints
from lancelet.encodings.values import Bytes
from lancelet.format.compressions import Compression

__all__ = ["EncodedChunks", "Pieces", "bit_pieces", "even_counts", "even_pieces", "values_per_chunk"]

# What a chunk of one fixed width aims at: below two disk sectors, with room for the header.
_TARGET_BYTES = 8186
MOST_VALUES = 4096


@dataclass(frozen=True, slots=True)
class Pieces:
    """One buffer of every chunk: chunk ``c`` has ``data[starts[c] : starts[c] + sizes[c]]``."""

    data: Bytes
    starts: Ints
    sizes: Ints

    @property
    def padded_size(self) -> int:
        """Bytes in the page: every buffer fills up whole words of 8 bytes."""
        return int(((self.sizes + 7) // 8).sum()) * 8


@dataclass(frozen=True, slots=True)
class EncodedChunks:
    """Chunks of ``counts`` values each: powers of two, but for the last; ``encoding`` says how to read the buffers."""

    encoding: Compression
    counts: Ints
    buffers: tuple[Pieces, ...]

    @property
    def padded_size(self) -> int:
        """Bytes of all buffers in the page."""
        return sum(pieces.padded_size for pieces in self.buffers)

    def with_encoding(self, encoding: Compression) -> EncodedChunks:
        """The same buffers under another description."""
        return replace(self, encoding=encoding)


def values_per_chunk(bits: int) -> int:
    """How many values of one width a chunk holds.

    >>> values_per_chunk(64), values_per_chunk(1), values_per_chunk(24)
    (512, 4096, 2048)
    """
    count = 2
    while 2 * count * bits < 8 * _TARGET_BYTES and 2 * count <= MOST_VALUES:
        count *= 2
    return count


def even_counts(total: int, per_chunk: int) -> Ints:
    """Chunks of ``per_chunk`` values, the last of what is left.

    >>> even_counts(5, 2).tolist()
    [2, 2, 1]
    """
    counts = np.full(-(-total // per_chunk), per_chunk, np.int64)
    if len(counts):
        counts[-1] = total - per_chunk * (len(counts) - 1)
    return counts


def even_pieces(data: Bytes, counts: Ints, width: int) -> Pieces:
    """Values of ``width`` bytes that lie side by side, cut into chunks without a copy."""
    sizes = counts * width
    return Pieces(data, np.cumsum(sizes) - sizes, sizes)


def bit_pieces(data: Bytes, counts: Ints) -> Pieces:
    """Single bits cut into chunks of ``counts`` bits; each chunk begins in a byte of its own."""
    sizes = (counts + 7) // 8
    starts = np.cumsum(sizes) - sizes
    if not np.any(counts[:-1] % 8):
        return Pieces(data, starts, sizes)
    bits = np.unpackbits(data, count=int(counts.sum()), bitorder="little")
    ends = np.cumsum(counts)
    spread = np.zeros(int(sizes.sum()) * 8, np.uint8)
    spread[np.arange(len(bits)) + np.repeat(starts * 8 - (ends - counts), counts)] = bits
    return Pieces(np.packbits(spread, bitorder="little"), starts, sizes)
