"""Which rows of a fragment are deleted, read from wherever its deletion file lies."""

from __future__ import annotations

from lancelet.format.fragments import Fragment
from lancelet.rows.deletion_files import read_deletions
from lancelet.rows.deletions import NO_DELETIONS, DeletionVector
from lancelet.storage.paths import join_uri
from lancelet.table.paths import Places

__all__ = ["deletions_of"]


def deletions_of(places: Places, fragment: Fragment, *, physical_rows: int | None = None) -> DeletionVector:
    """The deleted rows of a fragment; ``physical_rows`` is for old tables whose fragments do not count them."""
    file = fragment.deletion_file
    if file is None:
        return NO_DELETIONS
    store, path = places.deletion_file(fragment.id, file)
    return read_deletions(
        store.read_all(path),
        file.kind,
        physical_rows=fragment.physical_rows if physical_rows is None else physical_rows,
        num_deleted_rows=file.num_deleted_rows,
        uri=join_uri(store.uri, path),
        fragment=fragment.id,
    )
