"""An open data file: its footer, schema and column metadata, read in one request, and the page indexes met so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lancelet.encodings.chunks import Ints
from lancelet.encodings.page import PageIndex
from lancelet.encodings.shape import Shape
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt, InvalidInput, LanceletError, Unsupported
from lancelet.file.leaf_pages import LeafPages
from lancelet.format.columns import Column, Range, parse_column
from lancelet.format.fields import FileDescriptor, parse_file_descriptor
from lancelet.format.footer import FOOTER_SIZE, Footer, parse_footer, parse_offset_table
from lancelet.format.versions import FileVersion
from lancelet.storage.memory import MemoryStore
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store, maps_files

__all__ = ["DataFile", "KeptFile", "Learnt", "open_file"]

# Metadata of most files fits in this; a longer one costs a second request.
_TAIL = 64 * 2**10


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is found out about a file while it is read, by whoever reads it; kept because it stays true."""

    columns: dict[int, Column] = field(default_factory=dict)
    first_rows: dict[int, Ints] = field(default_factory=dict)
    #: The leaf columns of shapes met before, by the shape's identity: each entry keeps its shape alive.
    leaf_pages: dict[int, tuple[Shape, tuple[LeafPages, ...]]] = field(default_factory=dict)
    #: Indexes of pages read before, by column and page number.
    page_indexes: dict[tuple[int, int], PageIndex] = field(default_factory=dict)
    #: Bits of the keys of columns whose pages all have a dictionary; None for other columns.
    key_bits: dict[int, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class DataFile:
    """A file of version 2.0 or later, open for reading.

    Column metadata is parsed when a column is first used. Everything kept here is small and immutable, so one
    ``DataFile`` may serve many threads.
    """

    store: Store
    path: str
    size: int
    footer: Footer
    #: The file from the start of the column metadata to its end.
    metadata: memoryview
    #: (start, size) of each column's metadata and of each global buffer.
    column_places: Ints
    global_buffers: Ints
    descriptor: FileDescriptor
    #: The whole file, where the store maps it: bytes then cost nothing until they are touched.
    view: Bytes | None = None
    learnt: Learnt = field(default_factory=Learnt, compare=False, repr=False)

    @property
    def uri(self) -> str:
        """The file as a user would name it."""
        return join_uri(self.store.uri, self.path)

    @property
    def version(self) -> FileVersion:
        """The data file version."""
        return self.footer.version

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        return self.descriptor.length

    @property
    def leaf_pages(self) -> dict[int, tuple[Shape, tuple[LeafPages, ...]]]:
        """The leaf columns of shapes met before, by the shape's identity."""
        return self.learnt.leaf_pages

    @property
    def page_indexes(self) -> dict[tuple[int, int], PageIndex]:
        """Indexes of pages read before, by column and page number."""
        return self.learnt.page_indexes

    def unmapped(self) -> DataFile:
        """The same file as a store that maps nothing would show it."""
        return self if self.view is None else replace(self, view=None, learnt=Learnt())

    def kept(self) -> KeptFile:
        """What is known of the file, without its store and its bytes."""
        return KeptFile(replace(self, store=_NO_STORE, metadata=memoryview(bytes(self.metadata)), view=None))

    def column(self, number: int) -> Column:
        """The metadata of one column."""
        found = self.learnt.columns.get(number)
        if found is None:
            if not 0 <= number < len(self.column_places):
                raise Corrupt(f"column {number} asked of a file with {len(self.column_places)}", uri=self.uri)
            start, size = self.place_of(number)
            begin = start - self.footer.column_metadata_start
            if begin < 0:
                raise Corrupt(f"metadata of column {number} lies before all metadata", uri=self.uri)
            data = self.metadata[begin : begin + size]
            try:
                found = parse_column(data, self.version, self.footer.column_metadata_start, uri=self.uri)
            except LanceletError as error:
                raise error.where(column=str(number), byte_range=(start, size)) from None
            self.learnt.columns[number] = found
        return found

    def place_of(self, number: int) -> Range:
        """Where the metadata of a column lies in the file."""
        start, size = self.column_places[number].tolist()
        return start, size

    def span_of(self, number: int, buffers: Sequence[Range]) -> Range:
        """The bytes from a page's first buffer to its last; those of its column's metadata where it has none."""
        if not buffers:
            return self.place_of(number)
        start = min(offset for offset, _ in buffers)
        return start, max(offset + size for offset, size in buffers) - start

    def first_rows(self, number: int) -> Ints:
        """The row with which each page of a column begins, and behind them the number of all its rows."""
        found = self.learnt.first_rows.get(number)
        if found is None:
            lengths = [page.length for page in self.column(number).pages]
            found = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
            self.learnt.first_rows[number] = found
        return found

    def read(self, ranges: Sequence[Range]) -> list[Bytes]:
        """The bytes of each range; all in as few requests as the store can make of them."""
        if not ranges:
            return []
        if self.view is not None:
            return [self.view[start : start + size] for start, size in ranges]
        return [np.frombuffer(piece, np.uint8) for piece in self.store.read(self.path, ranges)]

    def global_buffer(self, number: int) -> bytes:
        """One global buffer, whole."""
        if not 0 <= number < len(self.global_buffers):
            raise InvalidInput(f"no global buffer {number}, the file has {len(self.global_buffers)}", uri=self.uri)
        return self.read([tuple(self.global_buffers[number].tolist())])[0].tobytes()


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that was open: nothing live, so that it may be kept for as long as one likes, and opened again at once.

    Files opened from it share what each of them learns, so all must come from stores that map files, or none.
    """

    file: DataFile

    def open(self, store: Store) -> DataFile:
        """The file in a store, without asking for more than a map of it."""
        made = object.__new__(DataFile)
        view = np.frombuffer(store.view(self.file.path), np.uint8) if maps_files(store) else None
        made.__dict__.update(self.file.__dict__, store=store, view=view)
        return made


#: Stands for the store of a file that is not open.
_NO_STORE: Store = MemoryStore("memory://closed")


def open_file(store: Store, path: str, *, size: int | None = None) -> DataFile:
    """Open a data file of version 2.0 or later. With its size known this is one request, else the store may need two.

    >>> from lancelet.storage import open_store
    >>> open_file(open_store("memory://empty"), "none.lance")
    Traceback (most recent call last):
        ...
    lancelet.errors.NotFound: ...
    """
    if size is None:
        tail, size = store.read_tail(path, _TAIL)
    else:
        length = min(size, _TAIL)
        tail = store.read(path, [(size - length, length)])[0]
    uri = join_uri(store.uri, path)
    footer = parse_footer(tail, size, uri=uri)
    if not isinstance(footer, Footer):
        raise Unsupported("the file is of version 0.1", uri=uri, hint="open it with lancelet.file.legacy")
    if footer.version is FileVersion.V2_3:
        raise Unsupported("the file is of version 2.3, which is not stable", uri=uri)
    metadata = _from(store, path, tail, size, footer.column_metadata_start)
    limit = size - FOOTER_SIZE
    columns = parse_offset_table(_cut(metadata, size, footer.column_table, uri), limit, uri=uri)
    buffers = parse_offset_table(_cut(metadata, size, footer.global_table, uri), limit, what="global buffer", uri=uri)
    if not len(buffers):
        raise Corrupt("the file has no global buffer, expected its schema in the first", uri=uri)
    start, length = buffers[0].tolist()
    tail_start = size - len(tail)
    if start >= tail_start:
        data = tail[start - tail_start : start - tail_start + length]
    else:
        data = store.read(path, [(start, length)])[0]
    try:
        descriptor = parse_file_descriptor(data)
    except LanceletError as error:
        raise error.where(uri=uri, byte_range=(start, length)) from None
    if descriptor.length >= 1 << 63:
        raise Corrupt(f"the file claims {descriptor.length:,} rows", uri=uri, byte_range=(start, length))
    view = np.frombuffer(store.view(path), np.uint8) if maps_files(store) else None
    return DataFile(store, path, size, footer, metadata, columns, buffers, descriptor, view)


def _from(store: Store, path: str, tail: memoryview, size: int, start: int) -> memoryview:
    """The file from ``start`` on, of which ``tail`` is already here."""
    missing = size - len(tail) - start
    if missing <= 0:
        return tail[start - (size - len(tail)) :]
    return memoryview(store.read(path, [(start, size - start)])[0])


def _cut(metadata: memoryview, size: int, place: Range, uri: str) -> memoryview:
    begin = place[0] - (size - len(metadata))
    if begin < 0:
        raise Corrupt(f"offset table at {place[0]} lies before the column metadata", uri=uri, byte_range=place)
    return metadata[begin : begin + place[1]]
