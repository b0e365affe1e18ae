"""LZ4 blocks: every variant reads what the others write, to the byte, and refuses the same blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels.blocks import worst_lz4
from lancelet.kernels.reference import lz4 as twin

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
# Runs of short patterns, so that matches overlap themselves with every small offset.
repeats = st.tuples(st.binary(min_size=1, max_size=20), st.integers(1, 90)).map(lambda pair: pair[0] * pair[1])
blocks = st.lists(st.lists(st.one_of(st.binary(max_size=40), repeats), max_size=12).map(b"".join), max_size=8)


def laid_out(parts):
    sizes = np.array([len(part) for part in parts], np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), np.cumsum(sizes) - sizes, sizes


def compress(kernel, parts, prefix=False):
    data, starts, sizes = laid_out(parts)
    out = np.empty(sum(worst_lz4(len(part)) + 4 for part in parts), np.uint8)
    places, lengths = np.empty_like(starts), np.empty_like(sizes)
    total = kernel.compress_blocks(data, starts, sizes, out, places, lengths, prefix)
    assert total == lengths.sum()
    return [out[at : at + size].tobytes() for at, size in zip(places, lengths, strict=True)]


def decompress(kernel, packed, expected):
    """Decompress into places with guard bytes around them."""
    data, starts, sizes = laid_out(packed)
    lengths = np.array(expected, np.int64)
    places = np.cumsum(lengths + 5) - lengths
    out = np.full(int((lengths + 5).sum()) + 5, 170, np.uint8)
    inside = np.zeros(out.size, np.bool_)
    for at, size in zip(places, lengths, strict=True):
        inside[at : at + size] = True
    try:
        kernel.decompress_blocks(data, starts, sizes, out, places, lengths)
    finally:
        assert (out[~inside] == 170).all()
    return [out[at : at + size].tobytes() for at, size in zip(places, lengths, strict=True)]


@few
@given(parts=blocks)
def test_each_variant_reads_what_it_and_the_others_write(modules, parts):
    sizes = [len(part) for part in parts]
    for writer in (twin, modules["lz4"]):
        packed = compress(writer, parts)
        assert decompress(modules["lz4"], packed, sizes) == parts
        assert decompress(twin, packed, sizes) == parts


@pytest.mark.parametrize("size", [0, 1, 4, 5, 11, 12, 13, 14, 255, 256, 4096, 65535, 65536, 65537, 200_000])
@pytest.mark.parametrize("period", [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 1000, 65535, 65536, 70_000])
def test_periods_of_any_length_come_back(modules, size, period):
    pattern = np.random.default_rng(period).integers(0, 256, period, np.uint8)
    part = np.resize(pattern, size).tobytes()
    packed = compress(modules["lz4"], [part])
    assert decompress(modules["lz4"], packed, [size]) == [part]
    assert decompress(modules["lz4"], compress(twin, [part]), [size]) == [part]
    if size:
        codec = pa.Codec("lz4_raw")
        assert codec.decompress(packed[0], decompressed_size=size, asbytes=True) == part


def test_compression_is_as_good_as_the_library(modules):
    random = np.random.default_rng(0)
    words = [bytes(random.integers(97, 123, random.integers(3, 9), np.uint8)) for _ in range(500)]
    text = b" ".join(words[i] for i in random.integers(0, 500, 60_000))
    numbers = np.cumsum(random.integers(0, 100, 40_000)).tobytes()
    parts = [mixed[at : at + 4096] for mixed in (text, numbers) for at in range(0, len(mixed), 4096)]
    ours, library = (sum(map(len, compress(kernel, parts))) for kernel in (modules["lz4"], twin))
    assert ours <= library * 1.02


def test_a_prefix_tells_the_uncompressed_size(modules):
    plain = compress(modules["lz4"], [b"abc" * 100, b""])
    prefixed = compress(modules["lz4"], [b"abc" * 100, b""], prefix=True)
    assert prefixed == [(300).to_bytes(4, "little") + plain[0], bytes(4) + plain[1]]


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (b"", 0),
        (b"", 1),
        (b"\x00", 1),
        (b"\x01", 0),
        (b"\x10", 1),
        (b"\x10a", 2),
        (b"\x20a", 2),
        (b"\xf0", 15),
        (b"\xf0\xff\xff", 600),
        (b"\x11a\x01", 20),
        (b"\x10a\x01\x00", 5),
        (b"\x10a\x00\x00\x50abcde", 10),
        (b"\x1fa\x01\x00\xff\xff", 600),
        (b"\x10a\x02\x00\x50abcde", 10),
        (b"\x1fa\x01\x00\x50\x50abcde", 100),
    ],
)
def test_broken_blocks_are_refused(modules, block, size):
    for kernel in (twin, modules["lz4"]):
        with pytest.raises(Corrupt, match="LZ4 block 1 of"):
            decompress(kernel, [b"\x10x", block], [1, size])


@pytest.mark.parametrize("change", [-1, 1])
def test_another_size_than_expected_is_refused(modules, change):
    packed = compress(twin, [b"abcdefgh" * 50])
    with pytest.raises(Corrupt, match="does not decompress to the expected"):
        decompress(modules["lz4"], packed, [400 + change])


@pytest.mark.parametrize(("start", "size"), [(-1, 2), (0, 99), (2, -1), (2**62, 2**62), (8, 3)])
def test_blocks_outside_the_buffer_are_refused(modules, start, size):
    data, out = np.zeros(10, np.uint8), np.zeros(10, np.uint8)
    good, bad = (np.array([0]), np.array([1])), (np.array([start]), np.array([size]))
    for arguments in ((data, *bad, out, *good), (data, *good, out, *bad)):
        with pytest.raises(Corrupt, match="block 0"):
            modules["lz4"].decompress_blocks(*arguments)
    with pytest.raises(Corrupt, match="block 0"):
        modules["lz4"].compress_blocks(
            data, *bad, np.zeros(400, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64)
        )
    with pytest.raises(InvalidInput, match="worst case"):
        modules["lz4"].compress_blocks(data, *good, out, np.zeros(1, np.int64), np.zeros(1, np.int64))
