"""Repair: numbers that old writers left out of manifests, filled in when a table is next written."""

from __future__ import annotations

from dataclasses import replace

from lancelet.file.opening import open_any
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import Manifest
from lancelet.rows.deletion_files import read_deletions
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.paths import Places

__all__ = ["needs_repair", "repaired"]


def needs_repair(before: Manifest, manifest: Manifest) -> bool:
    """Whether rows must be counted anew: some count is missing, or was made by writers that counted wrong.

    Writers that did not name themselves wrote wrong counts.
    """
    return bool(manifest.fragments.without_counts()) or (before.version > 0 and before.writer_version is None)


def repaired(store: Store, before: Manifest, manifest: Manifest) -> Manifest:
    """The manifest with every fragment's counts; reads the files of those that lack them."""
    if not needs_repair(before, manifest):
        return manifest
    places = Places(store, manifest)
    doubtful = before.writer_version is None
    places_of = range(len(manifest.fragments)) if doubtful else manifest.fragments.without_counts()
    changes: dict[int, Fragment | None] = {}
    for place in places_of:
        item = _counted(places, manifest.fragments[place], doubtful=doubtful)
        changes[item.id] = item if item.num_rows else None
    return replace(manifest, fragments=manifest.fragments.changed(changes))


def _counted(places: Places, fragment: Fragment, *, doubtful: bool) -> Fragment:
    """A fragment with its rows and deleted rows counted from its files."""
    files = list(fragment.files)
    rows = fragment.physical_rows
    if (rows is None or doubtful) and files:
        store, path = places.data_file(files[0])
        rows = open_any(store, path, size=files[0].file_size).num_rows
    for number, file in enumerate(files):
        if file.file_size is None:
            store, path = places.data_file(file)
            files[number] = replace(file, file_size=store.size(path))
    deletion = fragment.deletion_file
    if deletion is not None and (deletion.num_deleted_rows is None or doubtful):
        store, path = places.deletion_file(fragment.id, deletion)
        found = read_deletions(
            store.read_all(path),
            deletion.kind,
            physical_rows=rows,
            uri=join_uri(store.uri, path),
            fragment=fragment.id,
        )
        deletion = replace(deletion, num_deleted_rows=len(found))
    return replace(fragment, files=tuple(files), physical_rows=rows, deletion_file=deletion)
