"""Listings of a table's files: those that its versions name, and all that lie in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeAlias

import pyarrow as pa

from lancelet.format.fragments import DataFile
from lancelet.format.names import DATA, TRANSACTIONS, deletion_path
from lancelet.storage.store import Store
from lancelet.table.parallel import in_order
from lancelet.table.paths import Places
from lancelet.table.snapshot import FoundManifest, Snapshot, read_snapshot

__all__ = ["ALL_FILES", "TRACKED_FILES", "all_files", "tracked_files"]

_NAMES = pa.dictionary(pa.int32(), pa.string())
#: The columns of :func:`tracked_files`.
TRACKED_FILES = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", _NAMES, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    ]
)
#: The columns of :func:`all_files`.
ALL_FILES = pa.schema(
    [
        pa.field("base_uri", _NAMES, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
_ROWS = 8192
#: Where a file is, its path there, and what it is.
_Named: TypeAlias = tuple[str, str, str]


def tracked_files(
    versions: Iterable[FoundManifest],
    total: int,
    store: Store,
    *,
    uri: str,
    places: Callable[[Snapshot], Places],
    concurrency: int,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The files that each of some versions names, version by version; ``progress`` is told how many are through."""

    def read(found: FoundManifest) -> Snapshot:
        return read_snapshot(store, found.path, found.scheme)

    for done, snapshot in enumerate(in_order(read, versions, concurrency=concurrency), 1):
        files = _files(snapshot, places(snapshot), uri)
        while rows := list(islice(files, _ROWS)):
            base, path, kind = zip(*rows, strict=True)
            columns = [
                pa.array([snapshot.version] * len(rows), pa.int64()),
                pa.array(base).dictionary_encode().cast(_NAMES),
                pa.array(path),
                pa.array(kind).dictionary_encode().cast(TRACKED_FILES.field("type").type),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=TRACKED_FILES)
        if progress is not None:
            progress(done, total)


def _files(snapshot: Snapshot, places: Places, uri: str) -> Iterator[_Named]:
    bases = {item.id: item for item in snapshot.manifest.base_paths}

    def own(base_id: int | None) -> str:
        return uri if base_id is None else bases[base_id].path

    def data_path(file: DataFile) -> str:
        root = file.base_id is None or bases[file.base_id].is_dataset_root
        return f"{DATA}/{file.path}" if root else file.path

    yield uri, snapshot.path, "manifest"
    if snapshot.manifest.transaction_file:
        yield uri, f"{TRANSACTIONS}/{snapshot.manifest.transaction_file}", "transaction file"
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            yield own(file.base_id), data_path(file), "data file"
        deleted = fragment.deletion_file
        if deleted is not None:
            yield own(deleted.base_id), deletion_path(fragment.id, deleted), "deletion file"
    for index in snapshot.indexes():
        store, folder = places.index(index)
        named = [item.path for item in index.files] or [
            entry.path[len(folder) + 1 :] for entry in store.list_from(f"{folder}/")
        ]
        for name in named:
            yield own(index.base_id), f"{folder}/{name}", "index file"


def all_files(store: Store, uri: str) -> Iterator[pa.RecordBatch]:
    """The files that lie in a table's folder, whether any version names them or not."""
    entries = store.list_from("")
    while rows := list(islice(entries, _ROWS)):
        columns = [
            pa.array([uri] * len(rows)).dictionary_encode().cast(_NAMES),
            pa.array([item.path for item in rows]),
            pa.array([item.size for item in rows], pa.int64()),
            pa.array([int(item.modified * 1e6) for item in rows], pa.int64()).cast(ALL_FILES.field(3).type),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=ALL_FILES)
