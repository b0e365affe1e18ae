"""Writing a data file of version 2.0 or later: rows in, pages out, and the metadata behind them.

A file, front to back: page buffers, each starting at a multiple of 64; the global buffers likewise, the schema last;
column metadata; the column offset table; the global buffer offset table; the footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lancelet.encodings.blob import PendingBlobs
from lancelet.encodings.encode import encode_page
from lancelet.encodings.leaf_page import EncodedPage
from lancelet.encodings.leaf_pages import LeafWriter
from lancelet.encodings.shape import Shape, leaves, path_to, split
from lancelet.encodings.v2_0.node_writer import NodeWriter
from lancelet.encodings.values import Bytes
from lancelet.errors import InvalidInput
from lancelet.file.blob_batches import BlobBatches
from lancelet.file.blob_sidecars import Sidecars
from lancelet.file.column_buffer import ColumnBuffer, Flush
from lancelet.file.prepare import prepared
from lancelet.file.shapes import column_numbers, shapes_of, stored_fields
from lancelet.file.tail import put_aligned, write_tail
from lancelet.file.workers import map_tasks
from lancelet.file.writing_v2_0 import column_encodings, node_writers, split_nodes
from lancelet.format.arrays import BlobColumn, ColumnEncoding, ValuesColumn
from lancelet.format.blobs import file_schema, is_blob_v2
from lancelet.format.columns import Column, Page, Range, describe_page
from lancelet.format.fields import Field, FileDescriptor, Schema
from lancelet.format.versions import FileVersion
from lancelet.storage.store import Writer

__all__ = ["PAGE_BYTES", "FileWriter"]

#: Rows of a column are encoded once they take this much memory …
PAGE_BYTES = 8 * 2**20
#: … and a single batch that takes more than this is cut into several pages.
LARGEST_PAGE = 32 * 2**20
_WORTH_A_THREAD = 2**20
_AT_ONCE = 16
_STRUCTURAL = "lance-encoding:structural-encoding"


class FileWriter:
    """Writes rows of one schema into one file. Memory is bounded by a page for each column, whatever the file's size.

    ``schema`` has field ids; ``arrow`` is the Arrow schema of its ``file_schema``. Batches must look like that, except
    that columns of blob v2 come with their payloads; those too large for the file go into ``sidecars``. URIs of blobs
    that lie below one of ``bases`` (the table's, by id) are kept relative to it.
    """

    def __init__(
        self,
        output: Writer,
        schema: Schema,
        arrow: pa.Schema,
        version: FileVersion,
        *,
        page_bytes: int = PAGE_BYTES,
        largest_page: int = LARGEST_PAGE,
        sidecars: Sidecars | None = None,
        bases: Mapping[int, str] | None = None,
    ) -> None:
        self.num_rows = 0
        self._sidecars = sidecars
        self._blob_batches = None
        if any(map(is_blob_v2, schema.walk())):
            if sidecars is None:
                raise InvalidInput("the schema has blob columns, but no sidecars were given to the writer")
            self._blob_batches = BlobBatches(schema, output, sidecars, bases=bases)
            schema = file_schema(schema)
        self._output, self._schema, self._arrow, self._version = output, schema, arrow, version
        self._shapes = shapes_of(schema, arrow, column_numbers(schema, version))
        self._global_buffers: list[Range] = []
        self._encodings = _encodings(schema, version)
        self._blobs = {at for at, encoding in enumerate(self._encodings) if isinstance(encoding, BlobColumn)}
        self._pages: list[list[Page]] = [[] for _ in self._encodings]
        self._buffers = {
            column: ColumnBuffer(column, writer, page_bytes, largest_page)
            for column, writer in _writers(schema, self._shapes, version).items()
        }

    @property
    def version(self) -> FileVersion:
        """The version being written."""
        return self._version

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take rows in. Columns are matched by name; all must be there, no other may."""
        for part in batch.to_batches() if isinstance(batch, pa.Table) else (batch,):
            flushes: list[Flush] = []
            stored = part if self._blob_batches is None else self._blob_batches.stored(part)
            for shape, array in zip(self._shapes, prepared(stored, self._arrow), strict=True):
                for column, rows in self._split(shape, array):
                    flushes.extend(self._buffers[column].add(rows))
            self.num_rows += part.num_rows
            self._encode(flushes)

    def _split(self, shape: Shape, array: pa.Array) -> Iterable[tuple[int, pa.Array]]:
        if self._version is FileVersion.V2_0:
            return split_nodes(shape, array, self._blobs, self._put)
        return split(shape, array).items()

    def _encode(self, flushes: Sequence[Flush]) -> None:
        large = sum(flush.rows.nbytes for flush in flushes) >= _WORTH_A_THREAD
        # Many columns may be due at once; their pages are not all held before the first is written.
        for first in range(0, len(flushes), _AT_ONCE):
            self._encode_group(flushes[first : first + _AT_ONCE], threads=large)

    def _encode_group(self, flushes: Sequence[Flush], *, threads: bool) -> None:
        for flush, pages in zip(flushes, map_tasks(Flush.encode, flushes, threads=threads), strict=True):
            row = flush.first_row
            for page in pages:
                self._pages[flush.column].append(self._place(page, row, flush.writer.scale))
                row += page.num_rows

    def _place(self, page: EncodedPage | PendingBlobs, first_row: int, scale: int) -> Page:
        if isinstance(page, PendingBlobs):
            page = page.placed(self._put)
        buffers = [self._put(buffer) for buffer in page.buffers]
        # Entries of a 2.0 column below lists are no rows: its pages have no priority.
        priority = 0 if self._version is FileVersion.V2_0 else first_row
        return describe_page(page.layout, buffers=buffers, length=page.num_rows * scale, priority=priority)

    def _put(self, data: Bytes | bytes) -> Range:
        """Write one buffer at the next multiple of the alignment."""
        return put_aligned(self._output, data if isinstance(data, bytes) else data.data)

    def add_global_buffer(self, data: bytes) -> int:
        """Store bytes of the caller's; returns the number under which they are read again (the schema is number 0)."""
        self._global_buffers.append(self._put(data))
        return len(self._global_buffers)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Put one more entry into the schema's metadata."""
        self._schema = replace(self._schema, metadata={**self._schema.metadata, key: value})

    def close(self) -> int:
        """Write what waits and all metadata, publish the file, and return its size."""
        self._encode([flush for buffer in self._buffers.values() for flush in buffer.take()])
        self._fill_empty_columns()
        described = zip(self._pages, self._encodings, strict=True)
        columns = [Column(tuple(pages), encoding=encoding) for pages, encoding in described]
        descriptor = FileDescriptor(self._schema, self.num_rows)
        write_tail(self._output, self._version, descriptor, columns, self._global_buffers)
        if self._sidecars is not None:
            # The file refers to them: once it can be seen, they must be there.
            self._sidecars.finish_all()
        return self._output.close()

    def _fill_empty_columns(self) -> None:
        """In 2.0 a column below lists that hold nothing has a page all the same: some readers look for it."""
        for column, buffer in self._buffers.items():
            if self.num_rows and not self._pages[column] and isinstance(buffer.writer, NodeWriter):
                self._pages[column].append(self._place(buffer.writer.empty(), 0, 1))

    def abort(self) -> None:
        """Give up: no file appears."""
        self._output.abort()
        if self._sidecars is not None:
            self._sidecars.abort()


def _encodings(schema: Schema, version: FileVersion) -> list[ColumnEncoding]:
    if version is FileVersion.V2_0:
        return column_encodings(schema)
    return [ValuesColumn() for _ in stored_fields(schema)]


def _writers(schema: Schema, shapes: Sequence[Shape], version: FileVersion) -> Mapping[int, LeafWriter | NodeWriter]:
    """What makes the pages of each column."""
    if version is FileVersion.V2_0:
        return node_writers(schema, shapes)
    fields = list(stored_fields(schema))
    return {
        leaf.column: LeafWriter(path_to(shape, leaf.column), version, encode_page, _wishes(fields[leaf.column], shape))
        for shape in shapes
        for leaf in leaves(shape)
    }


def _wishes(field: Field, top: Shape) -> dict[str, str]:
    """What the metadata asks of the encodings: the field's own, but the structural encoding of the top-level field."""
    own = {key: value for key, value in field.metadata.items() if key != _STRUCTURAL}
    inherited = (top.field.metadata or {}).get(_STRUCTURAL.encode())
    return own if inherited is None else {**own, _STRUCTURAL: inherited.decode()}
