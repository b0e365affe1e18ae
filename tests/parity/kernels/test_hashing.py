"""XXH64: every variant makes the hashes that others make, whatever the lengths, seeds and places of values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import InvalidInput

few = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
#: Published with the algorithm: value, seed, hash.
KNOWN = [
    (b"", 0, 0xEF46DB3751D8E999),
    (b"", 1, 0xD5AFBA1336A3BE4B),
    (b"a", 0, 0xD24EC4F1A98C6E5B),
    (b"abc", 0, 0x44BC2CF5AD770999),
    (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
]
M = 2**64 - 1
P1, P2, P3, P4, P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


def turned(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & M


def expected(value: bytes, seed: int) -> int:
    """The hash by whole numbers of any size."""

    def rounded(lane: int, word: int) -> int:
        return turned((lane + word * P2) & M, 31) * P1 & M

    if len(value) >= 32:
        lanes = [(seed + P1 + P2) & M, (seed + P2) & M, seed, (seed - P1) & M]
        for place in range(0, len(value) // 32 * 32, 8):
            lanes[place // 8 % 4] = rounded(lanes[place // 8 % 4], int.from_bytes(value[place : place + 8], "little"))
        found = sum(map(turned, lanes, (1, 7, 12, 18))) & M
        for lane in lanes:
            found = ((found ^ rounded(0, lane)) * P1 + P4) & M
    else:
        found = (seed + P5) & M
    found = (found + len(value)) & M
    rest = value[len(value) // 32 * 32 :]
    while len(rest) >= 8:
        found = (turned(found ^ rounded(0, int.from_bytes(rest[:8], "little")), 27) * P1 + P4) & M
        rest = rest[8:]
    if len(rest) >= 4:
        found = (turned(found ^ (int.from_bytes(rest[:4], "little") * P1 & M), 23) * P2 + P3) & M
        rest = rest[4:]
    for byte in rest:
        found = turned(found ^ (byte * P5 & M), 11) * P1 & M
    found = (found ^ (found >> 33)) * P2 & M
    found = (found ^ (found >> 29)) * P3 & M
    return found ^ (found >> 32)


def found(modules, values: list[bytes], seeds: list[int], kind: type = np.int32, before: int = 0) -> list[int]:
    data = np.frombuffer(b"?" * before + b"".join(values), np.uint8)
    offsets = np.cumsum([before, *map(len, values)]).astype(kind)
    hashes = np.array(seeds, np.uint64)
    modules["hashing"].hash_bytes(offsets, data, hashes)
    return hashes.tolist()


@pytest.mark.parametrize(("value", "seed", "hash_"), KNOWN)
def test_known_values_have_their_known_hashes(modules, value, seed, hash_):
    assert found(modules, [value], [seed]) == [hash_] == [expected(value, seed)]


@few
@given(
    values=st.lists(st.one_of(st.binary(max_size=40), st.binary(min_size=60, max_size=140)), max_size=8),
    kind=st.sampled_from([np.int32, np.int64]),
    before=st.integers(0, 3),
    data=st.data(),
)
def test_values_of_all_lengths_are_hashed_alike(modules, values, kind, before, data):
    seeds = data.draw(st.lists(st.integers(0, M), min_size=len(values), max_size=len(values)))
    assert found(modules, values, seeds, kind, before) == list(map(expected, values, seeds))


@few
@given(st.lists(st.tuples(st.integers(0, M), st.integers(0, M)), max_size=8))
def test_a_word_is_hashed_as_its_bytes(modules, pairs):
    hashes = np.array([seed for _, seed in pairs], np.uint64)
    modules["hashing"].hash_words(np.array([word for word, _ in pairs], np.uint64), hashes)
    assert hashes.tolist() == [expected(word.to_bytes(8, "little"), seed) for word, seed in pairs]


@pytest.mark.parametrize("offsets", [[-1, 1, 1], [0, 9, 9], [2, 1, 1], [0, 1]])
def test_what_does_not_fit_together_is_refused_and_leaves_the_seeds(modules, offsets):
    hashes = np.array([5, 6], np.uint64)
    with pytest.raises(InvalidInput):
        modules["hashing"].hash_bytes(np.array(offsets, np.int64), np.zeros(3, np.uint8), hashes)
    assert hashes.tolist() == [5, 6]
    with pytest.raises(InvalidInput):
        modules["hashing"].hash_words(np.zeros(3, np.uint64), hashes)
