"""Caching: bytes of objects that never change, kept in one byte-limited cache for the whole process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lancelet.config import default_options
from lancelet.storage.delegating import Delegating, DelegatingWriter
from lancelet.storage.locks import fork_safe_lock
from lancelet.storage.store import Data, Range, Store, Writer

__all__ = ["ByteCache", "CacheCounts", "CachingStore", "process_cache"]

#: What an entry costs beside its bytes, roughly: key, view, and two places in dictionaries.
_OVERHEAD = 400
#: No entry may take more than this share of the cache: one big read must not push out everything else.
_LARGEST_SHARE = 8

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """What a cache holds, and how it has done so far."""

    entries: int
    bytes_held: int
    hits: int
    misses: int
    evictions: int


class ByteCache:
    """Byte ranges of objects, and objects' sizes; the ones used longest ago go first.

    >>> cache = ByteCache(10_000)
    >>> cache.keep(("memory://a", "x"), (0, 3), memoryview(b"abc"))
    >>> [found and bytes(found) for found in cache.find(("memory://a", "x"), [(0, 3), (1, 2)])]
    [b'abc', None]
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # Newest last. The value for the range None is the object's size.
        self._entries: OrderedDict[tuple[_Name, Range | None], memoryview | int] = OrderedDict()
        self._of_object: dict[_Name, set[Range | None]] = {}
        self._held = self._hits = self._misses = self._evictions = 0
        self._lock = fork_safe_lock()

    def find(self, name: _Name, ranges: Sequence[Range]) -> list[memoryview | None]:
        """The bytes of each range that is held, None for the others."""
        found: list[memoryview | None] = []
        with self._lock:
            for piece in ranges:
                view = self._entries.get((name, piece))
                if isinstance(view, memoryview):
                    self._entries.move_to_end((name, piece))
                    self._hits += 1
                    found.append(view)
                else:
                    self._misses += 1
                    found.append(None)
        return found

    def size_of(self, name: _Name) -> int | None:
        """The object's size, if it is known."""
        with self._lock:
            size = self._entries.get((name, None))
            if size is not None:
                self._entries.move_to_end((name, None))
            return size if isinstance(size, int) else None

    def keep(self, name: _Name, piece: Range, view: memoryview) -> None:
        """Hold a copy: the view itself may be a slice that keeps a far bigger answer alive."""
        if _OVERHEAD + len(view) <= self.limit // _LARGEST_SHARE:
            self._insert(name, piece, memoryview(bytes(view)))

    def keep_size(self, name: _Name, size: int) -> None:
        """Remember an object's size."""
        self._insert(name, None, size)

    def forget(self, name: _Name) -> None:
        """Drop all that is held of an object."""
        with self._lock:
            for piece in list(self._of_object.get(name, ())):
                self._drop(name, piece)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._of_object.clear()
            self._held = 0

    def counts(self) -> CacheCounts:
        """Entries, bytes, hits, misses and evictions."""
        with self._lock:
            return CacheCounts(len(self._entries), self._held, self._hits, self._misses, self._evictions)

    def _insert(self, name: _Name, piece: Range | None, value: memoryview | int) -> None:
        with self._lock:
            if (name, piece) in self._entries:
                self._drop(name, piece)
            self._entries[name, piece] = value
            self._of_object.setdefault(name, set()).add(piece)
            self._held += _cost(value)
            while self._held > self.limit and self._entries:
                self._drop(*next(iter(self._entries)))
                self._evictions += 1

    def _drop(self, name: _Name, piece: Range | None) -> None:
        self._held -= _cost(self._entries.pop((name, piece)))
        pieces = self._of_object[name]
        pieces.discard(piece)
        if not pieces:
            del self._of_object[name]


def _cost(value: memoryview | int) -> int:
    return _OVERHEAD + (len(value) if isinstance(value, memoryview) else 0)


@lru_cache(maxsize=1)
def process_cache() -> ByteCache:
    """The cache that all stores of this process share, limited by ``Options.cache_bytes``."""
    return ByteCache(default_options().cache_bytes)


class CachingStore(Delegating):
    """Answers reads of immutable objects from a cache. The caller says which those are; all others pass through.

    A path is immutable if it starts with one of ``prefixes`` or ends with one of ``suffixes``. Writing or deleting
    such a path through this store forgets it; what other processes do to it goes unnoticed, so name only paths that
    nobody ever reuses. Whoever opens the same URI in this process, with whatever credentials, shares the entries.
    A pickled copy uses the cache of the process it arrives in.
    """

    def __init__(
        self,
        inner: Store,
        *,
        prefixes: Iterable[str] = (),
        suffixes: Iterable[str] = (),
        cache: ByteCache | None = None,
    ) -> None:
        super().__init__(inner)
        self._prefixes, self._suffixes = tuple(prefixes), tuple(suffixes)
        self._cache = cache or process_cache()

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.inner, self._prefixes, self._suffixes)

    def size(self, path: str) -> int:
        """From the cache where it can be."""
        if not self._immutable(path):
            return self.inner.size(path)
        name = (self.uri, path)
        size = self._cache.size_of(name)
        if size is None:
            size = self.inner.size(path)
            self._cache.keep_size(name, size)
        return size

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """From the cache where it can be; only the missing ranges are asked for, in one call."""
        if not self._immutable(path):
            return self.inner.read(path, ranges)
        name = (self.uri, path)
        held = self._cache.find(name, ranges)
        missing = [piece for piece, view in zip(ranges, held, strict=True) if view is None]
        fresh = self.inner.read(path, missing) if missing else []
        for piece, view in zip(missing, fresh, strict=True):
            if piece[1]:
                self._cache.keep(name, piece, view)
        new = iter(fresh)
        return [next(new) if view is None else view for view in held]

    def read_all(self, path: str) -> memoryview:
        """From the cache where it can be."""
        if not self._immutable(path):
            return self.inner.read_all(path)
        name = (self.uri, path)
        size = self._cache.size_of(name)
        if size is not None and (held := self._cache.find(name, [(0, size)])[0]) is not None:
            return held
        view = self.inner.read_all(path)
        self._cache.keep_size(name, len(view))
        self._cache.keep(name, (0, len(view)), view)
        return view

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """From the cache where it can be."""
        if not self._immutable(path):
            return self.inner.read_tail(path, length)
        name = (self.uri, path)
        size = self._cache.size_of(name)
        if size is not None and length >= 0:
            taken = min(length, size)
            if (held := self._cache.find(name, [(size - taken, taken)])[0]) is not None:
                return held, size
        view, size = self.inner.read_tail(path, length)
        self._cache.keep_size(name, size)
        self._cache.keep(name, (size - len(view), len(view)), view)
        return view, size

    def put(self, path: str, data: Data) -> None:
        """As the inner store."""
        try:
            self.inner.put(path, data)
        finally:
            self._cache.forget((self.uri, path))

    def put_if_absent(self, path: str, data: Data) -> None:
        """As the inner store."""
        try:
            self.inner.put_if_absent(path, data)
        finally:
            self._cache.forget((self.uri, path))

    def writer(self, path: str) -> Writer:
        """As the inner store."""
        return _ForgettingWriter(self.inner.writer(path), self._cache, (self.uri, path))

    def copy(self, source: str, target: str) -> None:
        """As the inner store."""
        try:
            self.inner.copy(source, target)
        finally:
            self._cache.forget((self.uri, target))

    def delete(self, paths: Iterable[str]) -> None:
        """As the inner store."""
        named = list(paths)
        try:
            self.inner.delete(named)
        finally:
            for path in named:
                self._cache.forget((self.uri, path))

    def _immutable(self, path: str) -> bool:
        return path.startswith(self._prefixes) or path.endswith(self._suffixes)


class _ForgettingWriter(DelegatingWriter):
    def __init__(self, inner: Writer, cache: ByteCache, name: _Name) -> None:
        super().__init__(inner)
        self._cache, self._name = cache, name

    def close(self) -> int:
        try:
            return self.inner.close()
        finally:
            self._cache.forget(self._name)


def _rebuild(inner: Store, prefixes: tuple[str, ...], suffixes: tuple[str, ...]) -> CachingStore:
    return CachingStore(inner, prefixes=prefixes, suffixes=suffixes)
