"""Repair: numbers that old writers left out of manifests, filled in when a table is next written."""

from __future__ import annotations

from dataclasses import replace

from lancelet.file.opening import open_any
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import Manifest
from lancelet.format.operations import Append, Merge, Operation
from lancelet.rows.deletion_files import read_deletions
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.clashes import touched_fragments
from lancelet.table.paths import Places

__all__ = ["repaired"]


def repaired(store: Store, before: Manifest, manifest: Manifest, operation: Operation) -> Manifest:
    """The manifest that follows ``before``, with every fragment's counts, and the sizes of files that came in.

    Reads the files of fragments that lack counts, and asks for sizes that a transaction did not tell. Writers that did
    not name themselves wrote wrong counts.
    """
    fragments = manifest.fragments
    # With nothing before there are no old writers either.
    doubtful = before.version > 0 and before.writer_version is None
    came_in = _came_in(before, manifest, operation)
    if doubtful:
        uncounted = set(range(len(fragments)))
    elif _counts(before):
        uncounted = {place for place in came_in if _lacks_counts(fragments[place])}
    else:
        uncounted = set(fragments.without_counts())
    if not uncounted and not came_in:
        return manifest
    places = Places(store, manifest)
    changes: dict[int, Fragment | None] = {}
    for place in sorted(uncounted | came_in):
        item = fragments[place]
        if place in uncounted:
            item = _counted(places, item, doubtful=doubtful)
        elif all(file.file_size is not None for file in item.files):
            continue
        sized = _sized(places, item)
        changes[item.id] = None if place in uncounted and not sized.num_rows else sized
    return replace(manifest, fragments=fragments.changed(changes)) if changes else manifest


def _counts(before: Manifest) -> bool:
    """Whether a manifest's writer filled in every count, as all do since 1.0, and ours."""
    writer = before.writer_version
    return writer is not None and (writer.library == "lancelet" or not writer.version.startswith("0."))


def _lacks_counts(fragment: Fragment) -> bool:
    deletion = fragment.deletion_file
    return not fragment.physical_rows or (deletion is not None and not deletion.num_deleted_rows)


def _came_in(before: Manifest, manifest: Manifest, operation: Operation) -> set[int]:
    """Places of the fragments that a transaction described."""
    if manifest.fragments is before.fragments:
        return set()
    if isinstance(operation, Append):
        return set(range(len(before.fragments), len(manifest.fragments)))
    ids = manifest.fragments.ids()
    if isinstance(operation, Merge):
        return set(range(len(ids)))
    known = -1 if before.max_fragment_id is None else before.max_fragment_id
    touched = touched_fragments(operation)
    return {place for place, number in enumerate(ids.tolist()) if number > known or number in touched}


def _counted(places: Places, fragment: Fragment, *, doubtful: bool) -> Fragment:
    """A fragment with its rows and deleted rows counted from its files."""
    files = fragment.files
    rows = fragment.physical_rows
    if (rows is None or doubtful) and files:
        store, path = places.data_file(files[0])
        rows = open_any(store, path, size=files[0].file_size).num_rows
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
    return replace(fragment, physical_rows=rows, deletion_file=deletion)


def _sized(places: Places, fragment: Fragment) -> Fragment:
    """A fragment whose files all have their sizes."""
    files = []
    for file in fragment.files:
        if file.file_size is None:
            store, path = places.data_file(file)
            file = replace(file, file_size=store.size(path))
        files.append(file)
    return replace(fragment, files=tuple(files))
