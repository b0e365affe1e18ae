"""Chunks: the value buffers of some mini-blocks of one page, side by side, so that one call decodes them all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelet.encodings import memory
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt
from lancelet.kernels import gather

__all__ = ["Chunks", "Ints", "join_bits", "join_bytes"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunks:
    """Buffer ``b`` of chunk ``c`` is the ``sizes[c, b]`` bytes of ``data`` from ``starts[c, b]`` on.

    Chunk ``c`` holds ``counts[c]`` values.
    """

    data: Bytes
    starts: Ints
    sizes: Ints
    counts: Ints

    @property
    def total(self) -> int:
        """Values in all chunks together."""
        return int(self.counts.sum())

    def buffer(self, at: int) -> tuple[Ints, Ints]:
        """Starts and sizes of one buffer of every chunk; Corrupt when the page has no such buffer."""
        if at >= self.starts.shape[1]:
            raise Corrupt(f"encoding asks for value buffer {at} of a page with {self.starts.shape[1]}")
        return np.ascontiguousarray(self.starts[:, at]), np.ascontiguousarray(self.sizes[:, at])

    def with_counts(self, counts: Ints) -> Chunks:
        """The same buffers read as another number of values: what a list's items are to the list."""
        return Chunks(self.data, self.starts, self.sizes, counts)

    def without_first(self) -> Chunks:
        """The chunks without their first value buffer."""
        return Chunks(self.data, self.starts[:, 1:], self.sizes[:, 1:], self.counts)

    def with_first(self, data: Bytes, starts: Ints, sizes: Ints) -> Chunks:
        """The chunks with the first value buffer replaced by one that lies in ``data``.

        The other buffers move along: ``data`` is put behind the present bytes, which stay where they are.
        """
        if self.starts.shape[1] == 1:
            return Chunks(data, starts[:, None], sizes[:, None], self.counts)
        base = len(self.data)
        joined = np.concatenate([self.data, data])
        all_starts, all_sizes = self.starts.copy(), self.sizes.copy()
        all_starts[:, 0], all_sizes[:, 0] = starts + base, sizes
        return Chunks(joined, all_starts, all_sizes, self.counts)


def require(found: Ints, expected: Ints, what: str) -> None:
    """Corrupt unless every chunk's buffer holds at least what its values need."""
    short = np.flatnonzero(found < expected)
    if len(short):
        at = int(short[0])
        raise Corrupt(f"{what} of chunk {at} has {int(found[at]):,} bytes, expected {int(expected[at]):,}")


def join_bytes(chunks: Chunks, at: int, width: int) -> Bytes:
    """Buffer ``at`` of every chunk as one array of values of ``width`` bytes."""
    starts, sizes = chunks.buffer(at)
    needed = chunks.counts * width
    require(sizes, needed, "the value buffer")
    out = memory.empty(int(needed.sum()))
    gather.copy_pieces(chunks.data, starts, needed, out)
    return out


def join_bits(chunks: Chunks, at: int) -> Bytes:
    """Buffer ``at`` of every chunk as one run of single bits, least significant first."""
    starts, sizes = chunks.buffer(at)
    counts = chunks.counts
    needed = (counts + 7) // 8
    require(sizes, needed, "the bit buffer")
    if not np.any(counts[:-1] % 8):
        out = np.empty(int(needed.sum()), np.uint8)
        gather.copy_pieces(chunks.data, starts, needed, out)
        return out
    # Chunks end inside bytes: look every bit up by its position.
    ends = np.cumsum(counts)
    position = np.arange(int(ends[-1]), dtype=np.int64) + np.repeat(starts * 8 - (ends - counts), counts)
    bits = (chunks.data[position >> 3] >> (position & 7).astype(np.uint8)) & np.uint8(1)
    return np.packbits(bits, bitorder="little")
