"""FSST encoding in Python: learning a symbol table from a sample, and writing strings in its codes."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels.symbol_table import (
    EARLY_ROUNDS,
    ESCAPE,
    IDLE_ROUNDS,
    ROUNDS,
    SINGLE_WEIGHT,
    Bytes,
    Offsets,
    check_encode,
    early_step,
    finish_offsets,
    least_count,
    plain_table,
    sample,
    symbols_of,
    write_table,
)

__all__ = ["encode", "train"]

MOST_SYMBOLS = 255
#: Candidates looked at: more than symbols, because some sets of the index are full.
KEPT = 512

Symbol = tuple[int, int]  # the bytes as a little-endian number, and how many


def train(data: NDArray[np.uint8], offsets: Offsets) -> bytes:
    """Learn a symbol table for the strings ``data[offsets[i]:offsets[i + 1]]``; the same strings give the same table.

    The table says that the strings are stored as they are if encoding would not make them smaller.
    """
    buffer, ends, terminator = sample(data, offsets)
    if not ends.size:
        return plain_table()
    pieces = [bytes(piece) for piece in np.split(buffer, ends[:-1])]
    table: list[Symbol] = []
    best: list[Symbol] = []
    least, idle = buffer.size, 0
    for turn in range(EARLY_ROUNDS + ROUNDS):
        step = early_step(buffer.size) if turn < EARLY_ROUNDS else 1
        counts, size = _survey(_index(table, terminator), pieces[::step], terminator)
        if step == 1:
            idle = 0 if size < least - (least >> 10) else idle + 1
            if size < least:
                best, least = table, size
            if idle == IDLE_ROUNDS:
                break
        table = _choose(counts, least_count(sum(map(len, pieces[::step]))))
    if not best:
        return plain_table()
    values, lengths = zip(*best, strict=True)
    return write_table(np.array(values, np.uint64), np.array(lengths, np.uint8), terminator)


def encode(
    table: Bytes, data: NDArray[np.uint8], offsets: Offsets, out_offsets: Offsets, out: NDArray[np.uint8]
) -> int:
    """Write the strings ``data[offsets[i]:offsets[i + 1]]`` in the codes of ``table``, one after the other, to ``out``.

    ``out_offsets``, as long as ``offsets``, receives where they begin and end in ``out``, from 0 on. ``out`` must have
    room for the worst case, two bytes for each one. Returns how many bytes were written.
    """
    values, lengths, terminator, plain = symbols_of(table)
    positions = np.ascontiguousarray(offsets, np.int64)
    check_encode(positions, data.size, out_offsets, out.size, plain)
    index = _index(list(zip(values, lengths, strict=True)), terminator)
    made, ends = bytearray(), [0]
    for start, end in zip(positions[:-1].tolist(), positions[1:].tolist(), strict=True):
        string = data[start:end].tobytes()
        if plain:
            made += string
        else:
            for code, (value, _) in _parse(index, string):
                made += bytes([ESCAPE, value]) if code == ESCAPE else bytes([code])
        ends.append(len(made))
    out[: len(made)] = np.frombuffer(made, np.uint8)
    finish_offsets(np.array(ends, np.int64), out_offsets)
    return len(made)


def _set_of(value: int) -> int:
    """The set of the compiled kernel's index that a symbol falls into; each has room for two."""
    return ((value & 0xFFFFFF) * 2654435761 & 0xFFFFFFFF) >> 22


def _holds(value: int, length: int, byte: int) -> bool:
    return byte in value.to_bytes(8, "little")[:length]


def _index(table: list[Symbol], terminator: int) -> dict[Symbol, int]:
    """Codes of the symbols, without those that the compiled kernel would not find."""
    index: dict[Symbol, int] = {}
    crowd: Counter[int] = Counter()
    for code, (value, length) in enumerate(table):
        if length > 1 and _holds(value, length, terminator):
            continue
        if length > 2:
            crowd[_set_of(value)] += 1
            if crowd[_set_of(value)] > 2:
                continue
        index[value, length] = code
    return index


def _parse(index: dict[Symbol, int], string: bytes) -> list[tuple[int, Symbol]]:
    """Cut a string into the longest symbols, from left to right; bytes without one come with the escape code."""
    parts: list[tuple[int, Symbol]] = []
    position = 0
    while position < len(string):
        word = string[position : position + 8]
        for length in range(len(word), 0, -1):
            symbol = (int.from_bytes(word[:length], "little"), length)
            code = index.get(symbol, ESCAPE)
            if code != ESCAPE or length == 1:
                parts.append((code, symbol))
                position += length
                break
    return parts


def _survey(index: dict[Symbol, int], pieces: list[bytes], terminator: int) -> tuple[Counter[Symbol], int]:
    """Count the symbols used, and the joins of each with its successor; returns the size of the encoded sample too."""
    counts: Counter[Symbol] = Counter()
    size = 0
    for piece in pieces:
        before: Symbol = (0, 8)
        for code, symbol in _parse(index, piece):
            value, length = symbol
            size += 1 + (code == ESCAPE)
            counts[symbol] += SINGLE_WEIGHT if length == 1 else 1
            for right, right_length in {symbol, (value & 255, 1)}:
                joined_length = min(8, before[1] + right_length)
                joined = (before[0] | right << 8 * before[1]) & ((1 << 64) - 1)
                if before[1] < 8 and not _holds(joined, joined_length, terminator):
                    counts[joined, joined_length] += 1
            before = symbol
    return counts, size


def _choose(counts: Counter[Symbol], least: int) -> list[Symbol]:
    """The best candidates by bytes covered, length, and value; no more of one set than the index has room for."""
    wanted = [(-count * length, -length, value) for (value, length), count in counts.items() if count >= least]
    chosen: list[Symbol] = []
    taken: Counter[int] = Counter()
    for _, negative, value in sorted(wanted)[:KEPT]:
        if len(chosen) == MOST_SYMBOLS:
            break
        if -negative > 2:
            if taken[_set_of(value)] == 2:
                continue
            taken[_set_of(value)] += 1
        chosen.append((value, -negative))
    return chosen
