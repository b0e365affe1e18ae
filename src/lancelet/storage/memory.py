"""The memory store: ``memory://name``, shared by everything in this process that uses the name."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from lancelet.errors import AlreadyExists, InvalidInput, NotFound
from lancelet.storage.closing import ClosesOrAborts
from lancelet.storage.locks import fork_safe_lock
from lancelet.storage.paths import check_path, join_uri, split_uri
from lancelet.storage.ranges import check_ranges, end_of, past_end
from lancelet.storage.store import Data, Entry, Range, Writer, as_bytes

__all__ = ["MemoryStore", "forget"]

# Every object of every memory:// name of this process, by full path: its bytes and when they were written.
_objects: dict[str, tuple[bytes, float]] = {}
_lock = fork_safe_lock()


def forget(uri: str) -> None:
    """Drop everything that is stored at or below a ``memory://`` URI.

    >>> MemoryStore("memory://example").put("a", b"1")
    >>> forget("memory://example")
    >>> list(MemoryStore("memory://example").list_from(""))
    []
    """
    inside = MemoryStore(uri)._root + "/"
    with _lock:
        for name in [name for name in _objects if name.startswith(inside)]:
            del _objects[name]


class MemoryStore:
    """Objects in this process's memory, found by name: ``memory://a`` is one place however often it is opened.

    ``memory://a/b`` is the folder ``b`` of ``memory://a``. A store pickles by its name, so in the same process the
    copy sees the same objects and in another process an empty place; a forked child starts with its parent's objects
    and the two go their own ways from there. (pylance 14.0.2 forgets more: there each dataset made at ``memory://a``
    is alone, and a second ``dataset("memory://a")`` does not find it.)

    >>> MemoryStore("memory://notes").put("a/b", b"hello")
    >>> bytes(MemoryStore("memory://notes/a").read_all("b"))
    b'hello'
    """

    def __init__(self, uri: str) -> None:
        scheme, rest = split_uri(uri)
        name = rest.strip("/")
        if scheme != "memory" or not name:
            raise InvalidInput(f"{uri!r} names no memory store", uri=uri, hint="write memory://name")
        self._root = check_path(uri, name)

    def __reduce__(self) -> tuple[object, ...]:
        return MemoryStore, (self.uri,)

    def __repr__(self) -> str:
        return f"MemoryStore({self.uri!r})"

    @property
    def uri(self) -> str:
        """``memory://`` and the name."""
        return f"memory://{self._root}"

    def size(self, path: str) -> int:
        """Bytes in an object."""
        return len(self._get(path))

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """Views of the object's bytes; nothing is copied."""
        check_ranges(ranges, uri=join_uri(self.uri, path))
        if not any(length for _, length in ranges):
            return [memoryview(b"") for _ in ranges]
        view = self.view(path)
        for piece in ranges:
            if piece[1] and end_of(piece) > len(view):
                raise past_end(piece, len(view), uri=join_uri(self.uri, path))
        return [view[start : start + length] for start, length in ranges]

    def view(self, path: str) -> memoryview:
        """The whole object; nothing is copied."""
        return memoryview(self._get(path))

    def read_all(self, path: str) -> memoryview:
        """The whole object; nothing is copied."""
        return self.view(path)

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """The last ``length`` bytes and the object's size."""
        check_ranges([(0, length)], uri=join_uri(self.uri, path))
        view = self.view(path)
        return view[max(0, len(view) - length) :], len(view)

    def put(self, path: str, data: Data) -> None:
        """Write or replace an object."""
        name, content = self._name(path), bytes(as_bytes(data))
        with _lock:
            _objects[name] = (content, time.time())

    def put_if_absent(self, path: str, data: Data) -> None:
        """Write an object that must not exist."""
        name, mine = self._name(path), (bytes(as_bytes(data)), time.time())
        with _lock:
            if _objects.setdefault(name, mine) is mine:
                return
        raise AlreadyExists("there is an object of this name", uri=join_uri(self.uri, path))

    def writer(self, path: str) -> Writer:
        """Collect the pieces of an object; it appears when the writer is closed."""
        self._name(path)
        return _MemoryWriter(self, path)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """Objects as they are when the listing starts."""
        inside, skip = self._root + "/", len(self._root) + 1
        with _lock:
            names = [name for name in _objects if name.startswith(inside + prefix)]
        # Order by code point is order by UTF-8 byte.
        names.sort()
        for name in names[bisect_right(names, inside + start_after) if start_after else 0 :]:
            if found := _objects.get(name):
                yield Entry(name[skip:], len(found[0]), found[1])

    def copy(self, source: str, target: str) -> None:
        """Make ``target`` the same object as ``source``."""
        content, name = self._get(source), self._name(target)
        with _lock:
            _objects[name] = (content, time.time())

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; those that do not exist are passed over."""
        names = [self._name(path) for path in paths]
        with _lock:
            for name in names:
                _objects.pop(name, None)

    def _name(self, path: str) -> str:
        return f"{self._root}/{check_path(self.uri, path)}"

    def _get(self, path: str) -> bytes:
        found = _objects.get(self._name(path))
        if found is None:
            raise NotFound("there is no such object", uri=join_uri(self.uri, path))
        return found[0]


class _MemoryWriter(ClosesOrAborts):
    """The pieces of an object to be."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._content: bytearray | None = bytearray()
        self._size: int | None = None

    @property
    def position(self) -> int:
        """Bytes written so far."""
        return len(self._content) if self._content is not None else self._size or 0

    def write(self, data: Data) -> None:
        """Append a copy of ``data``."""
        self._open().extend(as_bytes(data))

    def close(self) -> int:
        """Put the object."""
        if self._size is None:
            content = self._open()
            self._store.put(self._path, content)
            self._content, self._size = None, len(content)
        return self._size

    def abort(self) -> None:
        """Forget what was written."""
        self._content = None

    def _open(self) -> bytearray:
        if self._content is None:
            raise InvalidInput("the writer is closed", uri=join_uri(self._store.uri, self._path))
        return self._content
