"""LanceFileWriter: writes one data file, as pylance's ``lance.file`` does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.file.blob_sidecars import Sidecars
from lancelet.file.file_writer import LARGEST_PAGE, PAGE_BYTES, FileWriter
from lancelet.file.location import open_parent, refuse_namespace
from lancelet.format.arrow import schema_from_arrow, schema_to_arrow
from lancelet.format.blobs import check_storable, file_schema
from lancelet.format.versions import DEFAULT_VERSION, FileVersion
from lancelet.storage import Store

__all__ = ["LanceFileWriter"]


class LanceFileWriter:
    """Writes rows into a new data file, which appears whole when the writer is closed.

    As a context manager it closes on success; when the block raises, no file is left behind. Without a schema the
    first batch's is taken. ``data_cache_bytes`` is what all columns together may hold back before they write pages
    (8 MiB each by default), ``max_page_bytes`` the size above which one batch is cut into several pages.

    >>> import os, tempfile
    >>> from lancelet.file import LanceFileReader
    >>> path = os.path.join(tempfile.mkdtemp(), "a.lance")
    >>> with LanceFileWriter(path) as writer:
    ...     writer.write_batch(pa.table({"x": [1, 2, 3]}))
    >>> LanceFileReader(path).read_all().to_table()["x"].to_pylist()
    [1, 2, 3]
    """

    def __init__(
        self,
        path: str | Path,
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        namespace_client: object | None = None,
        table_id: list[str] | None = None,
        max_page_bytes: int | None = None,
        _place: tuple[Store, str] | None = None,
    ) -> None:
        refuse_namespace(namespace_client, table_id)
        self._store, self._name = _place or open_parent(path, storage_options=storage_options)
        self._version = DEFAULT_VERSION if version is None else FileVersion.parse(version)
        if self._version in (FileVersion.V0_1, FileVersion.V2_3):
            raise Unsupported(
                f"files of version {self._version.label} are read but not written"
                if self._version is FileVersion.V0_1
                else "version 2.3 is not stable and is not written",
                hint="write 2.0, 2.1 or 2.2",
            )
        for name, value in (("data_cache_bytes", data_cache_bytes), ("max_page_bytes", max_page_bytes)):
            if value is not None and value < 1:
                raise InvalidInput(f"{name} is {value}, expected at least 1")
        self._cache_bytes, self._largest = data_cache_bytes, max_page_bytes or LARGEST_PAGE
        self._metadata: dict[str, str] = {}
        self._writer: FileWriter | None = None
        self.closed = False
        #: The file's size, once it is closed.
        self.size_bytes: int | None = None
        if schema is not None:
            self._open(schema)

    def _open(self, schema: pa.Schema) -> FileWriter:
        stored = schema_from_arrow(schema)
        check_storable(stored, self._version)
        page_bytes = PAGE_BYTES if self._cache_bytes is None else max(self._cache_bytes // max(len(schema), 1), 1)
        self._writer = FileWriter(
            self._store.writer(self._name),
            stored,
            schema_to_arrow(file_schema(stored)),
            self._version,
            page_bytes=page_bytes,
            largest_page=self._largest,
            sidecars=Sidecars(self._store, self._name),
        )
        for key, value in self._metadata.items():
            self._writer.add_schema_metadata(key, value)
        return self._writer

    def _opened(self) -> FileWriter:
        if self.closed:
            raise InvalidInput("the writer is closed", uri=f"{self._store.uri}/{self._name}")
        if self._writer is None:
            raise InvalidInput(
                "the writer has neither a schema nor any batch", hint="give a schema, or write a batch first"
            )
        return self._writer

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows."""
        if self._writer is None and not self.closed:
            self._open(batch.schema)
        self._opened().write(batch)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Put an entry into the metadata of the file's schema."""
        if self._writer is None:
            self._metadata[key] = value
        else:
            self._opened().add_schema_metadata(key, value)

    def add_global_buffer(self, data: bytes) -> int:
        """Store bytes of your own in the file; returns the number to read them by."""
        return self._opened().add_global_buffer(data)

    def close(self) -> int | None:
        """Finish the file and return how many rows it has; None when it was closed before."""
        if self.closed:
            return None
        writer = self._opened()
        self.closed = True
        try:
            self.size_bytes = writer.close()
        except BaseException:
            writer.abort()
            raise
        return writer.num_rows

    def __enter__(self) -> LanceFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif not self.closed:
            self.closed = True
            if self._writer is not None:
                self._writer.abort()
