"""The cache of made objects: made once while there is room, limited by bytes, shared by threads."""

from __future__ import annotations

import threading

from lancelet.storage.objects import ObjectCache


def made(name: str, size: int, log: list[str]) -> tuple[str, int]:
    log.append(name)
    return name, size


def test_an_object_is_made_once_while_the_cache_has_room() -> None:
    cache, log = ObjectCache(10_000), []
    assert [cache.get("a", lambda: made("a", 100, log)) for _ in range(3)] == ["a"] * 3
    assert log == ["a"]
    assert (cache.counts().hits, cache.counts().misses) == (2, 1)


def test_the_object_used_longest_ago_goes_first() -> None:
    cache, log = ObjectCache(2_000), []
    for name in ("a", "b", "a", "c"):
        cache.get(name, lambda name=name: made(name, 500, log))
    assert [cache.holds(name) for name in "abc"] == [True, False, True]
    assert cache.counts().bytes_held <= cache.limit
    assert cache.counts().evictions == 1


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache, log = ObjectCache(1_000), []
    for _ in range(2):
        cache.get("a", lambda: made("a", 2_000, log))
    assert log == ["a", "a"]
    assert cache.counts().bytes_held == 0


def test_threads_that_miss_at_once_leave_one_object_and_its_bytes() -> None:
    cache, log, barrier = ObjectCache(100_000), [], threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for at in range(50):
            assert cache.get(at % 10, lambda at=at: (at % 10, 100)) == at % 10

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.counts().entries == 10
    assert cache.counts().bytes_held == 10 * 500
    assert log == []


def test_clearing_drops_everything() -> None:
    cache = ObjectCache(10_000)
    cache.get("a", lambda: ("a", 1))
    cache.clear()
    assert not cache.holds("a")
    assert cache.counts().bytes_held == 0
