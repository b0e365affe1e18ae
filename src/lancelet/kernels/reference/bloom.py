"""Split-block Bloom filters, in NumPy: a hash picks a block of 256 bits, and one bit in each of its eight words.

hash   63 .............. 32 | 31 .............. 0
       which block, as a      times a salt for each word; the upper five bits of the
       share of all blocks    product are the number of the bit
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse

__all__ = ["SALTS", "add_hashes", "bits_of", "block_of"]

Hashes = NDArray[np.uint64]
Words = NDArray[np.uint32]

#: One for each word of a block.
SALTS: Words = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


def add_hashes(hashes: Hashes, words: Words) -> None:
    """Set the bits of each hash in a filter, eight words for each of its blocks.

    >>> words = np.zeros(16, np.uint32)
    >>> add_hashes(np.array([1 << 63], np.uint64), words)
    >>> words.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    refuse.no_blocks(len(words), len(SALTS))
    blocks = words.reshape(-1, len(SALTS))
    np.bitwise_or.at(blocks, block_of(hashes, len(blocks)), bits_of(hashes))


def block_of(hashes: Hashes, blocks: int) -> NDArray[np.int64]:
    """The number of the block that each hash picks.

    >>> block_of(np.array([0, 1 << 63], np.uint64), 4).tolist()
    [0, 2]
    """
    upper = hashes >> np.uint64(32)
    return ((upper * np.uint64(blocks)) >> np.uint64(32)).astype(np.int64)


def bits_of(hashes: Hashes) -> Words:
    """The bit of each hash in each of the eight words, as a mask.

    >>> bits_of(np.array([1], np.uint64))[0, :2].tolist()
    [256, 256]
    """
    lower = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    found: Words = np.uint32(1) << ((lower[:, None] * SALTS) >> np.uint32(27))
    return found
