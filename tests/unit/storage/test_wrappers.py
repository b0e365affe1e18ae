"""Each wrapper adds its one habit."""

from __future__ import annotations

import pickle
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from lancelet.config import Options
from lancelet.errors import AlreadyExists, InvalidInput, NotFound
from lancelet.storage.caching import ByteCache, CachingStore, process_cache
from lancelet.storage.counting import CountingStore, Counts
from lancelet.storage.delegating import Delegating
from lancelet.storage.memory import MemoryStore
from lancelet.storage.throttling import ThrottlingStore


@pytest.fixture
def memory() -> MemoryStore:
    return MemoryStore(f"memory://{uuid.uuid4()}")


def test_counts_are_those_a_remote_store_would_see(memory: MemoryStore) -> None:
    store = CountingStore(memory, options=Options(coalesce_gap=10, largest_request=100))
    with store.writer("a") as writer:
        writer.write(bytes(600))
        writer.write(bytes(400))
    store.read("a", [(0, 10), (15, 10), (500, 150)])
    store.read("a", [])
    store.read_tail("a", 64)
    store.read_all("a")
    store.size("a")
    store.copy("a", "b")
    store.delete(["b"])
    list(store.list_from(""))
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a", b"xyz")
    with pytest.raises(NotFound):
        store.read_all("missing")
    assert store.snapshot() == Counts(
        requests={
            "writer": 1,
            "read": 3,
            "read_tail": 1,
            "read_all": 2,
            "size": 1,
            "copy": 1,
            "delete": 1,
            "list": 1,
            "put_if_absent": 1,
        },
        ranges=3,
        bytes_read=170 + 64 + 1000,
        bytes_written=1003,
    )
    assert store.snapshot().total == 12


def test_counts_start_again_and_copies_start_at_zero(memory: MemoryStore) -> None:
    store = CountingStore(memory)
    store.put("a", b"1")
    assert pickle.loads(pickle.dumps(store)).snapshot() == Counts()
    assert store.reset().requests == {"put": 1}
    assert store.snapshot() == Counts()


def test_threads_share_the_counts(memory: MemoryStore) -> None:
    store = CountingStore(memory)
    store.put("a", b"1")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store.size("a"), range(500)))
    assert store.snapshot().requests["size"] == 500


def test_pages_of_a_listing_count(memory: MemoryStore) -> None:
    for number in range(1500):
        memory.put(f"{number:04}", b"")
    store = CountingStore(memory)
    assert len(list(store.list_from(""))) == 1500
    assert store.reset().requests == {"list": 2}
    next(store.list_from(""))
    assert store.snapshot().requests == {"list": 1}


def test_immutable_objects_are_read_once(memory: MemoryStore) -> None:
    counted = CountingStore(memory)
    store = CachingStore(counted, prefixes=["data/"], suffixes=[".idx"], cache=ByteCache(100_000))
    for path in ("data/a", "x.idx", "mutable"):
        memory.put(path, bytes(range(100)))
        for _ in range(3):
            assert bytes(store.read(path, [(0, 4), (90, 10)])[0]) == bytes(range(4))
            assert bytes(store.read_tail(path, 10)[0]) == bytes(range(90, 100))
            assert store.read_tail(path, 1000)[1] == 100
            assert bytes(store.read_all(path)) == bytes(range(100))
            assert store.size(path) == 100
        requests = counted.reset().total
        assert requests == (15 if path == "mutable" else 3)


def test_only_missing_ranges_are_asked_for(memory: MemoryStore) -> None:
    memory.put("a", bytes(range(100)))
    counted = CountingStore(memory)
    store = CachingStore(counted, prefixes=[""], cache=ByteCache(100_000))
    store.read("a", [(10, 5)])
    found = store.read("a", [(50, 2), (10, 5), (0, 0), (50, 2), (20, 1)])
    assert [bytes(view) for view in found] == [bytes([50, 51]), bytes(range(10, 15)), b"", bytes([50, 51]), bytes([20])]
    assert counted.snapshot().bytes_read == 5 + 2 + 2 + 1


def test_the_cache_keeps_to_its_limit_and_drops_the_oldest(memory: MemoryStore) -> None:
    cache = ByteCache(20_000)
    store = CachingStore(memory, prefixes=[""], cache=cache)
    memory.put("a", bytes(100_000))
    for at in range(60):
        store.read("a", [(at, 1000)])
        store.read("a", [(0, 1000)])
    counts = cache.counts()
    assert counts.bytes_held <= 20_000
    assert counts.evictions > 40
    assert cache.find((store.uri, "a"), [(0, 1000), (1, 1000), (59, 1000)])[1] is None
    assert cache.find((store.uri, "a"), [(0, 1000)])[0] is not None


def test_one_big_read_does_not_push_out_the_rest(memory: MemoryStore) -> None:
    cache = ByteCache(20_000)
    store = CachingStore(memory, prefixes=[""], cache=cache)
    memory.put("a", bytes(100_000))
    store.read("a", [(0, 100)])
    store.read("a", [(0, 90_000)])
    assert cache.counts().entries == 1


@pytest.mark.parametrize("verb", ["put", "copy", "delete", "writer"])
def test_what_is_written_through_the_cache_is_forgotten(verb: str, memory: MemoryStore) -> None:
    cache = ByteCache(20_000)
    store = CachingStore(memory, prefixes=[""], cache=cache)
    memory.put("a", b"old content")
    memory.put("source", b"new")
    store.read_all("a")
    if verb == "put":
        store.put("a", b"new")
    elif verb == "copy":
        store.copy("source", "a")
    elif verb == "delete":
        store.delete(["a"])
        memory.put("a", b"new")
    else:
        with store.writer("a") as writer:
            writer.write(b"new")
    assert bytes(store.read_all("a")) == b"new"
    cache.clear()
    assert cache.counts().bytes_held == 0


def test_what_is_held_does_not_keep_the_whole_answer_alive(memory: MemoryStore) -> None:
    cache = ByteCache(100_000)
    memory.put("a", bytes(1_000_000))
    CachingStore(memory, prefixes=[""], cache=cache).read("a", [(0, 10)])
    held = cache.find((memory.uri, "a"), [(0, 10)])[0]
    assert held is not None
    assert len(bytes(held.obj)) == 10  # type: ignore[arg-type]


def test_pickled_caching_stores_use_the_cache_of_their_process(memory: MemoryStore) -> None:
    memory.put("a", b"content")
    twin = pickle.loads(pickle.dumps(CachingStore(memory, prefixes=["a"], cache=ByteCache(1000))))
    twin.read_all("a")
    assert process_cache().find((memory.uri, "a"), [(0, 7)])[0] is not None


class Slow(Delegating):
    """Counts how many calls run at once."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.running = self.most = 0
        self.lock = threading.Lock()
        self.pause = threading.Event()

    def size(self, path: str) -> int:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.pause.wait(0.005)
        with self.lock:
            self.running -= 1
        return self.inner.size(path)


def test_no_more_requests_run_at_once_than_allowed(memory: MemoryStore) -> None:
    memory.put("a", b"1")
    slow = Slow(memory)
    store = ThrottlingStore(slow, concurrency=3)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: store.size("a"), range(40)))
    assert slow.most == 3


def test_bytes_flow_no_faster_than_allowed(memory: MemoryStore) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    store = ThrottlingStore(memory, bytes_per_second=1000, clock=lambda: now, sleep=sleep)
    for number in range(10):
        store.put(f"{number}", bytes(500))
        store.read_all(f"{number}")
    # The first payment is free of waiting, the last one's time lies ahead.
    assert now == pytest.approx(9.5)


@pytest.mark.parametrize(("concurrency", "rate"), [(0, 1.0), (1, 0.0), (1, -1.0), (1, float("nan"))])
def test_throttling_to_nothing_is_refused(concurrency: int, rate: float, memory: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="throttling to"):
        ThrottlingStore(memory, concurrency=concurrency, bytes_per_second=rate)
