"""A folder of a store as a store of its own: the branches of a table lie in folders of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lancelet.errors import Unsupported
from lancelet.storage.delegating import Delegating
from lancelet.storage.paths import check_path, join_uri
from lancelet.storage.store import Browsable, Data, Entry, Mappable, Range, Store, Writer

__all__ = ["Folder", "folder_of"]


class Folder(Delegating):
    """What lies below ``folder`` of another store, through that store: with its credentials, counts and faults.

    >>> from lancelet.storage.memory import MemoryStore
    >>> branch = Folder(MemoryStore("memory://folders"), "tree/a")
    >>> branch.put("x", b"1")
    >>> branch.uri, [entry.path for entry in branch.list_from("")], [e.path for e in branch.inner.list_from("")]
    ('memory://folders/tree/a', ['x'], ['tree/a/x'])
    """

    def __init__(self, inner: Store, folder: str) -> None:
        super().__init__(inner)
        self.folder = check_path(inner.uri, folder)

    def __repr__(self) -> str:
        return f"Folder({self.inner!r}, {self.folder!r})"

    @property
    def uri(self) -> str:
        """The folder, as a user would write it."""
        return join_uri(self.inner.uri, self.folder)

    def size(self, path: str) -> int:
        """As the inner store."""
        return self.inner.size(self._below(path))

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """As the inner store."""
        return self.inner.read(self._below(path), ranges)

    def read_all(self, path: str) -> memoryview:
        """As the inner store."""
        return self.inner.read_all(self._below(path))

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """As the inner store."""
        return self.inner.read_tail(self._below(path), length)

    def put(self, path: str, data: Data) -> None:
        """As the inner store."""
        self.inner.put(self._below(path), data)

    def put_if_absent(self, path: str, data: Data) -> None:
        """As the inner store."""
        self.inner.put_if_absent(self._below(path), data)

    def writer(self, path: str) -> Writer:
        """As the inner store."""
        return self.inner.writer(self._below(path))

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """As the inner store, with paths below the folder."""
        start = len(self.folder) + 1
        after = f"{self.folder}/{start_after}" if start_after else ""
        for entry in self.inner.list_from(f"{self.folder}/{prefix}", after):
            yield replace(entry, path=entry.path[start:])

    def copy(self, source: str, target: str) -> None:
        """As the inner store."""
        self.inner.copy(self._below(source), self._below(target))

    def delete(self, paths: Iterable[str]) -> None:
        """As the inner store."""
        self.inner.delete([self._below(path) for path in paths])

    def _below(self, path: str) -> str:
        # Checked here: joined to the folder, a path that climbs out of it would look like one that does not.
        return f"{self.folder}/{check_path(self.uri, path)}"


class _MappedFolder(Folder):
    """A folder of a store that shows objects without reading them."""

    def view(self, path: str) -> memoryview:
        """As the inner store."""
        if not isinstance(self.inner, Mappable):
            raise Unsupported("the store does not map its objects", uri=self.uri)
        return self.inner.view(self._below(path))

    def names(self, folder: str) -> list[str]:
        """As the inner store; from a listing where it has no such answer."""
        if isinstance(self.inner, Browsable):
            return self.inner.names(self._below(folder))
        found = (entry.path[len(folder) + 1 :].partition("/")[0] for entry in self.list_from(f"{folder}/"))
        return list(dict.fromkeys(found))


def folder_of(store: Store, folder: str) -> Folder:
    """A folder of a store, which maps its objects if the store does."""
    return _MappedFolder(store, folder) if isinstance(store, Mappable) else Folder(store, folder)
