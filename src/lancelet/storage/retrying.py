"""Retrying: repeats what failed for a passing reason, and finds out what became of a write whose answer was lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from lancelet.config import Retries
from lancelet.errors import AlreadyExists, LanceletError, NotFound
from lancelet.events import emit
from lancelet.storage.delegating import Delegating
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Data, Entry, Range, Store, Writer, as_bytes

__all__ = ["RetryingStore"]

Answer = TypeVar("Answer")


class RetryingStore(Delegating):
    """Repeats calls that fail with an error whose ``retryable`` is true, as often and as long as ``retries`` say.

    Each repetition is announced by the event ``storage.retry``. A listing goes on after the last object it gave.
    The pieces of a writer are not repeated: a failed writer is aborted and the object written anew by its caller.

    ``put_if_absent`` may have succeeded although its answer was an error. If the object exists when the call is
    repeated, the stored bytes decide: ours mean success, others AlreadyExists. Contents should therefore differ
    between writers, as manifests do by their transaction's id.
    """

    def __init__(
        self, inner: Store, retries: Retries | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(inner)
        self._retries = retries or Retries()
        self._sleep = sleep

    def size(self, path: str) -> int:
        """As the inner store, repeated where that helps."""
        return self._repeat("size", path, lambda: self.inner.size(path))

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """As the inner store, repeated where that helps."""
        return self._repeat("read", path, lambda: self.inner.read(path, ranges))

    def read_all(self, path: str) -> memoryview:
        """As the inner store, repeated where that helps."""
        return self._repeat("read_all", path, lambda: self.inner.read_all(path))

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """As the inner store, repeated where that helps."""
        return self._repeat("read_tail", path, lambda: self.inner.read_tail(path, length))

    def put(self, path: str, data: Data) -> None:
        """As the inner store, repeated where that helps."""
        self._repeat("put", path, lambda: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: Data) -> None:
        """As the inner store, repeated where that helps; a lost answer is resolved by looking."""
        unsure = False

        def attempt() -> None:
            nonlocal unsure
            try:
                self.inner.put_if_absent(path, data)
            except AlreadyExists:
                # Only after an attempt of ours that may have arrived can the object be our own.
                if not (unsure and self._holds(path, data)):
                    raise
            except LanceletError as error:
                unsure = unsure or error.retryable
                raise

        try:
            self._repeat("put_if_absent", path, attempt)
        except AlreadyExists:
            raise
        except LanceletError as error:
            if not unsure:
                raise
            try:
                if self._holds(path, data):
                    return
            except NotFound:
                raise error from None
            raise AlreadyExists("there is an object of this name", uri=join_uri(self.uri, path)) from error

    def writer(self, path: str) -> Writer:
        """As the inner store; only the start is repeated."""
        return self._repeat("writer", path, lambda: self.inner.writer(path))

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """As the inner store; an interrupted listing goes on where it stopped."""
        entries = self.inner.list_from(prefix, start_after)
        last = start_after

        def following() -> Entry | None:
            nonlocal entries
            try:
                return next(entries, None)
            except LanceletError:
                entries = self.inner.list_from(prefix, last)
                raise

        while (entry := self._repeat("list", prefix, following)) is not None:
            last = entry.path
            yield entry

    def copy(self, source: str, target: str) -> None:
        """As the inner store, repeated where that helps."""
        self._repeat("copy", source, lambda: self.inner.copy(source, target))

    def delete(self, paths: Iterable[str]) -> None:
        """As the inner store, repeated where that helps."""
        named = list(paths)
        self._repeat("delete", named[0] if named else "", lambda: self.inner.delete(named))

    def _holds(self, path: str, data: Data) -> bool:
        """Whether the stored object is the one that we wrote."""
        return self.read_all(path) == as_bytes(data)

    def _repeat(self, verb: str, path: str, call: Callable[[], Answer]) -> Answer:
        began, delays = time.monotonic(), self._retries.delays()
        attempt = 1
        while True:
            try:
                return call()
            except LanceletError as error:
                delay = next(delays, None)
                out_of_time = time.monotonic() - began + (delay or 0.0) > self._retries.deadline
                if not error.retryable or delay is None or out_of_time:
                    raise
                uri = error.uri or join_uri(self.uri, path)
                emit("storage.retry", verb=verb, uri=uri, attempt=attempt, delay=delay, error=str(error))
            self._sleep(delay)
            attempt += 1
