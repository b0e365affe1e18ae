"""What indexes a version has: their segments by name, over which columns, how many rows they cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lancelet.format.indexes import IndexMetadata
from lancelet.index.kinds import kind_of
from lancelet.ops.index.columns import path_of_field
from lancelet.ops.index.errors import NoSuchIndex
from lancelet.rows.bitmaps import BitMap
from lancelet.table.index_upkeep import covered
from lancelet.table.snapshot import Snapshot

__all__ = ["DescribedIndex", "described_indexes", "indexed_fragments", "label_of", "live_rows", "segments_named"]

#: How types are called that this release lists, but neither builds nor searches.
_OTHERS = {
    "InvertedIndexDetails": "Inverted",
    "VectorIndexDetails": "Vector",
    "FragmentReuseIndexDetails": "FragmentReuse",
    "MemWalIndexDetails": "MemWal",
    "NGramIndexDetails": "NGram",
    "MinHashLshIndexDetails": "MinHashLsh",
}


@dataclass(frozen=True, slots=True)
class DescribedIndex:
    """An index: all segments of one name."""

    name: str
    label: str
    type_url: str
    fields: tuple[int, ...]
    #: Dotted paths, as users write them.
    columns: tuple[str, ...]
    #: Live rows in fragments that the segments cover.
    rows: int
    segments: tuple[IndexMetadata, ...]

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all files; None where a writer did not say."""
        if not all(item.files for item in self.segments):
            return None
        return sum(file.size_bytes for item in self.segments for file in item.files)


def described_indexes(snapshot: Snapshot) -> list[DescribedIndex]:
    """All indexes of a version by their names, those of the system among them."""
    indexes = snapshot.indexes()
    return [_described(snapshot, name, indexes) for name in sorted({item.name for item in indexes})]


def _described(snapshot: Snapshot, name: str, indexes: Sequence[IndexMetadata]) -> DescribedIndex:
    segments = tuple(item for item in indexes if item.name == name)
    first = segments[0]
    paths = [path_of_field(snapshot.schema, number) for number in first.fields]
    return DescribedIndex(
        name,
        label_of(first),
        "" if first.details is None else first.details.type_url,
        first.fields,
        tuple(path for path in paths if path is not None),
        sum(live_rows(snapshot, indexed_fragments(item)) for item in segments),
        segments,
    )


def label_of(index: IndexMetadata) -> str:
    """What the type of an index is called when it is described.

    >>> from uuid import UUID
    >>> from lancelet.format.indexes import IndexDetails
    >>> label_of(IndexMetadata(UUID(int=1), "x", (0,), details=IndexDetails("/lance.table.BTreeIndexDetails")))
    'BTree'
    """
    if index.details is None:
        return "Unknown"
    kind = kind_of(index.details)
    return _OTHERS.get(index.details.kind, "Unknown") if kind is None else kind.label


def segments_named(snapshot: Snapshot, name: str) -> tuple[IndexMetadata, ...]:
    """The segments of an index; NoSuchIndex with those there are."""
    indexes = snapshot.indexes()
    found = tuple(item for item in indexes if item.name == name)
    if not found:
        known = ", ".join(sorted({item.name for item in indexes})) or "the version has none"
        raise NoSuchIndex(
            f"there is no index {name!r}", uri=snapshot.uri, version=snapshot.version, hint=f"indexes are: {known}"
        )
    return found


def indexed_fragments(index: IndexMetadata) -> BitMap:
    """The fragments that a segment covers, those that are gone among them."""
    found = covered(index)
    return BitMap() if found is None else found


def live_rows(snapshot: Snapshot, fragments: BitMap) -> int:
    """Rows that are not deleted in those of some fragments that exist."""
    known = snapshot.manifest.fragments
    chosen = np.isin(known.ids(), np.array(fragments, np.uint64))
    return int((known.physical_rows() - known.deleted_rows())[chosen].sum())
