"""Blocks of bytes within a buffer: the checks that both kinds of the LZ4 kernel make before they touch any."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels.refuse import other_length, range_outside

__all__ = ["MOST_BYTES", "bad_lz4", "check_blocks", "check_compression", "worst_lz4"]

#: Places are kept in 32 bits while compressing, across all blocks of one call.
MOST_BYTES = 2**32 - 2


def worst_lz4(size: int) -> int:
    """The most bytes that a compressed block of ``size`` bytes can take.

    >>> worst_lz4(0), worst_lz4(1000)
    (16, 1019)
    """
    return size + size // 255 + 16


def check_blocks(
    what: str, starts: NDArray[np.int64], sizes: NDArray[np.int64], have: int, *, like: int | None = None
) -> None:
    """Refuse blocks that do not lie within ``have`` bytes, or are not as many as ``like``."""
    other_length(f"sizes of {what} blocks", len(sizes), len(starts))
    if like is not None:
        other_length(f"starts of {what} blocks", len(starts), like)
    # starts > have - sizes, rather than starts + sizes > have, which could overflow.
    wrong = np.flatnonzero((starts < 0) | (sizes < 0) | (sizes > have) | (starts > have - np.clip(sizes, 0, have)))
    if wrong.size:
        first = int(wrong[0])
        raise range_outside(f"{what} block", first, start=int(starts[first]), size=int(sizes[first]), have=have)


def check_compression(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], have: int, room: int, places: int, prefix: bool
) -> None:
    """Refuse arguments of ``compress_blocks`` that do not fit together."""
    check_blocks("uncompressed", starts, sizes, have)
    other_length("starts of compressed blocks", places, len(starts))
    total = int(sizes.sum())
    if total > MOST_BYTES:
        raise InvalidInput(f"blocks of {total} bytes in one call, expected at most {MOST_BYTES}")
    needed = total + int((sizes // 255).sum()) + (20 if prefix else 16) * len(sizes)
    if room < needed:
        raise InvalidInput(f"out has room for {room} bytes, the worst case needs {needed}")


def bad_lz4(block: int, size: int, expected: int) -> Corrupt:
    """A block that is no valid LZ4, or gives another number of bytes than expected."""
    return Corrupt(f"LZ4 block {block} of {size} bytes does not decompress to the expected {expected} bytes")
