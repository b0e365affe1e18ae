"""Open tables: fragments that stay open between questions to one version, and whatever else is worth keeping."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TypeVar, cast

from lancelet.config import default_options
from lancelet.format.fragments import Fragment
from lancelet.query.facts import FragmentCounts, TableFacts, facts_of
from lancelet.query.layouts import Projection
from lancelet.query.reads import Reads
from lancelet.query.stored import StoredFragment, open_fragment
from lancelet.storage.locks import fork_safe_lock
from lancelet.storage.store import maps_files
from lancelet.table.paths import Places

__all__ = ["OpenTable", "open_table"]

_Made = TypeVar("_Made")
#: What an open fragment takes with each file, roughly, and row ids and versions for each byte in a manifest.
_FILE, _SEQUENCE = 4096, 16
#: The share of the process's cache that the open fragments of one table may take.
_SHARE = 8
#: Other things kept for a table.
_MOST_KEPT = 64


class OpenTable:
    """The fragments of a version as they are opened; those used longest ago are closed first."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.facts: TableFacts = facts_of(places.manifest)
        #: Whether the files are mapped, so that nobody need wait for them.
        self.near = maps_files(places.base(None))
        self._fragments: OrderedDict[int, tuple[StoredFragment, int]] = OrderedDict()
        self._held = 0
        self._kept: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = fork_safe_lock()

    def fragment(self, place: int) -> StoredFragment:
        """The fragment at a place in the manifest."""
        found = self._fragments.get(place)
        if found is not None:
            return found[0]
        item = self.places.manifest.fragments[place]
        made, size = open_fragment(self.places, item), _size(item)
        with self._lock:
            self._fragments[place] = made, size
            self._held += size
            while self._held > default_options().cache_bytes // _SHARE and len(self._fragments) > 1:
                self._held -= self._fragments.popitem(last=False)[1][1]
        return made

    @cached_property
    def counts(self) -> FragmentCounts:
        """The rows of the fragments; those that an old manifest does not count are opened for that."""
        counts = self.facts.counts
        if not counts.unknown:
            return counts
        physical, deleted = counts.physical.copy(), counts.deleted.copy()
        for place in counts.unknown:
            stored = self.fragment(place)
            physical[place], deleted[place] = stored.physical_rows, len(stored.deleted)
        return FragmentCounts(counts.ids, physical, deleted, ())

    def projection(self, reads: Reads, *, as_keys: bool = False) -> Projection:
        """How some columns are read; the same for questions that read the same, which so learn from each other."""
        key = Projection, reads.schema, reads.system, as_keys
        return self.kept(key, lambda: Projection(reads, as_keys=as_keys))

    def kept(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """What was made for a key before, or is made now; of many keys the oldest are forgotten."""
        found = self._kept.get(key)
        if found is None:
            found = make()
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        return cast(_Made, found)


def _size(item: Fragment) -> int:
    sequences = (item.inline_row_ids, item.inline_created_at_versions, item.inline_last_updated_at_versions)
    return _FILE * (1 + len(item.files)) + _SEQUENCE * sum(len(data) for data in sequences if data)


def open_table(places: Places) -> OpenTable:
    """The open table of some places, the same for as long as they are in use.

    >>> from lancelet.format.fields import Schema
    >>> from lancelet.format.manifest import Manifest
    >>> from lancelet.storage.memory import MemoryStore
    >>> places = Places(MemoryStore("memory://here"), Manifest(Schema(())))
    >>> open_table(places) is open_table(places), open_table(places).counts.live_rows
    (True, 0)
    """
    found = places.kept.get(OpenTable)
    if found is None:
        found = places.kept.setdefault(OpenTable, OpenTable(places))
    return cast(OpenTable, found)
