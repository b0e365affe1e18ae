"""Files of an index: opened when first read, rows by number, metadata and global buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelet.encodings.page import Rows
from lancelet.encodings.shape import Shape
from lancelet.errors import Corrupt, LanceletError
from lancelet.file.data_file import DataFile, KeptFile
from lancelet.file.legacy import LegacyFile
from lancelet.file.opening import open_any
from lancelet.file.reading import read_columns
from lancelet.file.shapes import column_numbers, shapes_of
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.indexes import IndexMetadata
from lancelet.storage.objects import process_objects
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store, maps_files

__all__ = ["IndexFiles", "StoredTable"]


@dataclass(frozen=True, slots=True)
class StoredTable:
    """An open file of an index."""

    file: DataFile | LegacyFile
    arrow: pa.Schema
    shapes: tuple[Shape, ...]

    @property
    def uri(self) -> str:
        """The file as a user would name it."""
        return self.file.uri

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        count: int = self.file.num_rows
        return count

    @property
    def metadata(self) -> dict[str, str]:
        """What its schema says besides the columns."""
        return dict(self.file.descriptor.schema.metadata)

    def number(self, key: str, default: int) -> int:
        """A number in the metadata. Corrupt where it is something else."""
        text = self.metadata.get(key)
        if text is None:
            return default
        if not text.isdecimal():
            raise Corrupt(f"metadata {key!r} of the index is {text!r}, expected a number", uri=self.uri)
        return int(text)

    def kind(self, column: str) -> pa.DataType:
        """The type of a column. Corrupt where there is none of that name."""
        return self.arrow.field(self._place(column)).type

    def read(self, columns: Sequence[str], rows: Rows | None = None) -> list[pa.Array]:
        """Rows of some columns, all if none are named, each as one array."""
        wanted = slice(0, self.num_rows) if rows is None else rows
        found = read_columns(self.file, [self.shapes[self._place(name)] for name in columns], wanted)
        return [_whole(column) for column in found]

    def buffer(self, key: str) -> bytes | None:
        """The global buffer whose number the metadata give; None where they give none."""
        number = self.number(key, -1)
        if number < 0:
            return None
        if isinstance(self.file, LegacyFile):
            raise Corrupt(f"metadata {key!r} name a buffer of a file that has none", uri=self.uri)
        return self.file.global_buffer(number)

    def _place(self, column: str) -> int:
        place = int(self.arrow.get_field_index(column))
        if place < 0:
            raise Corrupt(f"the index has no column {column!r}, it has {self.arrow.names}", uri=self.uri)
        return place


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """The folder of one segment. Files are opened once for the process, as long as the cache has room."""

    store: Store
    folder: str
    #: Sizes by name, where the metadata say them: they spare a request.
    sizes: tuple[tuple[str, int], ...] = ()
    #: False for files that go again soon: nothing of them is kept.
    lasting: bool = True

    @staticmethod
    def of(store: Store, folder: str, metadata: IndexMetadata) -> IndexFiles:
        """The files that an index's metadata name, and any others in the folder."""
        sizes = tuple((item.path, item.size_bytes) for item in metadata.files if item.size_bytes)
        return IndexFiles(store, folder, sizes)

    def uri(self, name: str) -> str:
        """A file as a user would name it."""
        return join_uri(self.store.uri, f"{self.folder}/{name}")

    def open(self, name: str) -> StoredTable:
        """A Lance file of the index."""

        mapped = maps_files(self.store)

        def make() -> tuple[_KeptTable, int]:
            file = open_any(self.store, f"{self.folder}/{name}", size=dict(self.sizes).get(name))
            schema = file.descriptor.schema
            try:
                arrow = schema_to_arrow(schema)
                shapes = tuple(shapes_of(schema, arrow, column_numbers(schema, file.version)))
            except LanceletError as error:
                raise error.where(uri=file.uri) from None
            size = len(file.metadata) if isinstance(file, DataFile) else 0
            kept = file.kept() if isinstance(file, DataFile) else file
            return _KeptTable(kept, arrow, shapes), 4096 + 2 * size

        if self.lasting:
            return process_objects().get((self.uri(name), "table", mapped), make).open(self.store)
        return make()[0].open(self.store)


@dataclass(frozen=True, slots=True)
class _KeptTable:
    """A file that was open, without its store: whoever asks next may count, or throttle, what is read."""

    file: KeptFile | LegacyFile
    arrow: pa.Schema
    shapes: tuple[Shape, ...]

    def open(self, store: Store) -> StoredTable:
        file = self.file
        return StoredTable(
            file.open(store) if isinstance(file, KeptFile) else replace(file, store=store), self.arrow, self.shapes
        )
