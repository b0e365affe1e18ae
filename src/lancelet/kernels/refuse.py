"""Words for what the kernels refuse: compiled kernels and their twins raise the same errors with the same text."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput

__all__ = [
    "bad_block",
    "bad_lookup",
    "bad_runs",
    "cannot_pack",
    "cannot_split",
    "item_size_of_runs",
    "negative",
    "no_blocks",
    "not_aligned",
    "not_rising",
    "not_whole_items",
    "other_length",
    "range_outside",
    "too_little_room",
    "unequal_chunks",
    "wrong_bounds",
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


def negative(what: str, found: int) -> None:
    """Refuse a count below zero."""
    if found < 0:
        raise InvalidInput(f"{what} is {found}, expected at least 0")


def no_blocks(words: int, size: int) -> None:
    """Refuse a filter that is not made of blocks, or of none."""
    if words == 0 or words % size:
        raise InvalidInput(f"the filter has {words} words, expected a multiple of {size}")


def not_rising(what: str, index: int, found: int, before: int) -> InvalidInput:
    """A number that should be larger than the one before it."""
    return InvalidInput(f"{what} {index} is {found}, expected more than {before}, which is before it")


def too_little_room(found: int, needed: int) -> None:
    """Refuse an output that might not hold the results."""
    if found < needed:
        raise InvalidInput(f"there is room for {found} results, expected it for {needed}")


def item_size_of_runs(item_size: int) -> None:
    """Refuse sizes of values that have no run-length form."""
    if item_size not in (1, 2, 4, 8, 16):
        raise wrong_item_size(item_size, "1, 2, 4, 8 or 16")


def not_whole_items(size: int, item_size: int) -> InvalidInput:
    """A number of bytes that is no whole number of values."""
    return InvalidInput(f"{size} bytes are no whole number of values of {item_size} bytes")


def not_aligned(item_size: int) -> InvalidInput:
    """An output that the kernel cannot store into word by word."""
    return InvalidInput(f"the output does not begin at a multiple of {min(item_size, 8)} bytes in memory")


def wrong_bounds(bounds: NDArray[np.int64], count: int) -> None:
    """Refuse chunk bounds that do not go up from 0 to the number of values."""
    if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != count or (np.diff(bounds) < 0).any():
        raise InvalidInput(f"the chunk bounds {bounds} do not go up from 0 to {count}")


def unequal_chunks(
    value_starts: Sized, value_sizes: Sized, length_starts: Sized, length_sizes: Sized, counts: Sized
) -> None:
    """Refuse descriptions of run-length chunks that differ in length."""
    chunks = len(value_starts)
    other_length("value_sizes", len(value_sizes), chunks)
    other_length("length_starts", len(length_starts), chunks)
    other_length("length_sizes", len(length_sizes), chunks)
    other_length("counts", len(counts), chunks)


def bad_runs(
    index: int,
    data: NDArray[np.uint8],
    value_starts: NDArray[np.int64],
    value_sizes: NDArray[np.int64],
    length_starts: NDArray[np.int64],
    length_sizes: NDArray[np.int64],
    count: int,
    item_size: int,
) -> Corrupt:
    """The first reason for which a chunk of runs cannot be expanded."""
    value_start, value_size = int(value_starts[index]), int(value_sizes[index])
    length_start, length_size = int(length_starts[index]), int(length_sizes[index])
    for what, start, size in (("values", value_start, value_size), ("lengths", length_start, length_size)):
        if start < 0 or size < 0 or start > len(data) - size:
            return range_outside(f"the run {what} of chunk", index, start=start, size=size, have=len(data))
    if length_size * item_size != value_size:
        expected = f"{length_size * item_size} for {length_size} run lengths"
        return Corrupt(f"the run values of chunk {index} have {value_size} bytes, expected {expected}")
    total = int(data[length_start : length_start + length_size].sum(dtype=np.int64))
    return Corrupt(f"the runs of chunk {index} come to {total} values, expected {count}")
