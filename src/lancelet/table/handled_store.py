"""A table's store whose manifests go through a commit handler: all that opens, commits and lists needs no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from lancelet.errors import AlreadyExists, NotFound
from lancelet.format.names import VERSIONS, parse_manifest_name
from lancelet.storage.delegating import Delegating
from lancelet.storage.folder import Folder
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Data, Entry, Range, Store
from lancelet.table.handlers import CommitHandler, Lost

__all__ = ["HandledStore", "HandlerMaker"]

#: Makes the handler of the table or branch in a folder, given a store rooted there; the folder is "" or ends at "/".
HandlerMaker = Callable[[Store, str], CommitHandler]
Answer = TypeVar("Answer")


class HandledStore(Delegating):
    """A store that leaves its manifests to a handler, in its own folder and in those of branches below.

    Putting a manifest if it is absent is publishing it; a listing of versions is preceded by a look for the newest
    one, and a manifest that is not found by a look for its version: so half-done commits are finished by whoever
    meets them. Detached versions have random names, which nobody races for: they are put as they are.
    """

    def __init__(self, inner: Store, make: HandlerMaker) -> None:
        super().__init__(inner)
        self.make = make

    def __repr__(self) -> str:
        return f"HandledStore({self.inner!r}, {self.make!r})"

    def handler(self, folder: str = "") -> CommitHandler:
        """The handler of the table, or of a branch in a folder, which ends at a slash."""
        return self.make(Folder(self.inner, folder[:-1]) if folder else self.inner, folder)

    def size(self, path: str) -> int:
        """Bytes in an object."""
        return self._finding(path, lambda: self.inner.size(path))

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """The bytes of each range."""
        return self._finding(path, lambda: self.inner.read(path, ranges))

    def read_all(self, path: str) -> memoryview:
        """A whole object."""
        return self._finding(path, lambda: self.inner.read_all(path))

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """The last bytes and the object's size."""
        return self._finding(path, lambda: self.inner.read_tail(path, length))

    def put_if_absent(self, path: str, data: Data) -> None:
        """Write an object that must not exist; publish it if it is a manifest."""
        place = _manifest_at(path)
        if place is None:
            self.inner.put_if_absent(path, data)
            return
        folder, version = place
        named = parse_manifest_name(path)
        if named is not None and named.scheme is not None:
            outcome = self.handler(folder).publish(version, data, scheme=named.scheme)
            if isinstance(outcome, Lost):
                raise AlreadyExists("the version is another writer's", uri=join_uri(self.uri, path), version=version)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """Objects in path order."""
        folder, mark, _ = prefix.rpartition(f"{VERSIONS}/")
        if mark and _is_folder(folder):
            self.handler(folder).settle()
        yield from self.inner.list_from(prefix, start_after)

    def _finding(self, path: str, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except NotFound:
            place = _manifest_at(path)
            if place is None:
                raise
            folder, version = place
            if f"{folder}{self.handler(folder).resolve(version).path}" != path:
                raise
        return ask()


def _manifest_at(path: str) -> tuple[str, int] | None:
    """The folder and version of a manifest that a handler cares for; None for every other path."""
    folder, mark, name = path.rpartition(f"{VERSIONS}/")
    if not mark or "/" in name or not _is_folder(folder):
        return None
    named = parse_manifest_name(path)
    return None if named is None or named.detached else (folder, named.version)


def _is_folder(folder: str) -> bool:
    return not folder or folder.endswith("/")
