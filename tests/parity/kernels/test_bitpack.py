"""Bit packing: every variant packs and unpacks what a slow, obvious model says, and refuses the same input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels.reference import bitpack as twin

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TYPES = [np.uint8, np.uint16, np.uint32, np.uint64]
WIDTHS = [(dtype, width) for dtype in TYPES for width in range(8 * np.dtype(dtype).itemsize + 1)]


def random_values(dtype, width, count, seed=0):
    random = np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)
    return (random & np.uint64(2**width - 1)).astype(dtype)


def model_of_block(values: NDArray[np.unsignedinteger], width: int) -> bytes:
    """One block packed value by value with Python integers."""
    bits = 8 * values.itemsize
    lanes = 1024 // bits
    columns = [0] * lanes
    for lane in range(lanes):
        for row in range(bits):
            mirrored = int(f"{row // 8:03b}"[::-1], 2)
            columns[lane] |= int(values[128 * (row % 8) + 16 * mirrored + lane]) << (row * width)
    words = [(columns[lane] >> (bits * line)) & (2**bits - 1) for line in range(width) for lane in range(lanes)]
    return b"".join(word.to_bytes(values.itemsize, "little") for word in words)


@pytest.mark.parametrize(("dtype", "width"), [(d, w) for d, w in WIDTHS if w in (0, 1, 3, 7, 8, 13, 31, 32, 33, 64)])
def test_a_block_is_packed_as_the_model_says(modules, dtype, width):
    values = random_values(dtype, width, 1024)
    out = np.zeros(128 * width, np.uint8)
    assert modules["bitpack"].pack_blocks(values, np.array([width], np.uint8), out) == 128 * width
    assert out.tobytes() == model_of_block(values, width)


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
def test_blocks_of_every_width_come_back(modules, dtype, width):
    kernel, size = modules["bitpack"], np.dtype(dtype).itemsize
    values = random_values(dtype, width, 2500)
    counts, widths = np.array([1024, 1024, 452]), np.full(3, width, np.uint8)
    for shift in (0, 1):
        packed = np.zeros(3 * 128 * width + shift, np.uint8)[shift:]
        assert kernel.pack_blocks(values, widths, packed) == len(packed)
        out = np.zeros_like(values)
        kernel.unpack_blocks(packed, np.arange(3) * 128 * width, widths, counts, out)
        assert np.array_equal(out, values)
        inline, starts = np.zeros(3 * (128 * width + size) + shift, np.uint8)[shift:], np.zeros(3, np.int64)
        written = kernel.pack_inline(values, inline, starts)
        out[:] = 0
        kernel.unpack_inline(inline, starts, np.diff(starts, append=written), counts, out)
        assert np.array_equal(out, values)


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
def test_single_values_equal_those_of_the_whole_block(modules, dtype, width):
    kernel = modules["bitpack"]
    values = random_values(dtype, width, 2048)
    packed = np.zeros(2 * 128 * width, np.uint8)
    widths, starts = np.full(2, width, np.uint8), np.arange(2) * 128 * width
    kernel.pack_blocks(values, widths, packed)
    order = np.random.default_rng(1).permutation(2048)
    out = np.zeros_like(values)
    kernel.unpack_at(packed, starts, widths, order // 1024, order % 1024, out)
    assert np.array_equal(out, values[order])
    inline = np.zeros(2 * (128 * width + values.itemsize), np.uint8)
    written = kernel.pack_inline(values, inline, starts)
    out[:] = 0
    kernel.unpack_inline_at(inline, starts, np.diff(starts, append=written), order // 1024, order % 1024, out)
    assert np.array_equal(out, values[order])


@pytest.mark.parametrize("dtype", TYPES)
def test_widths_are_the_least_that_hold_a_block(modules, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    values = np.zeros(1024 * bits + 1, dtype)
    values[np.arange(bits) * 1024 + np.arange(bits)] = 2 ** np.arange(bits, dtype=np.uint64)
    assert modules["bitpack"].block_widths(values).tolist() == [*range(1, bits + 1), 0]


def test_no_values_make_no_blocks(modules):
    kernel, none, places = modules["bitpack"], np.zeros(0, np.uint8), np.zeros(0, np.int64)
    assert kernel.block_widths(np.zeros(0, np.uint64)).tolist() == []
    assert kernel.pack_blocks(np.zeros(0, np.uint64), none, none) == 0
    assert kernel.pack_inline(np.zeros(0, np.uint64), none, places) == 0
    kernel.unpack_blocks(none, places, none, places, np.zeros(0, np.uint64))
    kernel.unpack_inline(none, places, places, places, np.zeros(0, np.uint64))
    kernel.unpack_at(none, places, none, places, places, np.zeros(0, np.uint64))


def test_data_may_be_read_only(modules):
    data = np.frombuffer(bytes(128), np.uint8)
    out = np.ones(1024, np.uint64)
    modules["bitpack"].unpack_blocks(data, np.array([0]), np.array([1], np.uint8), np.array([1024]), out)
    assert not out.any()


LARGE = 2**63 - 1


@pytest.mark.parametrize(
    ("start", "width", "count", "message"),
    [
        (0, 3, 1024, None),
        (1, 3, 1024, "block 0 is bytes 1..385 of a buffer of 384 bytes"),
        (-1, 3, 1024, "block 0 is bytes -1..383 of a buffer of 384 bytes"),
        (LARGE, 3, 1024, f"block 0 is bytes {LARGE}..{LARGE + 384} of a buffer of 384 bytes"),
        (0, 4, 1024, "block 0 is bytes 0..512 of a buffer of 384 bytes"),
        (0, 33, 1024, "block 0 is 33 bits wide, expected at most 32"),
        (0, 3, 1025, "block 0 counts 1025 values, expected 0 to 1024"),
        (0, 3, -1, "block 0 counts -1 values, expected 0 to 1024"),
        (0, 3, 5, "the blocks' counts come to 5, expected 1024"),
    ],
)
def test_blocks_that_break_the_bounds_are_refused(modules, start, width, count, message):
    call = modules["bitpack"].unpack_blocks, np.zeros(384, np.uint8), np.array([start]), np.array([width], np.uint8)
    check(*call, np.array([count]), np.zeros(1024, np.uint32), message=message)


@pytest.mark.parametrize(
    ("header", "start", "size", "message"),
    [
        (3, 0, 388, None),
        (2, 0, 388, None),
        (0, 0, 4, None),
        (4, 0, 388, "block 0 has 388 bytes, expected 516 for 4 bits a value"),
        (40, 0, 388, "block 0 is 40 bits wide, expected at most 32"),
        (2**32 - 1, 0, 388, "block 0 is 4294967295 bits wide, expected at most 32"),
        (3, 0, 3, "block 0 has 3 bytes, expected a header of 4 bytes at least"),
        (3, 0, -5, "block 0 has -5 bytes, expected a header of 4 bytes at least"),
        (3, 1, 388, "block 0 is bytes 1..389 of a buffer of 388 bytes"),
        (3, LARGE, LARGE, f"block 0 is bytes {LARGE}..{2 * LARGE} of a buffer of 388 bytes"),
    ],
)
def test_inline_blocks_that_break_the_bounds_are_refused(modules, header, start, size, message):
    data = np.zeros(388, np.uint8)
    data[:4] = np.array([header], np.uint32).view(np.uint8)
    places = data, np.array([start]), np.array([size])
    check(modules["bitpack"].unpack_inline, *places, np.array([1024]), np.zeros(1024, np.uint32), message=message)
    at = np.array([0]), np.array([7]), np.zeros(1, np.uint32)
    check(modules["bitpack"].unpack_inline_at, *places, *at, message=message)


@pytest.mark.parametrize(
    ("block", "index", "message"),
    [
        (0, 1023, None),
        (1, 0, "lookup 0 names block 1, expected 0 to 0"),
        (-1, 0, "lookup 0 names block -1, expected 0 to 0"),
        (0, 1024, "lookup 0 asks for value 1024 of block 0, which has 1024"),
        (0, -1, "lookup 0 asks for value -1 of block 0, which has 1024"),
    ],
)
def test_lookups_outside_the_blocks_are_refused(modules, block, index, message):
    data, at = np.zeros(128, np.uint8), (np.array([block]), np.array([index]), np.zeros(1, np.uint64))
    check(modules["bitpack"].unpack_at, data, np.array([0]), np.array([1], np.uint8), *at, message=message)


def check(kernel, *arguments, message):
    if message is None:
        kernel(*arguments)
        return
    with pytest.raises(Corrupt) as caught:
        kernel(*arguments)
    assert str(caught.value) == message


def test_packing_refuses_what_would_lose_bits_or_overrun(modules):
    kernel, values = modules["bitpack"], np.full(1024, 9, np.uint16)
    with pytest.raises(InvalidInput, match="values of block 0 need 4 bits, which is more than the 3 given"):
        kernel.pack_blocks(values, np.array([3], np.uint8), np.zeros(9999, np.uint8))
    with pytest.raises(InvalidInput, match="block 0 is to be 17 bits wide"):
        kernel.pack_blocks(values, np.array([17], np.uint8), np.zeros(9999, np.uint8))
    with pytest.raises(InvalidInput, match="blocks up to 0 need 512 bytes, the output has 511"):
        kernel.pack_blocks(values, np.array([4], np.uint8), np.zeros(511, np.uint8))
    with pytest.raises(InvalidInput, match="blocks up to 0 need 514 bytes, the output has 513"):
        kernel.pack_inline(values, np.zeros(513, np.uint8), np.zeros(1, np.int64))
    with pytest.raises(InvalidInput, match="widths has 2 entries, expected 1"):
        kernel.pack_blocks(values, np.zeros(2, np.uint8), np.zeros(511, np.uint8))


@few
@given(
    st.sampled_from(TYPES),
    st.lists(
        st.tuples(st.integers(-2, 700), st.integers(0, 66), st.integers(-2, 800), st.integers(-1, 1030)), max_size=4
    ),
    st.binary(max_size=700),
    st.integers(0, 40),
)
def test_random_bytes_give_the_twins_result_or_its_error(modules, dtype, blocks, data, wrong):
    starts, widths, sizes, counts = (
        np.array([block[k] for block in blocks], np.uint8 if k == 1 else np.int64) for k in range(4)
    )
    total = max(0, int(counts.sum())) + (wrong == 40)
    octets = np.frombuffer(data, np.uint8)
    lookups = np.arange(len(blocks) + (wrong == 39)), np.full(len(blocks) + (wrong == 39), wrong * 27)
    for name, third, rest in (
        ("unpack_blocks", widths, (counts,)),
        ("unpack_inline", sizes, (counts,)),
        ("unpack_at", widths, lookups),
        ("unpack_inline_at", sizes, lookups),
    ):
        length = total if len(rest) == 1 else len(lookups[0])
        results = []
        for kernel in (modules["bitpack"], twin):
            out = np.zeros(length, dtype)
            try:
                getattr(kernel, name)(octets, starts, third, *rest, out)
                results.append(out.tolist())
            except Corrupt as error:
                results.append(str(error))
        assert results[0] == results[1]
