"""A data file of 2.x taken apart, and put together again with some of its metadata changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lancelet.errors import LanceletError
from lancelet.file.data_file import open_file
from lancelet.format.columns import Column, Page, describe_page, write_column
from lancelet.format.fields import FileDescriptor, write_file_descriptor
from lancelet.format.footer import Footer, write_footer, write_offset_table
from lancelet.storage import open_store

__all__ = ["LARGE", "NUMBERS", "Parts", "Path", "others", "places_in", "replaced", "spell"]

#: What a hostile writer would put in place of a number.
NUMBERS = (0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 1024, 1025, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
LARGE = (2**33, 2**40, 2**48, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
#: The way to a part of a tree of dataclasses: names of attributes and places in tuples.
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a file consists of."""

    data: bytes
    footer: Footer
    columns: tuple[Column, ...]
    column_places: tuple[tuple[int, int], ...]
    global_buffers: tuple[tuple[int, int], ...]
    descriptor: FileDescriptor

    @staticmethod
    def of(data: bytes) -> Parts:
        """The parts of an undamaged file."""
        store = open_store("memory://damage")
        store.put("whole.lance", data)
        file = open_file(store, "whole.lance")
        columns = tuple(file.column(number) for number in range(len(file.column_places)))
        places, shared = (tuple((a, b) for a, b in t.tolist()) for t in (file.column_places, file.global_buffers))
        return Parts(data, file.footer, columns, places, shared, file.descriptor)

    def pages(self) -> list[tuple[int, int, Page]]:
        """Every page with the numbers of its column and of itself."""
        return [
            (at, number, page) for at, column in enumerate(self.columns) for number, page in enumerate(column.pages)
        ]

    def describe(self, page: Page) -> object:
        """What a page's description says."""
        return page.describe(self.footer.version)

    def with_page(self, column: int, number: int, page: Page) -> bytes:
        """The file with one page's metadata changed."""
        columns = list(self.columns)
        pages = list(columns[column].pages)
        pages[number] = page
        columns[column] = replace(columns[column], pages=tuple(pages))
        return self.with_columns(columns)

    def with_description(self, column: int, number: int, described: object) -> bytes | None:
        """The file with another description of one page; None where it cannot even be written down."""
        page = self.columns[column].pages[number]
        try:
            changed = describe_page(described, buffers=page.buffers, length=page.length, priority=page.priority)  # type: ignore[arg-type]
            return self.with_page(column, number, changed)
        except (LanceletError, TypeError, ValueError, AttributeError):
            return None

    def with_columns(
        self, columns: Sequence[Column], descriptor: FileDescriptor | None = None, body: bytes = b""
    ) -> bytes:
        """The file's pages, and ``body`` behind them, with other metadata."""
        pieces = [self.data[: self.footer.column_metadata_start], body]
        position, shared = len(pieces[0]) + len(body), list(self.global_buffers)

        def append(piece: bytes) -> tuple[int, int]:
            nonlocal position
            pieces.append(piece)
            position += len(piece)
            return position - len(piece), len(piece)

        if descriptor is not None:
            append(bytes(-position % 64))
            shared[0] = append(write_file_descriptor(descriptor))
        start = position
        places = [append(write_column(column)) for column in columns]
        column_table, _ = append(write_offset_table(places))
        global_table, _ = append(write_offset_table(shared))
        footer = replace(
            self.footer,
            column_metadata_start=start,
            column_table_start=column_table,
            global_table_start=global_table,
            num_columns=len(columns),
        )
        return b"".join([*pieces, write_footer(footer)])


def places_in(tree: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Everything in a tree that can be changed, by its place."""
    if dataclasses.is_dataclass(tree):
        for one in dataclasses.fields(tree):
            yield from places_in(getattr(tree, one.name), (*path, one.name))
        if path:
            yield path, tree
    elif isinstance(tree, tuple):
        yield path, tree
        for at, item in enumerate(tree):
            yield from places_in(item, (*path, at))
    elif isinstance(tree, int | bytes):
        yield path, tree


def others(value: object) -> list[object]:
    """What to put in place of a part."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        kind = type(value)
        if kind is not int:
            return [other for other in kind if other != value]  # type: ignore[attr-defined]
        return [other for other in (*NUMBERS, *LARGE, value - 1, value + 1, value * 2) if other >= 0]
    if isinstance(value, bytes):
        return [b"", value[:-1], value + b"\0", bytes(len(value)), b"\xff" * len(value)]
    if isinstance(value, tuple):
        return [(), value[:-1], value + value, value[::-1], value * 40]
    inner = [getattr(value, one.name) for one in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    return [one for one in inner if dataclasses.is_dataclass(one)]


def replaced(tree: object, path: Path, value: object) -> object:
    """A tree with one part of it exchanged."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(tree, tuple) and isinstance(head, int):
        return (*tree[:head], replaced(tree[head], rest, value), *tree[head + 1 :])
    return replace(tree, **{str(head): replaced(getattr(tree, str(head)), rest, value)})  # type: ignore[type-var]


def spell(path: Path) -> str:
    """A path in words.

    >>> spell(("values", 0, "bits"))
    'values.0.bits'
    """
    return ".".join(map(str, path))
