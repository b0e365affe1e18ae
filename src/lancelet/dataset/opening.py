"""Opening a table: the version that a number, a tag or nothing means at a place."""

from __future__ import annotations

from lancelet.dataset.location import TableLocation
from lancelet.dataset.references import version_number
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["open_version"]


def open_version(location: TableLocation, version: object) -> Snapshot:
    """The newest version of the table at a place, or the one that a number or a tag means.

    >>> open_version(TableLocation(uri="memory://no-table"), None)
    Traceback (most recent call last):
    lancelet.errors.NotFound: there is no table [uri=memory://no-table]
    """
    store = location.open()
    if isinstance(version, str):
        # Tags are in the table's own folder, which is another one where the place is that of a branch.
        return resolve_ref(open_snapshot(store, options=location.options), version)
    number = None if version is None else version_number(version)
    return open_snapshot(store, version=number, options=location.options)
