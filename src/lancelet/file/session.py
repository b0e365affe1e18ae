"""LanceFileSession: many files below one place, over one store."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lancelet.errors import NotFound
from lancelet.file.blob_sidecars import DedicatedBlobWriter, PackedBlobWriter
from lancelet.file.data_file import open_file
from lancelet.file.location import refuse_namespace
from lancelet.file.reader import LanceFileReader
from lancelet.file.writer import LanceFileWriter
from lancelet.storage import open_store

__all__ = ["LanceFileSession", "ListResult"]

_PIECE = 8 * 2**20


@dataclass(frozen=True, slots=True)
class ListResult:
    """One level of a directory: the directories in it, and the files."""

    common_prefixes: list[str]
    objects: list[str]


class LanceFileSession:
    """Reads, writes and handles files whose paths are relative to one base path.

    >>> session = LanceFileSession("memory://docs")
    >>> with session.open_writer("a.lance") as writer:
    ...     writer.write_batch(pa.table({"x": [1]}))
    >>> session.list(), session.contains("b.lance")
    (['a.lance'], False)
    """

    def __init__(
        self,
        base_path: str | Path,
        storage_options: Mapping[str, str] | None = None,
        namespace_client: object | None = None,
        table_id: list[str] | None = None,
    ) -> None:
        refuse_namespace(namespace_client, table_id)
        self._store = open_store(base_path, storage_options=storage_options)

    def open_reader(self, path: str, columns: Sequence[str] | None = None) -> LanceFileReader:
        """A reader of one file."""
        return LanceFileReader(path, columns=columns, _file=open_file(self._store, path))

    def open_writer(
        self,
        path: str,
        *,
        schema: pa.Schema | None = None,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        keep_original_array: bool | None = None,  # noqa: ARG002 - what was written is never kept
        max_page_bytes: int | None = None,
    ) -> LanceFileWriter:
        """A writer of one file."""
        return LanceFileWriter(
            path,
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            max_page_bytes=max_page_bytes,
            _place=(self._store, path),
        )

    def open_packed_blob_writer(self, path: str, blob_id: int) -> PackedBlobWriter:
        """A writer of a sidecar for many blobs of the data file at ``path``."""
        return PackedBlobWriter(self._store, path, blob_id)

    def open_dedicated_blob_writer(self, path: str, blob_id: int) -> DedicatedBlobWriter:
        """A writer of a sidecar for a single blob of the data file at ``path``."""
        return DedicatedBlobWriter(self._store, path, blob_id)

    def contains(self, path: str) -> bool:
        """Whether a file exists."""
        try:
            self._store.size(path)
        except NotFound:
            return False
        return True

    def list(self, path: str | None = None) -> list[str]:
        """All files below a directory, at any depth."""
        return [entry.path for entry in self._store.list_from(_directory(path))]

    def list_with_delimiter(self, path: str | None = None) -> ListResult:
        """The directories and files right below a directory."""
        prefix = _directory(path)
        directories: dict[str, None] = {}
        files = []
        for entry in self._store.list_from(prefix):
            name, slash, _ = entry.path[len(prefix) :].partition("/")
            if slash:
                directories[prefix + name] = None
            else:
                files.append(entry.path)
        return ListResult([*directories], files)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Some bytes of a file."""
        return bytes(self._store.read(path, [(offset, length)])[0])

    def delete_file(self, path: str) -> None:
        """Remove a file; NotFound if there is none."""
        self._store.size(path)
        self._store.delete([path])

    def upload_file(self, local_path: str | Path, remote_path: str) -> None:
        """Copy a local file to below the base path."""
        with open(local_path, "rb") as source, self._store.writer(remote_path) as target:
            while piece := source.read(_PIECE):
                target.write(piece)

    def download_file(self, remote_path: str, local_path: str | Path) -> None:
        """Copy a file from below the base path to a local one."""
        size = self._store.size(remote_path)
        part = Path(f"{local_path}.part")
        with open(part, "wb") as target:
            pieces = ((start, min(_PIECE, size - start)) for start in range(0, size, _PIECE))
            target.writelines(self._store.read(remote_path, [piece])[0] for piece in pieces)
        shutil.move(part, local_path)


def _directory(path: str | None) -> str:
    return "" if not path or path == "/" else path.rstrip("/") + "/"
