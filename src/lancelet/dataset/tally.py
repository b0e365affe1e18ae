"""Tallies: what a dataset has asked of its store so far, and this process of all stores of datasets together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from lancelet.config import default_options
from lancelet.storage.delegating import Delegating, DelegatingWriter
from lancelet.storage.locks import fork_safe_lock
from lancelet.storage.ranges import coalesce
from lancelet.storage.store import Browsable, Data, Entry, Mappable, Range, Store, Writer, as_bytes, maps_files

__all__ = ["IOStats", "Tally", "TallyStore", "bytes_read_counter", "iops_counter", "tallied"]


@dataclass(frozen=True)
class IOStats:
    """Requests to a store and bytes each way, as a remote store would get them."""

    read_iops: int = 0
    read_bytes: int = 0
    write_iops: int = 0
    written_bytes: int = 0


class Tally:
    """Running totals, shared by threads; in a copy sent to another process they start at zero.

    >>> tally = Tally()
    >>> tally.read(2, 100)
    >>> tally.total(), tally.since_last(), tally.since_last().read_bytes
    (IOStats(read_iops=2, read_bytes=100, write_iops=0, written_bytes=0), IOStats(read_iops=2, read_bytes=100, \
write_iops=0, written_bytes=0), 0)
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._counts = [0, 0, 0, 0]
        self._last = (0, 0, 0, 0)

    def __reduce__(self) -> tuple[object, ...]:
        return Tally, ()

    def read(self, requests: int, size: int) -> None:
        """Count reads."""
        with self._lock:
            self._counts[0] += requests
            self._counts[1] += size

    def wrote(self, requests: int, size: int) -> None:
        """Count writes."""
        with self._lock:
            self._counts[2] += requests
            self._counts[3] += size

    def total(self) -> IOStats:
        """All so far."""
        with self._lock:
            return IOStats(*self._counts)

    def since_last(self) -> IOStats:
        """What was added since this was asked before."""
        with self._lock:
            found = [now - before for now, before in zip(self._counts, self._last, strict=True)]
            self._last = (self._counts[0], self._counts[1], self._counts[2], self._counts[3])
        return IOStats(*found)


_process = Tally()


def bytes_read_counter() -> int:
    """Bytes that datasets of this process have read from their stores.

    >>> bytes_read_counter() >= 0
    True
    """
    return _process.total().read_bytes


def iops_counter() -> int:
    """Requests for reading that datasets of this process have made.

    >>> iops_counter() >= 0
    True
    """
    return _process.total().read_iops


class TallyStore(Delegating):
    """Adds what goes through to a tally; the bytes of memory maps do not go through.

    ``elsewhere`` opens other stores that the same table uses.
    """

    def __init__(self, inner: Store, tally: Tally, elsewhere: Callable[[str], Store]) -> None:
        super().__init__(inner)
        self.tally = tally
        self.elsewhere = elsewhere

    def size(self, path: str) -> int:
        """One read."""
        self._read(1, 0)
        return self.inner.size(path)

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """As many reads as the ranges need of a remote store."""
        found = self.inner.read(path, ranges)
        self._read(_requests(ranges), sum(map(len, found)))
        return found

    def read_all(self, path: str) -> memoryview:
        """One read."""
        found = self.inner.read_all(path)
        self._read(1, len(found))
        return found

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """One read."""
        found, size = self.inner.read_tail(path, length)
        self._read(1, len(found))
        return found, size

    def put(self, path: str, data: Data) -> None:
        """One write."""
        self._wrote(1, as_bytes(data).nbytes)
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: Data) -> None:
        """One write."""
        self._wrote(1, as_bytes(data).nbytes)
        self.inner.put_if_absent(path, data)

    def writer(self, path: str) -> Writer:
        """One write, when it is closed."""
        return _TallyWriter(self.inner.writer(path), self)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """One read."""
        self._read(1, 0)
        return self.inner.list_from(prefix, start_after)

    def copy(self, source: str, target: str) -> None:
        """One write."""
        self._wrote(1, 0)
        self.inner.copy(source, target)

    def delete(self, paths: Iterable[str]) -> None:
        """One write."""
        self._wrote(1, 0)
        self.inner.delete(paths)

    def _read(self, requests: int, size: int) -> None:
        self.tally.read(requests, size)
        _process.read(requests, size)

    def _wrote(self, requests: int, size: int) -> None:
        self.tally.wrote(requests, size)
        _process.wrote(requests, size)


class _MappedTallyStore(TallyStore):
    """The same for a store that shows objects without reading them."""

    def view(self, path: str) -> memoryview:
        """One read, of nothing: which bytes are looked at later nobody sees."""
        self._read(1, 0)
        return cast(Mappable, self.inner).view(path)

    def names(self, folder: str) -> list[str]:
        """One read."""
        self._read(1, 0)
        if isinstance(self.inner, Browsable):
            return self.inner.names(folder)
        found = (entry.path[len(folder) + 1 :].partition("/")[0] for entry in self.inner.list_from(f"{folder}/"))
        return list(dict.fromkeys(found))


class _TallyWriter(DelegatingWriter):
    def __init__(self, inner: Writer, store: TallyStore) -> None:
        super().__init__(inner)
        self._store = store

    def close(self) -> int:
        size = self.inner.close()
        self._store._wrote(1, size)
        return size


def tallied(inner: Store, tally: Tally, elsewhere: Callable[[str], Store]) -> TallyStore:
    """A store that counts for a tally, and maps its objects if the inner one does."""
    kind = _MappedTallyStore if maps_files(inner) else TallyStore
    return kind(inner, tally, elsewhere)


def _requests(ranges: Sequence[Range]) -> int:
    if len(ranges) < 2:
        return len(ranges)
    options = default_options()
    return len(coalesce(ranges, gap=options.coalesce_gap, largest=options.largest_request).requests)
