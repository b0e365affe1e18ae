"""Counting: what a piece of work asks of its store, as budgets and ``explain`` want to know it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lancelet.config import Options, default_options
from lancelet.storage.delegating import Delegating, DelegatingWriter
from lancelet.storage.locks import fork_safe_lock
from lancelet.storage.paths import join_uri
from lancelet.storage.ranges import check_ranges, coalesce
from lancelet.storage.store import Data, Entry, Range, Store, Writer, as_bytes

__all__ = ["CountingStore", "Counts"]

#: Objects per page of a listing, as object stores have it.
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Counts:
    """What was asked: requests by verb, as a remote store would get them, ranges, and bytes each way."""

    requests: dict[str, int] = field(default_factory=dict)
    #: Ranges that reads asked for, before they were coalesced.
    ranges: int = 0
    #: Bytes that reads handed out, gaps between ranges not counted.
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def total(self) -> int:
        """Requests of every kind."""
        return sum(self.requests.values())

    def with_(self, verb: str, requests: int = 1, *, ranges: int = 0, read: int = 0, written: int = 0) -> Counts:
        """These counts and one call more."""
        return replace(
            self,
            requests={**self.requests, verb: self.requests.get(verb, 0) + requests},
            ranges=self.ranges + ranges,
            bytes_read=self.bytes_read + read,
            bytes_written=self.bytes_written + written,
        )


class CountingStore(Delegating):
    """Counts what goes through. Threads share the counts; a pickled copy starts at zero.

    ``read`` counts as many requests as a remote store would make of its ranges after coalescing; a listing one per
    thousand objects; a writer one, when it is closed. Failed calls count too.

    >>> from lancelet.storage.memory import MemoryStore
    >>> store = CountingStore(MemoryStore("memory://counted"))
    >>> store.put("a", bytes(1000))
    >>> _ = store.read("a", [(0, 10), (20, 10)])
    >>> store.snapshot()
    Counts(requests={'put': 1, 'read': 1}, ranges=2, bytes_read=20, bytes_written=1000)
    """

    def __init__(self, inner: Store, *, options: Options | None = None) -> None:
        super().__init__(inner)
        self._options = options or default_options()
        self._counts = Counts()
        self._lock = fork_safe_lock()

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.inner, self._options)

    def snapshot(self) -> Counts:
        """The counts so far."""
        return self._counts

    def reset(self) -> Counts:
        """Start again at zero; returns the counts until then."""
        with self._lock:
            found, self._counts = self._counts, Counts()
        return found

    def size(self, path: str) -> int:
        """One request."""
        self._count("size")
        return self.inner.size(path)

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """As many requests as the coalesced ranges need."""
        check_ranges(ranges, uri=join_uri(self.uri, path))
        plan = coalesce(ranges, gap=self._options.coalesce_gap, largest=self._options.largest_request)
        asked = sum(length for _, length in ranges)
        self._count("read", len(plan.requests), ranges=len(ranges), read=asked)
        return self.inner.read(path, ranges)

    def read_all(self, path: str) -> memoryview:
        """One request."""
        self._count("read_all")
        found = self.inner.read_all(path)
        self._count("read_all", 0, read=len(found))
        return found

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """One request."""
        self._count("read_tail")
        found, size = self.inner.read_tail(path, length)
        self._count("read_tail", 0, read=len(found))
        return found, size

    def put(self, path: str, data: Data) -> None:
        """One request."""
        self._count("put", written=as_bytes(data).nbytes)
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: Data) -> None:
        """One request."""
        self._count("put_if_absent", written=as_bytes(data).nbytes)
        self.inner.put_if_absent(path, data)

    def writer(self, path: str) -> Writer:
        """One request, at close."""
        return _CountingWriter(self.inner.writer(path), self)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """One request for each thousand objects that are taken from the listing."""
        self._count("list")
        return self._listed(self.inner.list_from(prefix, start_after))

    def copy(self, source: str, target: str) -> None:
        """One request."""
        self._count("copy")
        self.inner.copy(source, target)

    def delete(self, paths: Iterable[str]) -> None:
        """One request for each thousand objects."""
        named = list(paths)
        self._count("delete", -(-len(named) // _PAGE))
        self.inner.delete(named)

    def _listed(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        for number, entry in enumerate(entries, start=1):
            yield entry
            if number % _PAGE == 0:
                self._count("list")

    def _count(self, verb: str, requests: int = 1, *, ranges: int = 0, read: int = 0, written: int = 0) -> None:
        with self._lock:
            self._counts = self._counts.with_(verb, requests, ranges=ranges, read=read, written=written)


class _CountingWriter(DelegatingWriter):
    def __init__(self, inner: Writer, store: CountingStore) -> None:
        super().__init__(inner)
        self._store = store
        self._counted = False

    def close(self) -> int:
        if not self._counted:
            self._counted = True
            self._store._count("writer", written=self.inner.position)
        return self.inner.close()


def _rebuild(inner: Store, options: Options) -> CountingStore:
    return CountingStore(inner, options=options)
