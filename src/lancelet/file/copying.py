"""Copying pages: those of several files one behind the other in a new file, as they are, without decoding anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lancelet.errors import Unsupported
from lancelet.file.data_file import DataFile
from lancelet.file.shapes import column_numbers
from lancelet.file.tail import write_tail
from lancelet.format.arrays import ValuesColumn
from lancelet.format.columns import ALIGNMENT, Column, Deferred, Page, Range
from lancelet.format.fields import FileDescriptor, Schema
from lancelet.format.versions import FileVersion
from lancelet.storage.store import Writer

__all__ = ["PageCopier", "copy_obstacle"]


def copy_obstacle(file: DataFile, schema: Schema, version: FileVersion) -> str | None:
    """Why the pages of a file cannot stand as they are in a new one of some fields and version; None where they can."""
    if version < FileVersion.V2_1:
        return f"pages of version {version.label} are not copied"
    if file.version is not version:
        return f"the file is of version {file.version.label}, the new one is to be of {version.label}"
    expected = len(set(column_numbers(schema, version).values()))
    if len(file.column_places) != expected:
        return f"the file has {len(file.column_places)} columns, the new one is to have {expected}"
    for number in range(expected):
        column = file.column(number)
        if column.buffers or not isinstance(column.encoding, ValuesColumn):
            return f"column {number} has buffers besides its pages"
        if any(isinstance(page.description, Deferred) for page in column.pages):
            return f"pages of column {number} are described elsewhere in the file"
    return None


class PageCopier:
    """A new file made of the pages of others, whose columns are the same fields in the same order."""

    def __init__(self, output: Writer, schema: Schema, version: FileVersion, *, batch_bytes: int = 16 * 2**20) -> None:
        self.num_rows = 0
        self._output, self._schema, self._version = output, schema, version
        self._batch_bytes = batch_bytes
        self._pages: list[list[Page]] = [[] for _ in set(column_numbers(schema, version).values())]

    def append(self, file: DataFile) -> None:
        """Take all rows of a file in. Unsupported where its pages cannot stand in the new file."""
        obstacle = copy_obstacle(file, self._schema, self._version)
        if obstacle is not None:
            raise Unsupported(obstacle, uri=file.uri)
        for number, pages in enumerate(self._pages):
            before = file.column(number).pages
            places = iter(self._copied(file, [place for page in before for place in page.buffers]))
            for page in before:
                buffers = tuple(next(places) for _ in page.buffers)
                pages.append(Page(buffers, page.length, page.priority + self.num_rows, page.description))
        self.num_rows += file.num_rows

    def _copied(self, file: DataFile, ranges: Sequence[Range]) -> list[Range]:
        """Copy buffers, a bounded number of bytes at a time; where they lie now."""
        found: list[Range] = []
        for batch in _batches(ranges, self._batch_bytes):
            data = file.read([(start, size) for start, size, _ in batch])
            for piece, (_, size, first) in zip(data, batch, strict=True):
                if first:
                    self._output.write(bytes(-self._output.position % ALIGNMENT))
                    found.append((self._output.position, 0))
                if size:
                    self._output.write(piece.data)
                    found[-1] = (found[-1][0], found[-1][1] + size)
        return found

    def close(self) -> int:
        """Write all metadata, publish the file, and return its size."""
        columns = [Column(tuple(pages), encoding=ValuesColumn()) for pages in self._pages]
        write_tail(self._output, self._version, FileDescriptor(self._schema, self.num_rows), columns)
        return self._output.close()

    def abort(self) -> None:
        """Give up: no file appears."""
        self._output.abort()


def _batches(ranges: Sequence[Range], most: int) -> Iterator[list[tuple[int, int, bool]]]:
    """Ranges in pieces of no more than so many bytes together; the last of each says whether a range begins there.

    >>> list(_batches([(0, 5), (8, 3)], 4))
    [[(0, 4, True)], [(4, 1, False), (8, 3, True)]]
    """
    batch: list[tuple[int, int, bool]] = []
    left = most
    for start, size in ranges:
        at, first = start, True
        while first or at < start + size:
            piece = min(start + size - at, left)
            batch.append((at, piece, first))
            at, first, left = at + piece, False, left - piece
            if left <= 0:
                yield batch
                batch, left = [], most
    if batch:
        yield batch
