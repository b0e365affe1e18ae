"""Trigrams: every variant finds the same ones, each once, and puts rows into the same groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import LanceletError
from lancelet.kernels.reference import trigrams as twin

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
#: A table of three characters: one that goes, one that is a capital, one that is two letters.
TABLE = {"À": "A", "é": "e", "ß": "ss", "日": " "}


def found(kernel, texts):
    stored = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, stored)]).astype(np.int64)
    characters = np.array(sorted(map(ord, TABLE)), np.uint32)
    folded = [TABLE[chr(one)].encode() for one in characters.tolist()]
    ends = np.cumsum([len(one) for one in folded]).astype(np.int64)
    letters = np.frombuffer(b"".join(folded), np.uint8)
    room = 5 * int(offsets[-1])
    numbers, rows = np.zeros(room, np.uint32), np.zeros(room, np.uint32)
    seen = np.full(twin.LARGEST, -1, np.int64)
    data = np.frombuffer(b"".join(stored), np.uint8)
    count = kernel.trigrams(data, offsets, characters, ends, letters, seen, numbers, rows)
    return list(zip(rows[:count].tolist(), numbers[:count].tolist(), strict=True))


@pytest.mark.parametrize(
    "texts",
    [[], [""], ["ab"], ["abcabc", "ABC"], ["straße é日é"], ["a\x00bcd", "xyz"], ["1-234-56"], ["\U0001f600abc"]],
)
def test_all_variants_find_the_same_trigrams(modules, texts):
    assert found(modules["trigrams"], texts) == found(twin, texts)


@few
@given(st.lists(st.text(st.sampled_from("abzAZ09 -éÀß日漢\U0001f600"), max_size=30), max_size=8))
def test_all_variants_find_the_same_trigrams_of_any_text(modules, texts):
    assert found(modules["trigrams"], texts) == found(twin, texts)


@few
@given(st.lists(st.integers(0, 40), max_size=60))
def test_rows_are_grouped_in_the_order_in_which_they_come(modules, listed):
    numbers = np.array(listed, np.uint32)
    counts = np.bincount(numbers, minlength=twin.LARGEST)
    places, grouped = np.cumsum(counts) - counts, np.zeros(len(numbers), np.uint32)
    modules["trigrams"].group_by_number(numbers, np.arange(len(numbers), dtype=np.uint32), places, grouped)
    assert grouped.tolist() == sorted(range(len(listed)), key=lambda at: (listed[at], at))
    assert places.tolist() == np.cumsum(counts).tolist()


def test_groups_that_do_not_fit_are_refused(modules):
    numbers, rows = np.array([3], np.uint32), np.array([0], np.uint32)
    for bad, places in (
        (numbers, np.full(twin.LARGEST, 1)),
        (np.array([2**32 - 1], np.uint32), np.zeros(twin.LARGEST)),
    ):
        with pytest.raises(LanceletError):
            modules["trigrams"].group_by_number(bad, rows, places.astype(np.int64), np.zeros(1, np.uint32))


def test_too_little_room_and_wrong_offsets_are_refused(modules):
    nothing = np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    data, seen = np.frombuffer(b"abcd", np.uint8), np.full(twin.LARGEST, -1, np.int64)
    for offsets, room in ((np.array([0, 4]), 3), (np.array([0, 9]), 90), (np.array([3, 1]), 90)):
        with pytest.raises(LanceletError):
            modules["trigrams"].trigrams(
                data, offsets.astype(np.int64), *nothing, seen, np.zeros(room, np.uint32), np.zeros(room, np.uint32)
            )
