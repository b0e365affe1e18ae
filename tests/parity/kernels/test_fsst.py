"""FSST: every variant learns the same table, brings strings back, and refuses the same tables and data."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels import symbol_table
from lancelet.kernels.reference import fsst as twin
from lancelet.kernels.reference import fsst_encode as twin_encode

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
strings = st.lists(
    st.one_of(
        st.binary(max_size=40), st.lists(st.sampled_from([b"http://", b"www.", b"\0", b"abcdefghij"])).map(b"".join)
    ),
    max_size=60,
)


def flat(values, dtype=np.int64):
    """Strings as one array of bytes and their offsets."""
    offsets = np.cumsum([0, *map(len, values)], dtype=dtype)
    return np.frombuffer(b"".join(values), np.uint8), offsets


def random_table(seed):
    """A table of 200 symbols, many with a beginning in common, and the code 200 and above unknown."""
    random = np.random.default_rng(seed)
    words = {bytes(random.integers(97, 100, random.integers(1, 9), np.uint8)) for _ in range(400)}
    chosen = sorted(words)[:200]
    values = np.array([int.from_bytes(word, "little") for word in chosen], np.uint64)
    return symbol_table.write_table(values, np.array([len(word) for word in chosen], np.uint8), 0)


def through(modules, table, values, dtype=np.int64):
    """Encode and decode; returns the strings and how many bytes they took in between."""
    data, offsets = flat(values, dtype)
    encoded, ends = np.full(2 * data.size, 7, np.uint8), np.empty_like(offsets)
    size = modules["fsst_encode"].encode(table, data, offsets, ends, encoded)
    sizes = modules["fsst"].decoded_sizes(table, encoded[:size], ends)
    out, out_offsets = np.empty(int(sizes.sum()), np.uint8), np.empty_like(offsets)
    made = modules["fsst"].decode(table, encoded[:size], ends, out_offsets, out)
    assert made == out.size
    assert np.array_equal(np.diff(out_offsets), sizes)
    return [out[a:b].tobytes() for a, b in pairwise(out_offsets)], size


@cache
def words(count, seed=0):
    random = np.random.default_rng(seed)
    stems = [bytes(random.integers(97, 123, random.integers(3, 9), np.uint8)) for _ in range(90)]
    return [b" ".join(stems[i] for i in random.integers(0, 90, random.integers(0, 9))) for _ in range(count)]


@cache
def learned(count):
    """The table that the twin learns from so many lines of words."""
    return twin_encode.train(*flat(words(count)))


@few
@given(values=strings, seed=st.integers(0, 5), dtype=st.sampled_from([np.int32, np.int64]))
def test_strings_come_back_whatever_the_table(modules, values, seed, dtype):
    assert through(modules, random_table(seed), values, dtype)[0] == values


@few
@given(values=strings)
def test_all_variants_encode_alike_and_learn_the_same_table(modules, values):
    data, offsets = flat(values)
    table = twin_encode.train(data, offsets)
    assert modules["fsst_encode"].train(data, offsets) == table
    for tried in (table, random_table(1)):
        made = []
        for kernel in (twin_encode, modules["fsst_encode"]):
            out, ends = np.zeros(2 * data.size, np.uint8), np.zeros_like(offsets)
            size = kernel.encode(tried, data, offsets, ends, out)
            made.append((out[:size].tobytes(), ends.tolist()))
        assert made[0] == made[1]
    assert through(modules, table, values)[0] == values


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_many_words_become_less_than_half_as_long(modules, dtype):
    values = words(2000)
    data, offsets = flat(values, dtype)
    table = modules["fsst_encode"].train(data, offsets)
    assert table == learned(2000)
    back, size = through(modules, table, values, dtype)
    assert back == values
    assert size < data.size * 0.45


def numbered(text, count):
    """Strings in which few symbols gain much and many gain a little."""
    return [text.format(number, number * 7919 % 100_000).encode() for number in range(count)]


@pytest.mark.parametrize(
    "values",
    [
        numbered("item {}", 1000),
        numbered("https://shop.example/{1}/item-{0}?page={1}", 200),
        numbered("https://shop.example/{1}/item-{0}?page={1}", 900),
        [bytes(np.random.default_rng(seed).integers(97, 101, 40, np.uint8)) for seed in range(500)],
        [b"ab" * 300, b"abc" * 4000],
    ],
    ids=["small", "medium", "sampled", "four letters", "two strings"],
)
def test_all_variants_learn_the_same_table_of_many_strings(modules, values):
    data, offsets = flat(values)
    assert modules["fsst_encode"].train(data, offsets) == twin_encode.train(data, offsets)


def test_long_strings_are_sampled_in_pieces(modules):
    values = [b" ".join(words(3000)), b"", b"tail"]
    data, offsets = flat(values)
    back, size = through(modules, modules["fsst_encode"].train(data, offsets), values)
    assert back == values
    assert size < data.size * 0.5


def test_bytes_without_pattern_are_stored_as_they_are(modules):
    values = [bytes(np.random.default_rng(i).integers(0, 256, 100, np.uint8)) for i in range(500)]
    table = modules["fsst_encode"].train(*flat(values))
    assert table == symbol_table.plain_table()
    assert through(modules, table, values) == (values, 50_000)


@pytest.mark.parametrize("offset_bytes", [4, 8])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_chunks_decode_as_their_strings_do(modules, offset_bytes, dtype):
    values = words(1000)
    table = learned(1000)
    data, starts, sizes, counts = bytearray(b"x" * 5), [], [], []
    for first, last in ((0, 400), (400, 400), (400, 1000)):
        plain, offsets = flat(values[first:last])
        out, ends = np.empty(2 * plain.size, np.uint8), np.empty_like(offsets)
        size = twin_encode.encode(table, plain, offsets, ends, out)
        chunk = (ends + ends.size * offset_bytes).astype(f"<u{offset_bytes}").tobytes() + out[:size].tobytes() + b"pad"
        starts.append(len(data))
        sizes.append(len(chunk))
        counts.append(last - first)
        data += chunk
    plain, offsets = flat(values, dtype)
    out, out_offsets = np.empty(plain.size, np.uint8), np.empty_like(offsets)
    places = [np.array(column, np.int64) for column in (starts, sizes, counts)]
    source = np.frombuffer(bytes(data), np.uint8)
    assert modules["fsst"].decode_chunks(table, source, *places, offset_bytes, out_offsets, out) == plain.size
    assert np.array_equal(out, plain)
    assert np.array_equal(out_offsets, offsets)
    places[1][2] += 1
    with pytest.raises(Corrupt, match="past the end"):
        modules["fsst"].decode_chunks(table, source, *places, offset_bytes, out_offsets, out)


def changed(table, at, value):
    return table[:at] + bytes([value]) + table[at + 1 :]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"", "0 bytes, expected 2312"),
        (bytes(2311), "2311 bytes"),
        (bytes(2312), "magic"),
        (changed(random_table(0), 8 + 8 * 200 + 3, 9), "symbol 3 is 9 bytes long"),
        (changed(random_table(0), 8 + 8 * 200, 0), "symbol 0 is 0 bytes long"),
    ],
)
def test_a_broken_table_is_refused(modules, table, message):
    data, offsets = flat([b"a"])
    for kernel in (twin, modules["fsst"]):
        with pytest.raises(Corrupt, match=message):
            kernel.decode(table, data, offsets, offsets.copy(), np.empty(9, np.uint8))


@pytest.mark.parametrize(
    ("codes", "offsets", "message"),
    [
        ([250], [0, 1], "does not have"),
        ([0] * 20 + [250] + [0] * 20, [0, 41], "does not have"),
        ([0, 255], [0, 2], "between an escape"),
        ([0, 255, 65], [0, 2, 3], "between an escape"),
        ([0, 0], [0, 3], "past the end"),
        ([0, 0], [-1, 1], "past the end"),
        ([0, 0], [0, 2, 1, 2], "fall"),
        ([0, 0], [2, 0], "fall"),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_broken_strings_are_refused(modules, codes, offsets, message, dtype):
    data, places = np.array(codes, np.uint8), np.array(offsets, dtype)
    kernel, out = modules["fsst"], np.empty(1000, np.uint8)
    with pytest.raises(Corrupt, match=message):
        kernel.decode(random_table(0), data, places, places.copy(), out)
    with pytest.raises(Corrupt, match=message):
        kernel.decoded_sizes(random_table(0), data, places)


def test_nothing_is_written_past_the_room_given(modules):
    values = words(200)
    data, offsets = flat(values)
    table = learned(1000)
    encoded, ends = np.empty(2 * data.size, np.uint8), np.empty_like(offsets)
    size = twin_encode.encode(table, data, offsets, ends, encoded)
    for room in (0, 1, 7, data.size - 1, data.size):
        out = np.full(room + 64, 170, np.uint8)
        if room < data.size:
            with pytest.raises(Corrupt, match=f"more than the expected {room} bytes"):
                modules["fsst"].decode(table, encoded[:size], ends, offsets.copy(), out[:room])
        else:
            modules["fsst"].decode(table, encoded[:size], ends, offsets.copy(), out[:room])
        assert (out[room:] == 170).all()


def test_arguments_that_do_not_fit_are_refused(modules):
    data, offsets = flat([b"abc", b"def"])
    table, out = random_table(0), np.empty(12, np.uint8)
    with pytest.raises(InvalidInput, match="worst case needs 12"):
        modules["fsst_encode"].encode(table, data, offsets, offsets.copy(), out[:11])
    with pytest.raises(InvalidInput, match="out_offsets"):
        modules["fsst_encode"].encode(table, data, offsets, offsets[1:].copy(), out)
    with pytest.raises(InvalidInput, match="past the end"):
        modules["fsst_encode"].encode(table, data, offsets + 1, offsets.copy(), out)
    with pytest.raises(InvalidInput, match="int16"):
        modules["fsst"].decode(table, data, offsets.astype(np.int16), offsets.copy(), out)
    with pytest.raises(InvalidInput, match="empty"):
        modules["fsst"].decode(table, data, offsets[:0], offsets[:0], out)
