"""LanceFileReader: rows of one data file, as pylance's ``lance.file`` offers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from lancelet.encodings.chunks import Ints
from lancelet.encodings.page import Rows
from lancelet.encodings.shape import Shape
from lancelet.errors import InvalidInput, LanceletError, Unsupported
from lancelet.file.data_file import DataFile
from lancelet.file.legacy import LegacyFile
from lancelet.file.location import open_parent, refuse_namespace
from lancelet.file.metadata import LanceFileMetadata, LanceFileStatistics, describe, statistics
from lancelet.file.opening import open_any
from lancelet.file.plan import FilePlan, plan_file
from lancelet.file.shapes import column_numbers, project, shapes_of
from lancelet.file.stream import read_table, stream_batches
from lancelet.format.arrow import schema_to_arrow

__all__ = ["LanceFileReader", "ReaderResults"]


class ReaderResults:
    """Rows that were asked for, to be had as a stream of batches or as one table."""

    def __init__(self, source: LanceFileReader, rows: Rows, batch_size: int) -> None:
        self._source, self._rows, self._batch_size = source, rows, batch_size

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream; memory stays bounded however many there are."""
        source = self._source
        batches = stream_batches(source.file, source.shapes, source.schema, self._rows, self._batch_size)
        return pa.RecordBatchReader.from_batches(source.schema, batches)

    def to_table(self) -> pa.Table:
        """All rows at once."""
        source = self._source
        return read_table(source.file, source.shapes, source.schema, self._rows)


class LanceFileReader:
    """Reads one Lance data file of any version.

    ``columns`` may name nested fields by dotted paths. Opening reads the metadata alone, in one request where ``size``,
    the file's bytes, is known.

    >>> import pyarrow as pa, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.lance")
    >>> with LanceFileWriter(path) as writer:  # doctest: +SKIP
    ...     writer.write_batch(pa.table({"x": [1, 2, 3]}))
    >>> LanceFileReader(path).read_range(1, 2).to_table()["x"].to_pylist()  # doctest: +SKIP
    [2, 3]
    """

    def __init__(
        self,
        path: str | Path,
        storage_options: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
        *,
        namespace_client: object | None = None,
        table_id: list[str] | None = None,
        size: int | None = None,
        _file: DataFile | LegacyFile | None = None,
    ) -> None:
        refuse_namespace(namespace_client, table_id)
        if _file is None:
            store, name = open_parent(path, storage_options=storage_options)
            _file = open_any(store, name, size=size)
        if columns is not None and not len(columns):
            raise InvalidInput("zero columns asked for, expected at least one", uri=_file.uri)
        self.file = _file
        self.schema, self.shapes = _projected(_file, columns)

    def read_all(self, *, batch_size: int = 1024, batch_readahead: int = 16) -> ReaderResults:
        """Every row of the file."""
        return self.read_range(0, self.file.num_rows, batch_size=batch_size, batch_readahead=batch_readahead)

    def read_range(
        self,
        start: int,
        num_rows: int,
        *,
        batch_size: int = 1024,
        batch_readahead: int = 16,  # noqa: ARG002
    ) -> ReaderResults:
        """``num_rows`` rows from row ``start`` on."""
        if start < 0 or num_rows < 0 or start + num_rows > self.file.num_rows:
            raise InvalidInput(
                f"rows {start:,}..{start + num_rows:,} asked of a file with {self.file.num_rows:,}", uri=self.file.uri
            )
        return ReaderResults(self, slice(start, start + num_rows), _checked(batch_size))

    def take_rows(
        self,
        indices: Sequence[int],
        *,
        batch_size: int = 1024,
        batch_readahead: int = 16,  # noqa: ARG002
    ) -> ReaderResults:
        """The rows with these numbers, which must ascend; a number may repeat."""
        return ReaderResults(self, self._numbers(indices), _checked(batch_size))

    def _numbers(self, indices: Sequence[int]) -> Ints:
        rows = np.asarray(indices, np.int64).reshape(-1)
        if len(rows):
            if len(rows) > 1 and np.any(rows[1:] < rows[:-1]):
                raise InvalidInput("row numbers must ascend", hint="sort them first")
            if rows[0] < 0 or rows[-1] >= self.file.num_rows:
                wrong = rows[0] if rows[0] < 0 else rows[-1]
                raise InvalidInput(f"row {wrong:,} asked of a file with {self.file.num_rows:,}", uri=self.file.uri)
        return rows

    def plan(
        self,
        columns: Sequence[str] | None = None,
        rows: slice | Sequence[int] | None = None,
        *,
        read_indexes: bool = False,
    ) -> FilePlan:
        """Which bytes some rows need, without reading them: all rows, a range, or single ones in ascending order.

        Pages whose rows are found by an index show that index first; with ``read_indexes``, which reads them, the plan
        is exact. A file that is mapped is planned as if it were not.

        >>> from lancelet.file import LanceFileWriter
        >>> with LanceFileWriter("memory://plans/a.lance") as writer:
        ...     writer.write_batch(pa.table({"x": [1.5] * 5, "y": [b"abc", b"d", b"ef", b"", b"g"]}))
        >>> LanceFileReader("memory://plans/a.lance").plan(["y"], slice(1, 3), read_indexes=True).num_bytes
        40
        """
        file = self.paged().unmapped()
        schema_and_shapes = (self.schema, self.shapes) if columns is None else _projected(file, columns)
        wanted = self._rows(rows)
        return plan_file(file, schema_and_shapes[1], wanted, read_indexes=read_indexes)

    def _rows(self, rows: slice | Sequence[int] | None) -> Rows:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.num_rows())
            if step != 1:
                raise InvalidInput(f"rows in steps of {step}, expected a range or row numbers")
            return slice(start, max(start, stop))
        return slice(0, self.num_rows()) if rows is None else self._numbers(rows)

    def metadata(self) -> LanceFileMetadata:
        """What the file says of itself: schema, pages, buffers."""
        return describe(self.paged(), self.schema)

    def file_statistics(self) -> LanceFileStatistics:
        """Pages and bytes of each column."""
        return statistics(self.paged())

    def read_global_buffer(self, index: int) -> bytes:
        """One global buffer; number 0 is the file's own descriptor."""
        return self.paged().global_buffer(index)

    def paged(self) -> DataFile:
        """The open file, where it is of version 2.0 or later and so has pages."""
        if isinstance(self.file, LegacyFile):
            raise Unsupported("a file of version 0.1 has no such metadata", uri=self.file.uri)
        return self.file

    def num_rows(self) -> int:
        """Rows in the file."""
        return self.file.num_rows


def _projected(file: DataFile | LegacyFile, columns: Sequence[str] | None) -> tuple[pa.Schema, list[Shape]]:
    """The schema of some columns and where they are stored."""
    stored = file.descriptor.schema
    try:
        numbered = column_numbers(stored, file.version)
        # The whole schema is looked at even where little of it is wanted: a damaged one is named at once.
        arrow = schema_to_arrow(stored)
        if columns is None:
            return arrow, shapes_of(stored, arrow, numbered)
        wanted = project(stored, columns)
        arrow = schema_to_arrow(wanted)
        return arrow, shapes_of(wanted, arrow, numbered)
    except LanceletError as error:
        raise error.where(uri=file.uri) from None


def _checked(batch_size: int) -> int:
    if batch_size < 1:
        raise InvalidInput(f"batch_size is {batch_size}, expected at least 1")
    return batch_size
