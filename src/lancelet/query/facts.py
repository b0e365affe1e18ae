"""What questions to one version need again and again: its columns, the rows of its fragments, kept while it lives."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.format.blobs import described_schema
from lancelet.format.fields import Schema
from lancelet.format.flags import STABLE_ROW_IDS
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import Manifest
from lancelet.query.request import bound_schema
from lancelet.storage.locks import fork_safe_lock
from lancelet.table.snapshot import Snapshot

__all__ = ["FragmentCounts", "TableFacts", "facts_of"]


@dataclass(frozen=True, eq=False)
class FragmentCounts:
    """The fragments of a version by place: ids and rows, as far as the manifest says."""

    ids: npt.NDArray[np.uint64]
    physical: npt.NDArray[np.int64]
    deleted: npt.NDArray[np.int64]
    #: Places of fragments whose counts are not known.
    unknown: tuple[int, ...]

    @cached_property
    def live_ends(self) -> npt.NDArray[np.int64]:
        """Live rows of each fragment and those before it, together."""
        return np.cumsum(self.physical - self.deleted)

    @cached_property
    def live_end_list(self) -> list[int]:
        """The same as a list, which is faster for one row."""
        found: list[int] = self.live_ends.tolist()
        return found

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each id."""
        return {number: place for place, number in enumerate(self.ids.tolist())}

    @property
    def live_rows(self) -> int:
        """Live rows of all fragments."""
        return self.live_end_list[-1] if len(self.ids) else 0

    def live_before(self, place: int) -> int:
        """Live rows before the fragment at a place."""
        return self.live_end_list[place - 1] if place else 0


class TableFacts:
    """Facts about one manifest, found when they are first asked for."""

    def __init__(self, manifest: Manifest) -> None:
        # Weak: whoever asks holds the manifest, and facts must not keep it alive.
        self._manifest = weakref.ref(manifest)
        self._indexes: tuple[IndexMetadata, ...] | None = None
        #: What else is worth finding once, under a key of whoever finds it.
        self.kept: dict[Hashable, object] = {}

    @property
    def manifest(self) -> Manifest:
        """What the facts are about."""
        found = self._manifest()
        assert found is not None
        return found

    @cached_property
    def stored(self) -> Schema:
        """The fields as scans read them: blobs are descriptions of where they lie."""
        return described_schema(self.manifest.schema)

    @cached_property
    def bound(self) -> pa.Schema:
        """The columns that expressions may name."""
        return bound_schema(self.manifest.schema)

    @cached_property
    def stable_row_ids(self) -> bool:
        """Whether rows have ids that stay when they move."""
        return bool(self.manifest.reader_flags & STABLE_ROW_IDS.value)

    @cached_property
    def counts(self) -> FragmentCounts:
        """The rows of the fragments."""
        items = self.manifest.fragments
        unknown = tuple(items.without_counts())
        return FragmentCounts(items.ids(), items.physical_rows(), items.deleted_rows(), unknown)

    def indexes(self, snapshot: Snapshot) -> tuple[IndexMetadata, ...]:
        """The indexes of the version, of which ``snapshot`` must be."""
        if self._indexes is None:
            self._indexes = snapshot.indexes()
        return self._indexes

    def place_of(self, fragment: int) -> int:
        """Where the fragment with an id stands; InvalidInput if there is none."""
        place = self.counts.places.get(fragment)
        if place is None:
            known = self.counts.ids.tolist()
            hint = f"there are {len(known)}: {', '.join(map(str, known[:10]))}{', ...' if len(known) > 10 else ''}"
            raise InvalidInput(f"there is no fragment {fragment}", version=self.manifest.version, hint=hint)
        return place


_known: dict[int, TableFacts] = {}
_lock = fork_safe_lock()


def facts_of(manifest: Manifest) -> TableFacts:
    """The facts about a manifest, the same object each time.

    >>> manifest = Manifest(Schema(()))
    >>> facts_of(manifest) is facts_of(manifest), facts_of(manifest).counts.live_rows
    (True, 0)
    """
    found = _known.get(id(manifest))
    if found is not None and found._manifest() is manifest:
        return found
    made = TableFacts(manifest)
    with _lock:
        _known[id(manifest)] = made
    weakref.finalize(manifest, _known.pop, id(manifest), None)
    return made
