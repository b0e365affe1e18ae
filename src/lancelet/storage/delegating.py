"""The plain wrapper: a store that hands everything on to another; wrappers change what they are there for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lancelet.storage.closing import ClosesOrAborts
from lancelet.storage.store import Data, Entry, Range, Store, Writer

__all__ = ["Delegating", "DelegatingWriter"]


class Delegating:
    """A store that is another store. It hides the other's memory maps, so that every read goes through ``read``."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def uri(self) -> str:
        """The inner store's root."""
        return self.inner.uri

    def size(self, path: str) -> int:
        """As the inner store."""
        return self.inner.size(path)

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """As the inner store."""
        return self.inner.read(path, ranges)

    def read_all(self, path: str) -> memoryview:
        """As the inner store."""
        return self.inner.read_all(path)

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """As the inner store."""
        return self.inner.read_tail(path, length)

    def put(self, path: str, data: Data) -> None:
        """As the inner store."""
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: Data) -> None:
        """As the inner store."""
        self.inner.put_if_absent(path, data)

    def writer(self, path: str) -> Writer:
        """As the inner store."""
        return self.inner.writer(path)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """As the inner store."""
        return self.inner.list_from(prefix, start_after)

    def copy(self, source: str, target: str) -> None:
        """As the inner store."""
        self.inner.copy(source, target)

    def delete(self, paths: Iterable[str]) -> None:
        """As the inner store."""
        self.inner.delete(paths)


class DelegatingWriter(ClosesOrAborts):
    """A writer that is another writer."""

    def __init__(self, inner: Writer) -> None:
        self.inner = inner

    @property
    def position(self) -> int:
        """As the inner writer."""
        return self.inner.position

    def write(self, data: Data) -> None:
        """As the inner writer."""
        self.inner.write(data)

    def close(self) -> int:
        """As the inner writer."""
        return self.inner.close()

    def abort(self) -> None:
        """As the inner writer."""
        self.inner.abort()
