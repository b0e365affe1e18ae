"""Indexes load page by page into the cache that the process shares: each once, within a limit, shown by sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet.query.scan import read_table
from lancelet.query.watching import Measured, Watch
from lancelet.storage.objects import ObjectCache, process_objects

ROWS, PAGE = 40_000, 1_000


@pytest.fixture
def cache() -> Iterator[ObjectCache]:
    """The process's cache, empty, and afterwards with the limit that it had."""
    found = process_objects()
    limit = found.limit
    found.clear()
    yield found
    found.resize(limit)


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """A table with a BTREE of many pages, and a BITMAP of many values."""
    draw = np.random.default_rng(6)
    table = pa.table({"x": draw.permutation(ROWS), "group": draw.integers(0, 300, ROWS)})
    made = lancelet.write_dataset(table, tmp_path / "t")
    made.create_scalar_index("x", lancelet.indices.IndexConfig("btree", {"zone_size": PAGE}))
    made.create_scalar_index("group", "BITMAP")
    return made


def asked(dataset: Any, text: str) -> tuple[list[int], Measured]:
    """The rows that a filter finds, and what it took."""
    scanner = dataset.scanner(columns=["x"], filter=text)
    watch = Watch(dataset.places)
    found = read_table(scanner.plan, watch.places, watch)
    return found["x"].to_pylist(), watch.measured()


@pytest.mark.parametrize("text", ["x = 17", "x BETWEEN 100 AND 900", "x IN (1, 2000, 39000)", "group = 7", "group < 3"])
def test_pages_of_an_index_are_read_once(cache: ObjectCache, dataset: Any, text: str) -> None:
    first, cold = asked(dataset, text)
    second, warm = asked(dataset, text)
    assert first == second
    assert cold.index_requests > 0
    assert cold.index_bytes < ROWS * 16
    assert warm.index_requests == warm.index_bytes == 0
    assert cache.counts().entries > 0


def test_a_query_loads_the_pages_that_it_needs_and_no_others(cache: ObjectCache, dataset: Any) -> None:
    pages = dataset.stats.index_stats("x_idx")["indices"][0]["num_pages"]
    assert pages == ROWS // PAGE
    cache.clear()
    _, first = asked(dataset, "x = 5")
    # Another value of the same page costs nothing, one of another page just that page.
    assert asked(dataset, "x = 6")[1].index_bytes == 0
    _, other = asked(dataset, f"x = {ROWS - 5}")
    assert 0 < other.index_bytes < first.index_bytes
    assert other.index_bytes < 2 * 16 * PAGE


def test_what_was_dropped_is_read_again(cache: ObjectCache, dataset: Any) -> None:
    expected, first = asked(dataset, "x < 300 AND group != 4")
    cache.clear()
    assert cache.counts().bytes_held == 0
    found, again = asked(dataset, "x < 300 AND group != 4")
    assert found == expected
    assert (again.index_requests, again.index_bytes) == (first.index_requests, first.index_bytes)


def test_a_small_cache_lets_go_of_what_was_used_longest_ago_and_answers_stay_right(
    cache: ObjectCache, dataset: Any
) -> None:
    cache.resize(40_000)
    before = cache.counts().evictions
    for low in range(0, ROWS, 2_500):
        found, _ = asked(dataset, f"x >= {low} AND x < {low + 100}")
        assert sorted(found) == list(range(low, low + 100))
        assert cache.counts().bytes_held <= 40_000
    assert cache.counts().evictions > before
    cache.resize(0)
    assert cache.counts().entries == 0
    assert sorted(asked(dataset, "x < 10")[0]) == list(range(10))


def test_a_session_shows_what_the_cache_holds_of_indexes(cache: ObjectCache, dataset: Any) -> None:
    session = dataset.session()
    cache.clear()
    assert session.size_bytes() == session.index_cache_size_bytes() == 0
    dataset.to_table(columns=["x"], filter="x = 17")
    one = session.index_cache_size_bytes()
    assert 0 < one <= session.size_bytes()
    dataset.prewarm_index("x_idx")
    assert session.index_cache_size_bytes() >= one + 12 * (ROWS - 2 * PAGE)
    assert f"index_cache_size_bytes={session.index_cache_size_bytes()}" in repr(session)
    # A store that maps nothing opens the file for itself; pages are there.
    assert asked(dataset, "x BETWEEN 7000 AND 7100")[1].index_bytes <= 2**16
