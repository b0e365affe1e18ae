"""Watching a scan: what it is asked of stores and caches, and how many rows it looks at, while it goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lancelet.format.indexes import IndexMetadata
from lancelet.storage.counting import CountingStore, Counts
from lancelet.storage.locks import fork_safe_lock
from lancelet.storage.objects import process_objects
from lancelet.storage.store import Store
from lancelet.table.paths import Places

__all__ = ["Measured", "Watch"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a piece of work took."""

    #: Requests to stores, as remote ones would get them; ranges before neighbouring ones were joined; bytes.
    requests: int
    ranges: int
    bytes_read: int
    #: Of these, what indexes took.
    index_requests: int
    index_bytes: int
    #: Things found in the process's cache, or made anew.
    cache_hits: int
    cache_misses: int
    #: Fragments of which rows were looked at, and how many rows.
    fragments: int
    rows_looked_at: int
    seconds: float
    cpu_seconds: float


class Watch:
    """Counts from when it is made. Work is watched if it goes by the watch's :attr:`places`.

    Stores that map files are read from instead: which bytes of a map are looked at nobody could tell.

    >>> from lancelet.format.fields import Schema
    >>> from lancelet.format.manifest import Manifest
    >>> from lancelet.storage.memory import MemoryStore
    >>> store = MemoryStore("memory://watched")
    >>> store.put("x", b"12345")
    >>> watch = Watch(Places(store, Manifest(Schema(()))))
    >>> _ = watch.places.base(None).read("x", [(0, 2)])
    >>> watch.measured().requests, watch.measured().bytes_read
    (1, 2)
    """

    def __init__(self, places: Places) -> None:
        self.places: Places = _Watched(places)
        self._looked_at: dict[int, int] = {}
        self._lock = fork_safe_lock()
        self._cache = process_objects().counts()
        self._started = time.perf_counter(), time.process_time()

    def looked_at(self, fragment: int, rows: int) -> None:
        """Count rows of a fragment."""
        with self._lock:
            self._looked_at[fragment] = self._looked_at.get(fragment, 0) + rows

    def measured(self) -> Measured:
        """All so far."""
        seconds, cpu = time.perf_counter() - self._started[0], time.process_time() - self._started[1]
        assert isinstance(self.places, _Watched)
        rows, indexes = self.places.counts()
        cache = process_objects().counts()
        return Measured(
            requests=sum(item.total for item in (*rows, *indexes)),
            ranges=sum(item.ranges for item in (*rows, *indexes)),
            bytes_read=sum(item.bytes_read for item in (*rows, *indexes)),
            index_requests=sum(item.total for item in indexes),
            index_bytes=sum(item.bytes_read for item in indexes),
            cache_hits=cache.hits - self._cache.hits,
            cache_misses=cache.misses - self._cache.misses,
            fragments=len(self._looked_at),
            rows_looked_at=sum(self._looked_at.values()),
            seconds=seconds,
            cpu_seconds=cpu,
        )


class _Watched(Places):
    """Places whose stores are counted, those of indexes apart."""

    def __init__(self, inner: Places) -> None:
        super().__init__(inner.base(None), inner.manifest)
        self._inner = inner
        self._counted: dict[tuple[int | None, bool], CountingStore] = {}

    def base(self, base_id: int | None) -> Store:
        """The store at a base path, counted."""
        return self._store_of(base_id, index=False)

    def index(self, item: IndexMetadata) -> tuple[Store, str]:
        """The store of an index segment's files, counted, and their folder in it."""
        return self._store_of(item.base_id, index=True), self._inner.index(item)[1]

    def counts(self) -> tuple[list[Counts], list[Counts]]:
        """What was asked for rows, and for indexes."""
        found = [(index, store.snapshot()) for (_, index), store in list(self._counted.items())]
        return [item for index, item in found if not index], [item for index, item in found if index]

    def _store_of(self, base_id: int | None, *, index: bool) -> Store:
        found = self._counted.get((base_id, index))
        if found is None:
            found = self._counted.setdefault((base_id, index), CountingStore(self._inner.base(base_id)))
        return found
