"""FSST decoding in NumPy: strings written as one-byte codes, each of which stands for one to eight bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import InvalidInput
from lancelet.kernels.refuse import other_length
from lancelet.kernels.symbol_table import (
    ESCAPE,
    Bytes,
    Offsets,
    broken_offsets,
    cut_escape,
    no_room,
    read_table,
    too_long,
    unknown_code,
)

__all__ = ["decode", "decode_chunks", "decoded_sizes"]


def decoded_sizes(table: Bytes, data: NDArray[np.uint8], offsets: Offsets) -> NDArray[np.int64]:
    """How many bytes each of the strings ``data[offsets[i]:offsets[i + 1]]`` decodes to.

    A string never grows more than eightfold, so ``decode`` can also be called without this.
    """
    _, lengths, _, encoded = read_table(table)
    positions = _checked(offsets, data.size)
    if not encoded:
        return np.diff(positions)
    codes = data[positions[0] : positions[-1]]
    made, _ = _made(codes, positions - positions[0], lengths)
    ends = np.concatenate([[0], np.cumsum(made)])[positions - positions[0]]
    return np.asarray(np.diff(ends), np.int64)


def decode(
    table: Bytes, data: NDArray[np.uint8], offsets: Offsets, out_offsets: Offsets, out: NDArray[np.uint8]
) -> int:
    """Decode the strings ``data[offsets[i]:offsets[i + 1]]`` one after the other into ``out``.

    ``out_offsets``, as long as ``offsets``, receives where they begin and end in ``out``, from 0 on. Offsets are int32
    or int64. Returns how many bytes were made; bytes of ``out`` after those have no meaning.
    """
    _check_kind(out_offsets, "out_offsets")
    other_length("out_offsets", out_offsets.size, offsets.size)
    symbols, lengths, _, encoded = read_table(table)
    positions = _checked(offsets, data.size)
    codes, local = data[positions[0] : positions[-1]], positions - positions[0]
    if encoded:
        made, escaped = _made(codes, local, lengths)
        ends = np.concatenate([[0], np.cumsum(made)])
        # Row by row: the eight bytes of each code's symbol, of which the first `made` count.
        rows = np.zeros((256, 8), np.uint8)
        rows[: len(symbols)] = symbols
        rows = rows[codes]
        rows[escaped, 0] = codes[escaped]
        plain, local = rows[np.arange(8) < made[:, None]], ends[local]
    else:
        plain = codes
    if plain.size > out.size:
        raise no_room(out.size)
    if plain.size > np.iinfo(out_offsets.dtype).max:
        raise too_long()
    out[: plain.size] = plain
    out_offsets[:] = local
    return int(plain.size)


def decode_chunks(
    table: Bytes,
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    offset_bytes: int,
    out_offsets: Offsets,
    out: NDArray[np.uint8],
) -> int:
    """Decode mini-blocks without taking them apart first.

    Chunk i is ``data[starts[i]:][:sizes[i]]``: ``counts[i] + 1`` offsets of ``offset_bytes`` (4 or 8) bytes each, which
    count from the start of the chunk, and the bytes of the strings. The strings of all chunks go to ``out``, one after
    the other, as with :func:`decode`; ``out_offsets`` has one place more than there are strings.
    """
    other_length("sizes of chunks", sizes.size, starts.size)
    other_length("counts of chunks", counts.size, starts.size)
    if offset_bytes not in (4, 8):
        raise InvalidInput(f"offset_bytes is {offset_bytes}, expected 4 or 8")
    read_table(table)
    _check_kind(out_offsets, "out_offsets")
    at, first = 0, 0
    out_offsets[0] = 0
    for start, size, count in zip(starts.tolist(), sizes.tolist(), counts.tolist(), strict=True):
        if not (0 <= start <= data.size and 0 <= size <= data.size - start):
            raise broken_offsets()
        if not 0 <= count <= out_offsets.size - 1 - first or count >= size // offset_bytes:
            raise broken_offsets()
        chunk = data[start : start + size]
        offsets = chunk[: (count + 1) * offset_bytes].view(f"<u{offset_bytes}").astype(np.int64)
        local = np.empty(count + 1, np.int64)
        made = decode(table, chunk, offsets, local, out[at:])
        if at + made > np.iinfo(out_offsets.dtype).max:
            raise too_long()
        out_offsets[first : first + count + 1] = local + at
        at, first = at + made, first + count
    other_length("out_offsets", out_offsets.size, first + 1)
    return at


def _check_kind(offsets: Offsets, name: str) -> None:
    if offsets.dtype not in (np.int32, np.int64):
        raise InvalidInput(f"{name} hold {offsets.dtype}, expected int32 or int64")
    if not offsets.size:
        raise InvalidInput(f"{name} are empty, expected one more than there are strings")


def _checked(offsets: Offsets, size: int) -> NDArray[np.int64]:
    _check_kind(offsets, "offsets")
    positions = offsets.astype(np.int64)
    if positions[0] < 0 or positions[-1] > size or (np.diff(positions) < 0).any():
        raise broken_offsets()
    return positions


def _made(
    codes: NDArray[np.uint8], ends: NDArray[np.int64], lengths: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The bytes that each code makes, and which are not codes but stand for themselves, after an escape.

    In a row of escape codes within one string, every second one is such a byte; so is what follows a row of odd length.
    """
    starts = np.zeros(codes.size + 1, np.bool_)
    starts[ends] = True
    places = np.arange(codes.size)
    is_escape = codes == ESCAPE
    begins_row = is_escape & (starts[:-1] | ~np.concatenate([[False], is_escape[:-1]]))
    row_start = np.maximum.accumulate(np.where(begins_row, places, -1))
    announces = is_escape & ((places - row_start) % 2 == 0)
    if (announces & starts[1:]).any():
        raise cut_escape()
    escaped = np.concatenate([[False], announces[:-1]])[: codes.size]
    of_code = np.full(256, -1, np.int64)
    of_code[: lengths.size] = lengths
    of_code[ESCAPE] = 0
    made = of_code[codes]
    made[escaped] = 1
    if (made < 0).any():
        raise unknown_code()
    return made, escaped
