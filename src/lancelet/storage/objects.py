"""Objects made of files that never change, kept in one byte-limited cache for the whole process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import TypeVar, cast

from lancelet.config import default_options
from lancelet.storage.caching import CacheCounts
from lancelet.storage.locks import fork_safe_lock

__all__ = ["ObjectCache", "process_objects"]

_Made = TypeVar("_Made")
#: What an entry costs beside the object itself, roughly.
_OVERHEAD = 400


class ObjectCache:
    """Made things by key, each with the bytes it takes; the ones used longest ago go first.

    Keep only what is immutable, may be shared by threads, and is as good in a forked child as in its parent. A key
    must say all that the object depends on: begin it with the URI of the file.

    >>> cache = ObjectCache(10_000)
    >>> cache.get(("memory://a/x", "lookup"), lambda: ("made", 100)), cache.counts().entries
    ('made', 1)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._held = self._hits = self._misses = self._evictions = 0
        self._lock = fork_safe_lock()

    def get(self, key: Hashable, make: Callable[[], tuple[_Made, int]]) -> _Made:
        """The object of a key; where there is none ``make`` returns it and its size in bytes.

        Two threads that miss at once both make it, and one of the two is kept. What is larger than the whole cache is
        made anew each time.
        """
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                self._hits += 1
                return cast(_Made, found[0])
            self._misses += 1
        made, size = make()
        self._keep(key, made, size + _OVERHEAD)
        return made

    def holds(self, key: Hashable) -> bool:
        """Whether the object of a key is there; counts as no use."""
        with self._lock:
            return key in self._entries

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._held = 0

    def resize(self, limit: int) -> None:
        """Hold no more than so many bytes from now on.

        >>> cache = ObjectCache(10_000)
        >>> made = cache.get("a", lambda: ("made", 100))
        >>> cache.resize(0)
        >>> cache.counts().entries
        0
        """
        with self._lock:
            self.limit = limit
            self._shrink()

    def bytes_of(self, wanted: Callable[[Hashable], bool]) -> int:
        """Bytes that the entries with some keys take."""
        with self._lock:
            return sum(size for key, (_, size) in self._entries.items() if wanted(key))

    def counts(self) -> CacheCounts:
        """Entries, bytes, hits, misses and evictions."""
        with self._lock:
            return CacheCounts(len(self._entries), self._held, self._hits, self._misses, self._evictions)

    def _keep(self, key: Hashable, made: object, size: int) -> None:
        if size > self.limit:
            return
        with self._lock:
            before = self._entries.pop(key, None)
            self._held += size - (0 if before is None else before[1])
            self._entries[key] = (made, size)
            self._shrink()

    def _shrink(self) -> None:
        while self._held > self.limit:
            _, (_, freed) = self._entries.popitem(last=False)
            self._held -= freed
            self._evictions += 1


@lru_cache(maxsize=1)
def process_objects() -> ObjectCache:
    """The cache that this process shares, limited by ``Options.cache_bytes``."""
    return ObjectCache(default_options().cache_bytes)
