"""What a file says of itself: the description and the statistics that ``LanceFileReader`` gives."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lancelet.file.data_file import DataFile
from lancelet.format.columns import Deferred

__all__ = [
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceColumnStatistics",
    "LanceFileMetadata",
    "LanceFileStatistics",
    "LancePageMetadata",
    "describe",
    "statistics",
]


@dataclass(frozen=True, slots=True)
class LanceBufferDescriptor:
    """A run of bytes in the file."""

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class LancePageMetadata:
    """One page: its buffers, and how it is encoded, in words."""

    buffers: list[LanceBufferDescriptor]
    encoding: str


@dataclass(frozen=True, slots=True)
class LanceColumnMetadata:
    """One column: its own buffers and its pages."""

    column_buffers: list[LanceBufferDescriptor]
    pages: list[LancePageMetadata]


@dataclass(frozen=True, slots=True)
class LanceFileMetadata:
    """A whole file."""

    schema: pa.Schema
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    major_version: int
    minor_version: int
    global_buffers: list[LanceBufferDescriptor]
    columns: list[LanceColumnMetadata]


@dataclass(frozen=True, slots=True)
class LanceColumnStatistics:
    """How many pages and bytes a column takes."""

    num_pages: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LanceFileStatistics:
    """One entry for each column."""

    columns: list[LanceColumnStatistics]


def _buffers(places: object) -> list[LanceBufferDescriptor]:
    return [LanceBufferDescriptor(int(start), int(size)) for start, size in places]  # type: ignore[attr-defined]


def describe(file: DataFile, schema: pa.Schema) -> LanceFileMetadata:
    """The description of an open file. ``num_data_bytes`` counts what stands before the metadata and global buffers."""
    columns = []
    for number in range(len(file.column_places)):
        column = file.column(number)
        pages = [
            LancePageMetadata(
                _buffers(page.buffers),
                "deferred" if isinstance(page.description, Deferred) else repr(page.describe(file.version)),
            )
            for page in column.pages
        ]
        columns.append(LanceColumnMetadata(_buffers(column.buffers), pages))
    first_global = min((int(start) for start, _ in file.global_buffers), default=0)
    major, minor = file.version.footer_numbers
    return LanceFileMetadata(
        schema=schema,
        num_rows=file.num_rows,
        num_data_bytes=first_global,
        num_column_metadata_bytes=int(file.column_places[:, 1].sum()),
        num_global_buffer_bytes=int(file.global_buffers[:, 1].sum()),
        major_version=major,
        minor_version=minor,
        global_buffers=_buffers(file.global_buffers),
        columns=columns,
    )


def statistics(file: DataFile) -> LanceFileStatistics:
    """Pages and bytes of each column of an open file."""
    return LanceFileStatistics(
        [
            LanceColumnStatistics(len(column.pages), sum(size for page in column.pages for _, size in page.buffers))
            for column in (file.column(number) for number in range(len(file.column_places)))
        ]
    )
