"""Throttling: a ceiling on requests under way and on bytes per second, for stores that are shared or paid for."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from lancelet.errors import InvalidInput
from lancelet.storage.delegating import Delegating, DelegatingWriter
from lancelet.storage.store import Data, Range, Store, Writer, as_bytes

__all__ = ["ThrottlingStore"]


class _Gate:
    """The permits and the byte account of one process."""

    def __init__(self, concurrency: int) -> None:
        self.process = os.getpid()
        self.permits = threading.BoundedSemaphore(concurrency)
        self.lock = threading.Lock()
        #: When the bytes paid for so far are used up.
        self.free_at = 0.0


class ThrottlingStore(Delegating):
    """At most ``concurrency`` requests at once and ``bytes_per_second`` on average, counting both directions.

    Each process has the whole allowance for itself, forked children too. Listings count as one request when they
    start. ``clock`` and ``sleep`` may be replaced to test without waiting.
    """

    def __init__(
        self,
        inner: Store,
        *,
        concurrency: int = 64,
        bytes_per_second: float = float("inf"),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(inner)
        if concurrency < 1 or not bytes_per_second > 0:
            raise InvalidInput(
                f"throttling to {concurrency} requests and {bytes_per_second} bytes/s, expected more", uri=inner.uri
            )
        self._concurrency, self._rate = concurrency, bytes_per_second
        self._clock, self._sleep = clock, sleep
        self._gate = _Gate(concurrency)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_gate"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._gate = _Gate(self._concurrency)

    def size(self, path: str) -> int:
        """As the inner store, when its turn comes."""
        with self._turn():
            return self.inner.size(path)

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """As the inner store, when its turn comes."""
        with self._turn():
            found = self.inner.read(path, ranges)
        self._pay(sum(map(len, found)))
        return found

    def read_all(self, path: str) -> memoryview:
        """As the inner store, when its turn comes."""
        with self._turn():
            found = self.inner.read_all(path)
        self._pay(len(found))
        return found

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """As the inner store, when its turn comes."""
        with self._turn():
            found, size = self.inner.read_tail(path, length)
        self._pay(len(found))
        return found, size

    def put(self, path: str, data: Data) -> None:
        """As the inner store, when its turn comes."""
        self._pay(as_bytes(data).nbytes)
        with self._turn():
            self.inner.put(path, data)

    def put_if_absent(self, path: str, data: Data) -> None:
        """As the inner store, when its turn comes."""
        self._pay(as_bytes(data).nbytes)
        with self._turn():
            self.inner.put_if_absent(path, data)

    def writer(self, path: str) -> Writer:
        """As the inner store; each write waits for its turn."""
        return _ThrottledWriter(self.inner.writer(path), self)

    def copy(self, source: str, target: str) -> None:
        """As the inner store, when its turn comes."""
        with self._turn():
            self.inner.copy(source, target)

    def delete(self, paths: Iterable[str]) -> None:
        """As the inner store, when its turn comes."""
        with self._turn():
            self.inner.delete(paths)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        gate = self._gate_here()
        with gate.permits:
            yield

    def _pay(self, amount: int) -> None:
        """Wait until everything paid for before has had its time, then take up our own."""
        gate = self._gate_here()
        with gate.lock:
            now = self._clock()
            start = max(now, gate.free_at)
            gate.free_at = start + amount / self._rate
        if start > now:
            self._sleep(start - now)

    def _gate_here(self) -> _Gate:
        """This process's gate: permits that the parent's threads held at a fork would never come back."""
        if self._gate.process != os.getpid():
            self._gate = _Gate(self._concurrency)
        return self._gate


class _ThrottledWriter(DelegatingWriter):
    def __init__(self, inner: Writer, store: ThrottlingStore) -> None:
        super().__init__(inner)
        self._store = store

    def write(self, data: Data) -> None:
        self._store._pay(as_bytes(data).nbytes)
        with self._store._turn():
            self.inner.write(data)

    def close(self) -> int:
        with self._store._turn():
            return self.inner.close()
