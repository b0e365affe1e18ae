"""Options: sizes as people write them, defaults from machine and environment, delays between attempts."""

from __future__ import annotations

import dataclasses
import os
import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.config import Options, Retries, available_memory, default_options, parse_size
from lancelet.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (0, 0),
        ("1048576", 2**20),
        ("1k", 1024),
        ("1kB", 1000),
        ("2 GiB", 2 * 2**30),
        (" 0.5 MiB ", 2**19),
        ("3tb", 3 * 10**12),
        ("7B", 7),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "1 apple", "1gig", "--3k", "1e400"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="512MiB"):
        parse_size(text)


def test_the_memory_of_this_machine_is_positive_and_no_more_than_it_has() -> None:
    assert 0 < available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_options_do_not_change_and_copies_do() -> None:
    options = Options()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.threads = 3  # type: ignore[misc]
    assert options.with_(threads=3).threads == 3
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize("name", ["memory_budget", "io_concurrency", "threads", "largest_request"])
def test_an_option_that_allows_nothing_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        Options(**{name: 0})


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="memory_budget"):
        Options().with_(memory_bugdet=1)


def test_the_environment_overrides_the_defaults_it_names() -> None:
    options = Options.from_environment({"LANCELET_THREADS": "3", "LANCELET_CACHE_BYTES": "1GiB"})
    assert (options.threads, options.cache_bytes) == (3, 2**30)
    assert options.memory_budget == Options().memory_budget
    with pytest.raises(InvalidInput, match="many"):
        Options.from_environment({"LANCELET_THREADS": "many"})


def test_the_default_options_are_read_once() -> None:
    assert default_options() is default_options()


@given(attempts=st.integers(1, 30), first=st.floats(0.001, 1), longest=st.floats(1, 60), seed=st.integers(0, 9))
def test_delays_grow_within_their_bounds(attempts: int, first: float, longest: float, seed: int) -> None:
    retries = Retries(attempts=attempts, first_delay=first, longest_delay=longest)
    delays = list(retries.delays(random.Random(seed)))
    assert len(delays) == attempts - 1
    for number, delay in enumerate(delays):
        base = min(first * 2.0**number, longest)
        assert base / 2 <= delay <= base
