"""Opening an index by what a manifest says of it: its type, how it names rows, and whether it is known at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from lancelet.format.indexes import IndexMetadata
from lancelet.index.answers import Domain, OpenIndex, Skipped
from lancelet.index.files import IndexFiles
from lancelet.index.scalar.bitmap.search import BitmapIndex
from lancelet.index.scalar.btree.search import BTreeIndex
from lancelet.storage.store import Store

__all__ = ["open_index"]

#: Given the files, the type of the column and how rows are named.
_Opener: TypeAlias = Callable[[IndexFiles, pa.DataType, Domain], OpenIndex]


#: By the kind of the details: how it is opened, the newest version that is known, and the first that names rows by
#: address even where they have stable ids.
_TYPES: dict[str, tuple[_Opener, int, int]] = {
    "bitmapindexdetails": (BitmapIndex, 1, 1),
    "btreeindexdetails": (BTreeIndex, 1, 1),
}


def open_index(
    store: Store, folder: str, metadata: IndexMetadata, kind: pa.DataType, *, stable_row_ids: bool = False
) -> OpenIndex | Skipped:
    """One segment of an index, in a folder of a store; Skipped where it is of a type or version that is not known.

    ``kind`` is the Arrow type of the column. Nothing is read before the first search.

    >>> from uuid import UUID
    >>> from lancelet.storage import open_store
    >>> metadata = IndexMetadata(UUID(int=1), "a_idx", (0,))
    >>> open_index(open_store("memory://opened"), "_indices/x", metadata, pa.int64())
    Skipped(reason="index 'a_idx' does not say of which type it is")
    """
    if metadata.details is None:
        return Skipped(f"index {metadata.name!r} does not say of which type it is")
    # Type URLs are compared without regard to case.
    name = metadata.details.kind.lower()
    if name not in _TYPES:
        return Skipped(
            f"index {metadata.name!r} is of type {metadata.details.kind}, which this release does not search"
        )
    opener, newest, by_address = _TYPES[name]
    version = metadata.index_version or 0
    if version > newest:
        return Skipped(f"index {metadata.name!r} is of version {version}, this release knows {newest} at most")
    domain = Domain.ROW_IDS if stable_row_ids and version < by_address else Domain.ADDRESSES
    return opener(IndexFiles.of(store, folder, metadata), kind, domain)
