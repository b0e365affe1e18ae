"""Opening an index by what a manifest says of it: its type, how it names rows, and whether it is known at all."""

from __future__ import annotations

import pyarrow as pa

from lancelet.format.indexes import IndexDetails, IndexMetadata
from lancelet.index.answers import OpenIndex, Skipped
from lancelet.index.files import IndexFiles
from lancelet.index.kinds import IndexKind, kind_of
from lancelet.index.merging import Part, Remap
from lancelet.storage.store import Store

__all__ = ["open_index", "open_part"]


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
    known = _known(metadata)
    if isinstance(known, Skipped):
        return known
    found, details = known
    domain = found.domain(metadata.index_version or 0, stable_row_ids=stable_row_ids)
    return found.open(IndexFiles.of(store, folder, metadata), kind, domain, details)


def open_part(
    store: Store, folder: str, metadata: IndexMetadata, remap: Remap | None = None, *, stable_row_ids: bool = False
) -> Part | Skipped:
    """One segment of an index as a part to be merged, by the ``merge`` of its type, with others of the same type.

    ``remap`` says what becomes of the rows, which are called as the part's domain has it; None keeps all.
    """
    known = _known(metadata)
    if isinstance(known, Skipped):
        return known
    found, details = known
    domain = found.domain(metadata.index_version or 0, stable_row_ids=stable_row_ids)
    return Part(IndexFiles.of(store, folder, metadata), details, domain, remap)


def _known(metadata: IndexMetadata) -> tuple[IndexKind, IndexDetails] | Skipped:
    """The type of an index, and what it says of itself; Skipped where type or version are not known."""
    details = metadata.details
    if details is None:
        return Skipped(f"index {metadata.name!r} does not say of which type it is")
    found = kind_of(details)
    if found is None:
        return Skipped(f"index {metadata.name!r} is of type {details.kind}, which this release does not search")
    version = metadata.index_version or 0
    if version > found.newest:
        return Skipped(f"index {metadata.name!r} is of version {version}, this release knows {found.newest} at most")
    return found, details
