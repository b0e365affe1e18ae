"""The page map: every page of a data file, where it lies and how it is encoded, for people and tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from lancelet.errors import LanceletError
from lancelet.file.data_file import DataFile
from lancelet.file.reader import LanceFileReader
from lancelet.file.shapes import stored_paths
from lancelet.file.text import size_text, table_text
from lancelet.format import arrays
from lancelet.format.columns import Deferred, Page
from lancelet.format.layouts import MiniBlockLayout
from lancelet.format.outline import layout_name, outline

__all__ = ["MappedPage", "PageMap", "page_map"]

_TYPES = {
    "path": pa.string(),
    "field_id": pa.int32(),
    "column": pa.int32(),
    "page": pa.int32(),
    "first_row": pa.int64(),
    "rows": pa.int64(),
    "layout": pa.string(),
    "encoding": pa.string(),
    "buffers": pa.list_(pa.struct([pa.field("start", pa.int64()), pa.field("size", pa.int64())])),
    "num_bytes": pa.int64(),
    "bytes_per_value": pa.float64(),
    "dictionary_items": pa.int64(),
}


@dataclass(frozen=True, slots=True)
class MappedPage:
    """One page. In files of 2.0 the rows of a list's items are items."""

    path: str
    field_id: int
    column: int
    page: int
    first_row: int
    rows: int
    layout: str
    encoding: str
    #: (start, size) in the file.
    buffers: tuple[tuple[int, int], ...]
    num_bytes: int
    bytes_per_value: float | None
    #: Items of the page's dictionary; None where it has none.
    dictionary_items: int | None


@dataclass(frozen=True, slots=True)
class PageMap:
    """All pages of a file, column by column. Printable."""

    uri: str
    pages: tuple[MappedPage, ...]

    def to_table(self) -> pa.Table:
        """A row for each page."""
        rows = [asdict(page) for page in self.pages]
        for row in rows:
            row["buffers"] = [{"start": start, "size": size} for start, size in row["buffers"]]
        return pa.Table.from_pylist(rows, pa.schema(list(_TYPES.items())))

    def __str__(self) -> str:
        header = ("column", "page", "first row", "rows", "size", "each", "encoding")
        rows = [
            (
                page.path,
                str(page.page),
                f"{page.first_row:,}",
                f"{page.rows:,}",
                size_text(page.num_bytes),
                "" if page.bytes_per_value is None else f"{page.bytes_per_value:.3g}",
                page.encoding + ("" if page.dictionary_items is None else f" of {page.dictionary_items:,} items"),
            )
            for page in self.pages
        ]
        total = size_text(sum(page.num_bytes for page in self.pages))
        count = f"{len(self.pages):,} page{'s' * (len(self.pages) != 1)}"
        return f"{self.uri}: {count}, {total}\n{table_text(header, rows, left=(0, 6))}"


def page_map(source: LanceFileReader | str | Path) -> PageMap:
    """The page map of a file; nothing but metadata is read.

    >>> from lancelet.file import LanceFileWriter
    >>> with LanceFileWriter("memory://maps/a.lance") as writer:
    ...     writer.write_batch(pa.table({"x": [1.5, 2.5, 4.5]}))
    >>> print(page_map("memory://maps/a.lance"))
    memory://maps/a.lance: 1 page, 36 B
    column  page  first row  rows  size  each  encoding
    x          0          0     3  36 B    12  MiniBlock(Flat(64))
    """
    reader = source if isinstance(source, LanceFileReader) else LanceFileReader(source)
    file = reader.paged()
    return PageMap(file.uri, tuple(_pages(file)))


def _pages(file: DataFile) -> Iterator[MappedPage]:
    for number, (path, field) in enumerate(stored_paths(file.descriptor.schema, file.version)):
        first = 0
        for at, page in enumerate(file.column(number).pages):
            try:
                yield _mapped(file, page, path, field.id, number, at, first)
            except LanceletError as error:
                raise error.where(uri=file.uri, column=path, page=at, byte_range=file.place_of(number)) from None
            first += page.length


def _mapped(file: DataFile, page: Page, path: str, field_id: int, column: int, number: int, first: int) -> MappedPage:
    layout, encoding, items = "elsewhere", "", None
    if not isinstance(page.description, Deferred):
        described = page.describe(file.version)
        layout, encoding = layout_name(described), outline(described)
        if (isinstance(described, MiniBlockLayout) and described.dictionary is not None) or isinstance(
            described, arrays.Dictionary
        ):
            items = described.num_dictionary_items
    size = sum(length for _, length in page.buffers)
    return MappedPage(
        path=path,
        field_id=field_id,
        column=column,
        page=number,
        first_row=first,
        rows=page.length,
        layout=layout,
        encoding=encoding,
        buffers=page.buffers,
        num_bytes=size,
        bytes_per_value=size / page.length if page.length else None,
        dictionary_items=items,
    )
