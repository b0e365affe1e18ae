"""Building an index: where its files go, how they are written, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from lancelet.file.file_writer import FileWriter
from lancelet.format.arrow import schema_from_arrow
from lancelet.format.indexes import IndexDetails, IndexFile
from lancelet.format.versions import FileVersion
from lancelet.storage.store import Store

__all__ = ["Built", "Target", "file_version"]

#: Versions that index files are written in; tables of others get the nearest of these.
_WRITTEN = {FileVersion.V0_1: FileVersion.V2_0, FileVersion.V2_3: FileVersion.V2_2}


def file_version(table: FileVersion) -> FileVersion:
    """The version of the index files of a table whose data files have a version.

    >>> file_version(FileVersion.V0_1).label, file_version(FileVersion.V2_1).label
    ('2.0', '2.1')
    """
    return _WRITTEN.get(table, table)


@dataclass(frozen=True, slots=True)
class Built:
    """A segment whose files are written: what a manifest says of it, but for names and coverage."""

    details: IndexDetails
    index_version: int
    files: tuple[IndexFile, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a segment is written, and how."""

    store: Store
    #: The segment's own folder.
    folder: str
    version: FileVersion
    #: Bytes that building may hold.
    memory: int
    #: Whether rows have stable ids, so that addresses and ids are not the same.
    stable_row_ids: bool = False
    #: What has been written.
    files: list[IndexFile] = field(default_factory=list)

    @contextmanager
    def file(self, name: str, schema: pa.Schema) -> Iterator[FileWriter]:
        """A file of the segment, which appears when the block ends well. Metadata may be put in until then."""
        stored = schema_from_arrow(schema)
        output = self.store.writer(f"{self.folder}/{name}")
        writer = FileWriter(output, stored, schema, file_version(self.version))
        try:
            yield writer
            self.files.append(IndexFile(name, writer.close()))
        except BaseException:
            writer.abort()
            raise

    def built(self, type_url: str, index_version: int, details: bytes = b"") -> Built:
        """The segment, all of whose files are written."""
        return Built(IndexDetails(type_url, details), index_version, tuple(self.files))
