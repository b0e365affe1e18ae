"""Data files of a table: rows as they come, written as files of bounded size, each the whole of a new fragment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.file.blob_sidecars import Sidecars
from lancelet.file.file_writer import FileWriter
from lancelet.file.shapes import column_numbers
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.blobs import check_storable, file_schema
from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.names import DATA, data_file_name
from lancelet.format.versions import FileVersion
from lancelet.storage.store import Store, Writer

__all__ = ["Limits", "NewFile", "Rows", "batches_of", "check_version", "discard", "write_fragments"]

#: What rows may come as.
Rows: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large files may grow. Rows are cut exactly; bytes are looked at after each batch."""

    rows_per_file: int = 2**20
    bytes_per_file: int = 90 * 2**30
    #: Rows handed to the writer at a time.
    rows_per_batch: int = 2**17

    def __post_init__(self) -> None:
        for name in ("rows_per_file", "bytes_per_file", "rows_per_batch"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}, expected at least 1")


def check_version(version: FileVersion, schema: Schema) -> None:
    """Raise Unsupported where files of a version are not written, or cannot hold a field of the schema."""
    if version in (FileVersion.V0_1, FileVersion.V2_3):
        raise Unsupported(
            f"data files of version {version.label} are not written", hint="make a new table of version 2.0, 2.1 or 2.2"
        )
    check_storable(schema, version)


def batches_of(rows: Rows, limit: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches, none longer than a limit and none empty."""
    batches = [rows] if isinstance(rows, pa.RecordBatch) else rows
    if isinstance(batches, pa.Table):
        batches = batches.to_batches(max_chunksize=limit)
    for batch in batches:
        for start in range(0, batch.num_rows, limit):
            yield batch if batch.num_rows <= limit else batch.slice(start, limit)


class NewFile:
    """A data file of a table being written; it appears, with its sidecars, when it is finished."""

    def __init__(self, store: Store, schema: Schema, version: FileVersion) -> None:
        self._store, self._schema, self._version = store, schema, version
        self.name = data_file_name()
        path = f"{DATA}/{self.name}"
        self._output: Writer = store.writer(path)
        arrow = schema_to_arrow(file_schema(schema))
        self._writer = FileWriter(self._output, schema, arrow, version, sidecars=Sidecars(store, path))

    @property
    def num_rows(self) -> int:
        """Rows taken in so far."""
        return self._writer.num_rows

    @property
    def num_bytes(self) -> int:
        """Bytes written so far."""
        return self._output.position

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        self._writer.write(batch)

    def finish(self) -> DataFile:
        """Publish the file; returns what a manifest says of it."""
        size = self._writer.close()
        columns = column_numbers(file_schema(self._schema), self._version)
        columns = {number: column for number, column in columns.items() if number >= 0}
        major, minor = self._version.manifest_numbers
        return DataFile(self.name, tuple(columns), tuple(columns.values()), major, minor, size)

    def abort(self) -> None:
        """Give up: no file appears."""
        self._writer.abort()


def write_fragments(
    store: Store, schema: Schema, version: FileVersion, rows: Iterable[pa.RecordBatch], limits: Limits
) -> list[Fragment]:
    """Write rows into as many files as the limits ask for. When that fails nothing is left behind."""
    fragments: list[Fragment] = []
    current: NewFile | None = None
    try:
        for batch in rows:
            start = 0
            while start < batch.num_rows:
                if current is None:
                    current = NewFile(store, schema, version)
                piece = batch.slice(start, limits.rows_per_file - current.num_rows)
                current.write(piece)
                start += piece.num_rows
                if current.num_rows >= limits.rows_per_file or current.num_bytes >= limits.bytes_per_file:
                    fragments.append(_finished(current))
                    current = None
        if current is not None:
            fragments.append(_finished(current))
    except BaseException:
        if current is not None:
            current.abort()
        discard(store, [file for item in fragments for file in item.files])
        raise
    return fragments


def _finished(file: NewFile) -> Fragment:
    return Fragment(0, (file.finish(),), physical_rows=file.num_rows)


def discard(store: Store, files: Iterable[DataFile]) -> None:
    """Remove data files that no manifest names, and their sidecars."""
    for file in files:
        folder = f"{DATA}/{file.path.removesuffix('.lance')}"
        store.delete([entry.path for entry in store.list_from(folder)])
