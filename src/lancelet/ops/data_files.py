"""Data files of a table: rows as they come, written as files of bounded size, each the whole of a new fragment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Protocol, TypeAlias

import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.file.blob_sidecars import Sidecars
from lancelet.file.file_writer import LARGEST_PAGE, PAGE_BYTES, FileWriter
from lancelet.file.shapes import column_numbers
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.blobs import check_storable, file_schema
from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.names import DATA, data_file_name
from lancelet.format.versions import FileVersion
from lancelet.ops.telling import tell_files
from lancelet.storage.store import Store, Writer

__all__ = [
    "Destination",
    "FragmentWriter",
    "Limits",
    "NewFile",
    "Rows",
    "WriteProgress",
    "batches_of",
    "check_version",
    "discard",
    "write_fragments",
]

#: What rows may come as.
Rows: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large files may grow. Rows are cut exactly; bytes are looked at after each batch."""

    rows_per_file: int = 2**20
    bytes_per_file: int = 90 * 2**30
    #: Rows handed to the writer at a time.
    rows_per_batch: int = 2**17
    #: What all columns of a file together may hold back before they write pages; None for 8 MiB each.
    cache_bytes: int | None = None
    #: The size above which one batch is cut into several pages.
    page_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("rows_per_file", "bytes_per_file", "rows_per_batch", "cache_bytes", "page_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInput(f"{name} is {value}, expected at least 1")


@dataclass(frozen=True, slots=True)
class Destination:
    """A place for new data files: the table's own folder, or a base path of it."""

    store: Store
    #: The folder of data files in the store, with a slash behind it; empty for bases that hold nothing else.
    folder: str = f"{DATA}/"
    base_id: int | None = None


class WriteProgress(Protocol):
    """Is told of fragments as they are written."""

    def begin(self, fragment: Fragment) -> None:
        """A fragment is begun; nothing is known of it yet."""

    def complete(self, fragment: Fragment) -> None:
        """Its file is written."""


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

    def __init__(
        self,
        place: Destination | Store,
        schema: Schema,
        version: FileVersion,
        *,
        limits: Limits | None = None,
        bases: Mapping[int, str] | None = None,
    ) -> None:
        self._place = place if isinstance(place, Destination) else Destination(place)
        self._schema, self._version = schema, version
        self.name = data_file_name()
        path = f"{self._place.folder}{self.name}"
        if self._place.base_id is None:
            tell_files([path, f"{path.removesuffix('.lance')}/"])
        self._output: Writer = self._place.store.writer(path)
        columns = max(len(schema.fields), 1)
        held = PAGE_BYTES if limits is None or limits.cache_bytes is None else max(limits.cache_bytes // columns, 1)
        self._writer = FileWriter(
            self._output,
            schema,
            schema_to_arrow(file_schema(schema)),
            version,
            page_bytes=held,
            largest_page=LARGEST_PAGE if limits is None or limits.page_bytes is None else limits.page_bytes,
            sidecars=Sidecars(self._place.store, path),
            bases=bases,
        )

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
        return DataFile(
            self.name, tuple(columns), tuple(columns.values()), major, minor, size, base_id=self._place.base_id
        )

    def abort(self) -> None:
        """Give up: no file appears."""
        self._writer.abort()


class FragmentWriter:
    """Writes rows into as many fragments as the limits ask for, in turn at each of some places.

    As a context manager it removes what it wrote when the block raises.
    """

    def __init__(
        self,
        places: Sequence[Destination] | Store,
        schema: Schema,
        version: FileVersion,
        limits: Limits,
        *,
        bases: Mapping[int, str] | None = None,
        progress: WriteProgress | None = None,
    ) -> None:
        self._places = _places(places)
        self._turns = cycle(self._places)
        self._schema, self._version, self._limits = schema, version, limits
        self._bases, self._progress = bases, progress
        self._current: NewFile | None = None
        self._fragments: list[Fragment] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows in; files that are full are finished."""
        start = 0
        while start < batch.num_rows:
            current = self._open()
            piece = batch.slice(start, self._limits.rows_per_file - current.num_rows)
            current.write(piece)
            start += piece.num_rows
            if current.num_rows >= self._limits.rows_per_file or current.num_bytes >= self._limits.bytes_per_file:
                self._close()

    def _open(self) -> NewFile:
        if self._current is None:
            if self._progress is not None:
                self._progress.begin(Fragment(0))
            self._current = NewFile(
                next(self._turns), self._schema, self._version, limits=self._limits, bases=self._bases
            )
        return self._current

    def _close(self) -> None:
        if self._current is not None:
            made = Fragment(0, (self._current.finish(),), physical_rows=self._current.num_rows)
            self._current = None
            self._fragments.append(made)
            if self._progress is not None:
                self._progress.complete(made)

    def cut(self) -> None:
        """Finish the file under way: the rows to come go into another."""
        self._close()

    def finish(self) -> list[Fragment]:
        """Finish the file under way; all fragments in the order of their rows."""
        self._close()
        return list(self._fragments)

    def abort(self) -> None:
        """Give up, and remove what was written."""
        if self._current is not None:
            self._current.abort()
            self._current = None
        discard(self._places, [file for item in self._fragments for file in item.files])
        self._fragments = []

    def __enter__(self) -> FragmentWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            self.abort()


def write_fragments(
    places: Sequence[Destination] | Store,
    schema: Schema,
    version: FileVersion,
    rows: Iterable[pa.RecordBatch],
    limits: Limits,
    *,
    bases: Mapping[int, str] | None = None,
    progress: WriteProgress | None = None,
) -> list[Fragment]:
    """Write rows into as many files as the limits ask for. When that fails nothing is left behind."""
    with FragmentWriter(places, schema, version, limits, bases=bases, progress=progress) as writer:
        for batch in rows:
            writer.write(batch)
        return writer.finish()


def _places(given: Sequence[Destination] | Store) -> tuple[Destination, ...]:
    # Whether something is a Store is asked of each of its methods, which takes longer than a small file.
    return tuple(given) if isinstance(given, Sequence) else (Destination(given),)


def discard(places: Sequence[Destination] | Store, files: Iterable[DataFile]) -> None:
    """Remove data files that no manifest names, and their sidecars."""
    by_base = {place.base_id: place for place in _places(places)}
    for file in files:
        place = by_base[file.base_id]
        prefix = f"{place.folder}{file.path.removesuffix('.lance')}"
        place.store.delete([entry.path for entry in place.store.list_from(prefix)])
