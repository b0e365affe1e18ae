"""Words and checks that the kernels for pages (chunks, full-zip, levels, gathering) share with their twins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput

__all__ = [
    "bad_chunk",
    "bad_packed_levels",
    "bad_runs",
    "bad_variable",
    "check_bounds",
    "check_offsets",
    "check_some_offsets",
    "index_outside",
    "range_of_value",
    "short_buffer",
    "too_large",
    "unequal_levels",
]

Places = NDArray[np.int64]


def bad_runs(chunk: int) -> Corrupt:
    """Run lengths that do not say what they should."""
    return Corrupt(f"run lengths of chunk {chunk} do not fit their sizes, or come to another number of levels")


def bad_chunk(chunk: int, size: int) -> Corrupt:
    """A chunk whose header names more bytes than it has."""
    return Corrupt(f"header or buffers of chunk {chunk} do not fit its {size} bytes")


def bad_packed_levels(buffer: int, size: int, count: int, width: int) -> Corrupt:
    """A buffer of packed levels that has neither of the two sizes that its levels can take, or lies outside."""
    return Corrupt(f"buffer {buffer} of {size} bytes cannot hold {count} levels of {width} bits")


def unequal_levels(chunk: int, levels: int, values: int) -> Corrupt:
    """A chunk of a page without lists that has not one level for each value."""
    return Corrupt(f"chunk {chunk} has {levels} levels for {values} values")


def short_buffer(buffer: int, size: int, index: int, item_size: int) -> Corrupt:
    """A buffer that ends before a value that was to be in it, or that has not the size its values need."""
    return Corrupt(f"buffer {buffer} of {size} bytes cannot hold value {index} of {item_size} bytes")


def bad_variable(chunk: int) -> Corrupt:
    """Offsets of a chunk that cannot be."""
    return Corrupt(f"offsets of chunk {chunk} do not rise from the end of their table to at most the end of the buffer")


def index_outside(lookup: int, index: int, have: int) -> InvalidInput:
    """A value asked for that does not exist."""
    return InvalidInput(f"lookup {lookup} asks for value {index}, expected 0 to {have - 1}")


def range_of_value(index: int, start: int, end: int, have: int) -> InvalidInput:
    """Offsets of an array in memory that do not lie in its bytes."""
    return InvalidInput(f"value {index} has offsets {start} and {end}, expected them to rise within {have} bytes")


def check_some_offsets(offsets: Places | NDArray[np.int32]) -> None:
    """Refuse an array without even the one offset that no values have."""
    if len(offsets) == 0:
        raise InvalidInput("no offsets, expected one more than there are values")


def too_large(total: int) -> InvalidInput:
    """More bytes than 32-bit offsets can speak of."""
    return InvalidInput(f"values come to {total} bytes, more than 32-bit offsets reach", hint="ask for 64-bit offsets")


def check_bounds(bounds: Places, have: int) -> None:
    """Refuse bounds that fall, or lie outside of what they cut."""
    if len(bounds) and (bounds[0] < 0 or bounds[-1] > have or (bounds[1:] < bounds[:-1]).any()):
        raise InvalidInput(f"bounds do not rise from 0 to at most {have}")


def check_offsets(offsets: Places | NDArray[np.int32], have: int) -> None:
    """Refuse offsets of an array in memory that fall, or lie outside of its bytes."""
    if len(offsets) == 0 or offsets[0] < 0 or offsets[-1] > have or (offsets[1:] < offsets[:-1]).any():
        raise InvalidInput(f"offsets do not rise from 0 to at most {have}")


def wrong_counts(chunks: int, num_items: int) -> Corrupt:
    """Chunk words whose numbers of values are not those of the page."""
    return Corrupt(f"numbers of values in {chunks} chunks do not come to the {num_items} of the page")


def chunk_too_large(chunk: int, size: int, most: int) -> InvalidInput:
    """More bytes than the chunk's header or word can say."""
    return InvalidInput(f"chunk {chunk} or a buffer of it has {size} bytes, expected at most {most}")


def check_buffer_count(count: int) -> None:
    """Refuse a number of value buffers that no encoding has, before memory is set aside for them."""
    if not 0 <= count <= 255:
        raise Corrupt(f"page has {count} value buffers in each chunk, expected at most 255")


def needs_bits(what: str, found: int, expected: str) -> Corrupt:
    """A width in a page's description that the format does not have."""
    return Corrupt(f"{what} are {found} bits wide, expected {expected}")


def bad_item(item: int, at: int, size: int, have: int) -> Corrupt:
    """An item of a full-zip page that does not lie in its buffer."""
    return Corrupt(f"item {item} needs {size} bytes at byte {at} of a full-zip buffer of {have} bytes")


def wrong_values(found: str) -> InvalidInput:
    """Levels of a writer that do not fit its values."""
    return InvalidInput(f"levels do not fit the values: {found}")


def bad_value(lookup: int, chunk: int, value: int) -> Corrupt:
    """A single value asked for where there is none."""
    return Corrupt(f"lookup {lookup} asks for value {value} of chunk {chunk}, which does not exist")


def control_width(bits_rep: int, bits_def: int) -> int:
    """Bytes of a full-zip control word.

    >>> [control_width(0, 0), control_width(1, 2), control_width(1, 8), control_width(9, 8)]
    [0, 1, 2, 4]
    """
    if not (0 <= bits_rep <= 16 and 0 <= bits_def <= 16):
        raise needs_bits("levels", max(bits_rep, bits_def), "0 to 16")
    bits = bits_rep + bits_def
    return 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4


def check_control(control: int, value_bytes: int) -> None:
    """Refuse items that take no bytes at all: a buffer could hold any number of them."""
    if value_bytes < 0 or value_bytes + control < 1:
        raise Corrupt(f"items of a full-zip page take {control} bytes for levels and {value_bytes} for the value")


def check_zip(
    rep: NDArray[np.uint16] | None, definition: NDArray[np.uint16] | None, bits_rep: int, bits_def: int, values: int
) -> int:
    """The number of items to write, after checking that their levels fit the bits given."""
    items = values
    for levels, bits in ((rep, bits_rep), (definition, bits_def)):
        if (levels is None) != (bits == 0):
            raise wrong_values(f"{bits} bits for levels given: {levels is not None}")
        if levels is not None:
            items = len(levels)
            if items and int(levels.max()) >> bits:
                raise wrong_values(f"level {int(levels.max())} does not fit {bits} bits")
    if rep is not None and definition is not None and len(rep) != len(definition):
        raise wrong_values(f"{len(rep)} repetition levels and {len(definition)} definition levels")
    return items
