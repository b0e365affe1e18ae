"""Symbol tables of FSST: layout, order of symbols, and what they are learned from."""

from __future__ import annotations

import numpy as np
import pytest

from lancelet.kernels import symbol_table
from lancelet.kernels.symbol_table import read_table, sample, symbols_of, write_table


def table_of(symbols: list[bytes], terminator: int = 0) -> bytes:
    values = np.array([int.from_bytes(symbol, "little") for symbol in symbols], np.uint64)
    return write_table(values, np.array([len(symbol) for symbol in symbols], np.uint8), terminator)


def test_a_table_has_header_symbols_lengths_and_zeros() -> None:
    table = table_of([b"a", b"bcd"], terminator=7)
    assert table[:8] == bytes([2, 7, 0, 1]) + b"TSSF"
    assert table[8:24] == b"bcd".ljust(8, b"\0") + b"a".ljust(8, b"\0")
    assert table[24:26] == bytes([3, 1])
    assert table[26:] == bytes(2312 - 26)


def test_symbols_stand_by_length_with_single_bytes_last_and_beginnings_of_longer_ones_first() -> None:
    table = table_of([b"z", b"abcdefgh", b"xy", b"ab", b"abc", b"\0"])
    rows, lengths, _, encoded = read_table(table)
    assert [row[:size].tobytes() for row, size in zip(rows, lengths, strict=True)] == [
        b"ab",
        b"xy",
        b"abc",
        b"abcdefgh",
        b"\0",
        b"z",
    ]
    assert table[2] == 1
    assert encoded


def test_symbols_come_back_as_numbers() -> None:
    values, lengths, terminator, plain = symbols_of(table_of([b"ab", b"c"], terminator=200))
    assert (values, lengths, terminator, plain) == ([0x6261, 0x63], [2, 1], 200, False)
    assert symbols_of(symbol_table.plain_table()) == ([], [], 0, True)


@pytest.mark.parametrize(
    "lengths", [[10] * 100_000, [100] * 20_000, [3_000_000], [0] * 1000 + [2_000_000], [5000] * 300]
)
def test_a_sample_is_bounded_and_comes_from_all_over_the_data(lengths: list[int]) -> None:
    offsets = np.cumsum([0, *lengths])
    # Byte values rise slowly from one end of the data to the other.
    data = (np.arange(offsets[-1]) * 200 // offsets[-1]).astype(np.uint8)
    buffer, ends, terminator = sample(data, offsets)
    assert 20_000 <= buffer.size <= symbol_table.SAMPLE_SIZE
    assert ends[-1] == buffer.size
    assert np.unique(buffer).size > 60
    assert terminator not in buffer


def test_a_small_sample_is_all_there_is() -> None:
    data, offsets = np.frombuffer(b"..abcdef.", np.uint8), np.array([2, 2, 4, 8])
    buffer, ends, _ = sample(data, offsets)
    assert buffer.tobytes() == b"abcdef"
    assert ends.tolist() == [2, 6]
