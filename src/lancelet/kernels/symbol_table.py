"""The symbol tables of FSST: their bytes, their checks, and what they are learned from.

A table always takes 2312 bytes:

    0..8           header, little-endian: bits 0..8 count of symbols, 8..16 terminator, 16..24 how many two-byte symbols
                   begin a longer one, bit 24 whether the strings are encoded at all, 32..64 the magic 0x46535354
    8..            symbols, 8 bytes each, filled up with zeros: first those of two bytes, then three to eight, then one
    8 + 8 * count  their lengths, one byte each
    8 + 9 * count  zeros

A code is the index of a symbol. Code 255 is an escape: the byte after it stands for itself. A terminator is a byte that
no symbol of two bytes or more holds; only encoding cares. If bit 24 is clear, the strings are stored as they are.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels.refuse import other_length

__all__ = [
    "EARLY_ROUNDS",
    "ESCAPE",
    "IDLE_ROUNDS",
    "ROUNDS",
    "SINGLE_WEIGHT",
    "Bytes",
    "Offsets",
    "Sample",
    "broken_offsets",
    "check_encode",
    "check_offsets",
    "cut_escape",
    "early_step",
    "finish_offsets",
    "least_count",
    "no_room",
    "plain_table",
    "read_table",
    "sample",
    "symbols_of",
    "too_long",
    "unknown_code",
    "write_table",
]

#: Positions in a buffer: each string begins where the one before it ends.
Offsets: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
Bytes: TypeAlias = bytes | memoryview | NDArray[np.uint8]
#: Pieces of strings one after the other, where they end, and the rarest byte among them.
Sample: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64], int]

TABLE_SIZE = 2312
MAGIC = 0x46535354
ESCAPE = 255
#: Bytes that a table is learned from, and the longest stretch of one string among them.
SAMPLE_SIZE, PIECE_SIZE = 32768, 512
#: How often a table is made from what the one before it did to some pieces of the sample, see ``early_step``, ...
EARLY_ROUNDS = 5
#: ... and then, at most, from what it did to all of it.
ROUNDS = 8
#: Learning ends after so many rounds over the whole sample that gain less than a thousandth.
IDLE_ROUNDS = 3
#: Symbols of one byte count so many times over, because without them the byte needs an escape.
SINGLE_WEIGHT = 4


def read_table(table: Bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8], int, bool]:
    """Check a symbol table; returns the symbols, one row of eight bytes each, their lengths, terminator and bit 24.

    >>> symbols, lengths, terminator, encoded = read_table((0x46535354 << 32).to_bytes(2312, "little"))
    >>> len(symbols), encoded
    (0, False)
    """
    raw = np.frombuffer(table, np.uint8)
    if raw.size != TABLE_SIZE:
        raise Corrupt(f"FSST symbol table has {raw.size} bytes, expected {TABLE_SIZE}")
    header = int.from_bytes(raw[:8].tobytes(), "little")
    if header >> 32 != MAGIC:
        raise Corrupt(f"FSST symbol table begins with magic {header >> 32:#x}, expected {MAGIC:#x}")
    count = header & 255
    symbols, lengths = raw[8 : 8 + 8 * count].reshape(count, 8), raw[8 + 8 * count : 8 + 9 * count]
    wrong = np.flatnonzero((lengths < 1) | (lengths > 8))
    if wrong.size:
        raise Corrupt(f"FSST symbol {wrong[0]} is {lengths[wrong[0]]} bytes long, expected 1 to 8")
    return symbols, lengths, header >> 8 & 255, bool(header >> 24 & 1)


def sample(data: NDArray[np.uint8], offsets: Offsets) -> Sample:
    """Pieces of strings from all over the data, the places where they end, and the rarest byte among them."""
    positions = np.ascontiguousarray(offsets, np.int64)
    check_offsets(positions, data.size)
    total = int(positions[-1] - positions[0])
    if total <= SAMPLE_SIZE:
        starts, ends = positions[:-1], positions[1:]
    else:
        # Places at equal distances, moved by a golden-ratio sequence so that no period of the data matches theirs.
        mean = min(PIECE_SIZE, max(1, total // (positions.size - 1)))
        count = SAMPLE_SIZE // mean
        jitter = (np.arange(count) * 0.6180339887498949) % 1.0
        places = positions[0] + ((np.arange(count) + jitter) * (total / count)).astype(np.int64)
        strings = np.searchsorted(positions, places, "right") - 1
        starts, ends = positions[strings], positions[strings + 1]
        starts = np.where(ends - starts > PIECE_SIZE, np.minimum(places, ends - PIECE_SIZE), starts)
        starts, first = np.unique(starts, return_index=True)
        ends = np.minimum(ends[first], starts + PIECE_SIZE)
    kept = (ends > starts) & (np.cumsum(ends - starts) <= SAMPLE_SIZE)
    starts, sizes = starts[kept], (ends - starts)[kept]
    stops = np.cumsum(sizes)
    taken = np.repeat(starts - (stops - sizes), sizes) + np.arange(sizes.sum())
    buffer = np.ascontiguousarray(data[taken])
    return buffer, stops, int(np.argmin(np.bincount(buffer, minlength=256)))


def plain_table() -> bytes:
    """The table that says: the strings are stored as they are."""
    return (MAGIC << 32).to_bytes(TABLE_SIZE, "little")


def write_table(values: NDArray[np.uint64], lengths: NDArray[np.uint8], terminator: int) -> bytes:
    """The bytes of a table; brings the symbols into the order that the format has them in."""
    extended = np.isin(values, values[lengths > 2] & np.uint64(0xFFFF)) & (lengths == 2)
    order = np.lexsort((values, ~extended, (lengths.astype(np.int64) - 2) % 8))
    header = MAGIC << 32 | 1 << 24 | (int(extended.sum()) & 255) << 16 | terminator << 8 | len(values)
    body = values[order].astype("<u8").tobytes() + lengths[order].tobytes()
    return (header.to_bytes(8, "little") + body).ljust(TABLE_SIZE, b"\0")


def symbols_of(table: Bytes) -> tuple[list[int], list[int], int, bool]:
    """The symbols as little-endian numbers, their lengths, the terminator, and whether strings are stored unencoded."""
    rows, lengths, terminator, encoded = read_table(table)
    values = [int.from_bytes(row[:size].tobytes(), "little") for row, size in zip(rows, lengths, strict=True)]
    return values, lengths.tolist(), terminator, not encoded


def check_offsets(positions: NDArray[np.int64], size: int) -> None:
    """Refuse offsets that do not cut strings out of ``size`` bytes."""
    if not positions.size:
        raise InvalidInput("offsets are empty, expected one more than there are strings")
    if positions[0] < 0 or positions[-1] > size or (positions[1:] < positions[:-1]).any():
        raise InvalidInput(f"offsets fall, or lead past the end of their {size} bytes")


def check_encode(positions: NDArray[np.int64], size: int, out_offsets: Offsets, room: int, plain: bool) -> None:
    """Refuse arguments of ``encode`` that do not fit together."""
    check_offsets(np.asarray(positions), size)
    other_length("out_offsets", out_offsets.size, len(positions))
    needed = int(positions[-1] - positions[0]) * (1 if plain else 2)
    if room < needed:
        raise InvalidInput(f"out has room for {room} bytes, the worst case needs {needed}")
    if out_offsets.dtype not in (np.int32, np.int64) or needed > np.iinfo(out_offsets.dtype).max:
        raise InvalidInput(f"out_offsets hold {out_offsets.dtype}, too small for up to {needed} bytes")


def finish_offsets(ends: NDArray[np.int64], out_offsets: Offsets) -> None:
    """Bring the ends into the caller's array, unless they were written there already."""
    if out_offsets.dtype != np.int64 or not np.shares_memory(ends, out_offsets):
        out_offsets[:] = ends


def least_count(sample_size: int) -> int:
    """How often a candidate must be seen in a sample to become a symbol."""
    return max(2, sample_size // 4096)


def early_step(sample_size: int) -> int:
    """Of how many pieces one is looked at while the table is rough: of a small sample nothing can be spared."""
    return 4 if 2 * sample_size > SAMPLE_SIZE else 1


def unknown_code() -> Corrupt:
    """A code without a symbol."""
    return Corrupt("FSST data use a code that the symbol table does not have")


def no_room(room: int) -> Corrupt:
    """More bytes than there should be."""
    return Corrupt(f"FSST strings decode to more than the expected {room} bytes")


def cut_escape() -> Corrupt:
    """An escape as the last code of a string."""
    return Corrupt("an FSST string ends between an escape code and the byte it announces")


def broken_offsets() -> Corrupt:
    """Offsets that do not cut strings out of the data."""
    return Corrupt("offsets of FSST strings fall, or lead past the end of their data")


def too_long() -> Corrupt:
    """More bytes than int32 offsets can tell."""
    return Corrupt("FSST strings decode to more bytes than 32-bit offsets can tell")
