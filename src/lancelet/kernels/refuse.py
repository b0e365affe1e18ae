"""Words for what the kernels refuse: compiled kernels and their twins raise the same errors with the same text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput

__all__ = [
    "bad_block",
    "bad_lookup",
    "cannot_pack",
    "cannot_split",
    "other_length",
    "range_outside",
    "wrong_item_size",
    "wrong_total",
]

BLOCK_VALUES = 1024


def range_outside(what: str, index: int, *, start: int, size: int, have: int) -> Corrupt:
    """A range of bytes that does not lie within the buffer.

    >>> print(range_outside("block", 3, start=8, size=128, have=100))
    block 3 is bytes 8..136 of a buffer of 100 bytes
    """
    if size < 0:
        return Corrupt(f"{what} {index} has a size of {size} bytes, expected at least 0")
    return Corrupt(f"{what} {index} is bytes {start}..{start + size} of a buffer of {have} bytes")


def bad_block(
    index: int, data: NDArray[np.uint8], start: int, width: int | None, size: int | None, word: int, count: int
) -> Corrupt:
    """The first reason for which a bit-packed block cannot be read.

    ``width`` is None where it stands in a header word, ``size`` is None where the width decides it.
    """
    if not 0 <= count <= BLOCK_VALUES:
        return Corrupt(f"block {index} counts {count} values, expected 0 to {BLOCK_VALUES}")
    if size is not None and size < word:
        return Corrupt(f"block {index} has {size} bytes, expected a header of {word} bytes at least")
    if size is not None:
        if not 0 <= start <= len(data) - size:
            return range_outside("block", index, start=start, size=size, have=len(data))
        width = int.from_bytes(data[start : start + word].tobytes(), "little")
    if width is None or width > 8 * word:
        return Corrupt(f"block {index} is {width} bits wide, expected at most {8 * word}")
    if size is not None:
        return Corrupt(f"block {index} has {size} bytes, expected {word + 128 * width} for {width} bits a value")
    return range_outside("block", index, start=start, size=128 * width, have=len(data))


def bad_lookup(lookup: int, what: str, index: int, indices: int, value: int, values: int) -> Corrupt:
    """A single value asked for where there is none.

    >>> print(bad_lookup(0, "block", 2, 2, 5, 1024))
    lookup 0 names block 2, expected 0 to 1
    """
    if not 0 <= index < indices:
        return Corrupt(f"lookup {lookup} names {what} {index}, expected 0 to {indices - 1}")
    return Corrupt(f"lookup {lookup} asks for value {value} of {what} {index}, which has {values}")


def cannot_pack(index: int, needed: int, width: int, bits: int, size: int, room: int) -> InvalidInput:
    """Values that are wider than the width given for their block, or an output that is too small."""
    if width > bits:
        return InvalidInput(f"block {index} is to be {width} bits wide, expected at most {bits}")
    if needed > width:
        return InvalidInput(f"values of block {index} need {needed} bits, which is more than the {width} given")
    return InvalidInput(f"blocks up to {index} need {size} bytes, the output has {room}")


def cannot_split(chunks: int, item_size: int, size: int) -> InvalidInput:
    """Counts of a writer that do not cover its values."""
    return InvalidInput(f"the counts of {chunks} chunks do not come to the {size} bytes of values of {item_size} bytes")


def wrong_total(what: str, *, found: int, expected: int) -> Corrupt:
    """Parts that do not add up to the whole."""
    return Corrupt(f"{what} come to {found}, expected {expected}")


def wrong_item_size(found: int, expected: str) -> InvalidInput:
    """Values of a size that the kernel does not handle."""
    return InvalidInput(f"values of {found} bytes, expected {expected}")


def other_length(what: str, found: int, expected: int) -> None:
    """Refuse arrays that should describe the same blocks but differ in length."""
    if found != expected:
        raise InvalidInput(f"{what} has {found} entries, expected {expected}")
