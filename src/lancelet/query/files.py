"""Open data files, kept in the process's cache of made objects without anything live: no store, no memory map."""

from __future__ import annotations

from lancelet.file.data_file import DataFile as OpenFile
from lancelet.file.data_file import KeptFile, open_file
from lancelet.file.legacy import LegacyFile
from lancelet.file.opening import open_table_legacy
from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile
from lancelet.format.versions import FileVersion
from lancelet.storage.objects import process_objects
from lancelet.storage.store import Store, maps_files
from lancelet.table.paths import Places

__all__ = ["is_known", "open_data_file"]

#: Bytes that parsed metadata take for each stored byte, and an open file besides, roughly.
_PARSED, _FILE = 6, 4096
#: Indexes of pages are found later: so many bytes for each chunk of a few kilobytes, and dictionaries.
_INDEX_SHARE = 32


def open_data_file(places: Places, item: DataFile, schema: Schema) -> OpenFile | LegacyFile:
    """A data file of a table, opened or found in the cache. ``schema`` is what a manifest knows of a 0.1 file."""
    store, path = places.data_file(item)
    if item.version is FileVersion.V0_1:
        return open_table_legacy(store, path, schema=schema, field_ids=item.fields)
    return _kept(store, path, item).open(store)


def kept_data_file(places: Places, item: DataFile) -> tuple[OpenFile, memoryview]:
    """What is known of a small data file of version 2.0 or later, and all its bytes."""
    store, path = places.data_file(item)
    return _kept(store, path, item).file, store.read_all(path)


def _kept(store: Store, path: str, item: DataFile) -> KeptFile:
    def make() -> tuple[KeptFile, int]:
        made = open_file(store, path, size=item.file_size)
        size = _FILE + _PARSED * len(made.metadata) + made.size // _INDEX_SHARE
        return made.kept(), size

    return process_objects().get(_key(store, path), make)


def is_known(places: Places, item: DataFile) -> bool:
    """Whether a data file can be opened without a request."""
    return process_objects().holds(_key(*places.data_file(item)))


def _key(store: Store, path: str) -> tuple[str, str, str, bool]:
    return store.uri, path, "data file", maps_files(store)
