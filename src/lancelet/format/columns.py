"""Column metadata of 2.x files: a column's pages, where their buffers lie, and how each page is described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lancelet.errors import Corrupt, LanceletError, Unsupported
from lancelet.format.array_wire import (
    parse_array_encoding,
    parse_column_encoding,
    write_array_encoding,
    write_column_encoding,
)
from lancelet.format.arrays import ArrayEncoding, ColumnEncoding, ValuesColumn
from lancelet.format.grammar import check_grammar
from lancelet.format.layouts import (
    BlobLayout,
    ConstantLayout,
    FullZipLayout,
    MiniBlockLayout,
    PageLayout,
    parse_layout,
    write_layout,
)
from lancelet.format.protos import container_pb2 as wire
from lancelet.format.versions import FileVersion
from lancelet.format.wire import parse_message, unset_choice, unwrap, wrap, write_message

__all__ = [
    "ALIGNMENT",
    "Column",
    "Deferred",
    "Page",
    "PageDescription",
    "describe_page",
    "parse_column",
    "parse_description",
    "write_column",
]

#: From 2.1 on, every page buffer and every global buffer starts at a multiple of this.
ALIGNMENT = 64

_COLUMN_URL = "/lance.encodings.ColumnEncoding"
_ARRAY_URL = "/lance.encodings.ArrayEncoding"
_LAYOUT_URL = "/lance.encodings21.PageLayout"
_PLANAR_URL = "/lance.encodings23.PlanarLayout"
_PAGE_URLS = {
    FileVersion.V2_0: _ARRAY_URL,
    FileVersion.V2_1: _LAYOUT_URL,
    FileVersion.V2_2: _LAYOUT_URL,
    FileVersion.V2_3: _PLANAR_URL,
}

#: (offset, size) in the file.
Range = tuple[int, int]
#: What a page's description says, by version: a layout since 2.1, an array encoding in 2.0.
PageDescription = PageLayout | ArrayEncoding


@dataclass(frozen=True, slots=True)
class Deferred:
    """A description that lies elsewhere in the file, at (offset, size)."""

    place: Range


@dataclass(frozen=True, slots=True)
class Page:
    """One page. Its description is parsed when asked for, so that opening a file of many pages is cheap."""

    buffers: tuple[Range, ...]
    length: int
    priority: int
    description: bytes | Deferred

    def describe(self, version: FileVersion) -> PageDescription:
        """The layout or array encoding of a page whose description lies in the column's metadata."""
        if isinstance(self.description, Deferred):
            raise Unsupported("the page's description lies elsewhere in the file", byte_range=self.description.place)
        return parse_description(self.description, version)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its pages in row order, its own buffers, and how it is encoded as a whole."""

    pages: tuple[Page, ...]
    buffers: tuple[Range, ...] = ()
    encoding: ColumnEncoding = field(default_factory=ValuesColumn)

    @property
    def length(self) -> int:
        """Rows (in 2.0 below lists: items) of all pages."""
        return sum(page.length for page in self.pages)


def parse_column(
    data: bytes | bytearray | memoryview,
    version: FileVersion,
    limit: int,
    *,
    column: str | None = None,
    uri: str | None = None,
) -> Column:
    """The column that a ``ColumnMetadata`` message describes.

    Every buffer must end at or before byte ``limit`` of the file and, from 2.1 on, page buffers must be aligned.

    >>> page = describe_page(ConstantLayout(()), buffers=((64, 8),), length=3, priority=0)
    >>> parse_column(write_column(Column((page,))), FileVersion.V2_2, limit=72).pages == (page,)
    True
    """
    try:
        message = parse_message(wire.ColumnMetadata, data, "column metadata")
        encoding = _parse_column_encoding(message.encoding)
        buffers = _ranges(message.buffer_offsets, message.buffer_sizes)
        _check_ranges(buffers, limit, 1, None)
        alignment = ALIGNMENT if version >= FileVersion.V2_1 else 1
        pages = tuple(map(_read_page, message.pages))
        _check_pages(pages, limit, alignment)
    except LanceletError as error:
        raise error.where(column=column, uri=uri) from None
    return Column(pages, buffers, encoding)


def _read_page(message: wire.ColumnMetadata.Page) -> Page:
    buffers = _ranges(message.buffer_offsets, message.buffer_sizes)
    return Page(buffers, message.length, message.priority, _description(message.encoding))


def _description(message: wire.Encoding) -> bytes | Deferred:
    location = message.WhichOneof("location")
    if location == "direct":
        return message.direct.encoding
    if location == "indirect":
        return Deferred((message.indirect.buffer_location, message.indirect.buffer_length))
    if location == "none":
        raise Corrupt("page has no description, expected one")
    raise unset_choice(message, "page.encoding")


def _ranges(offsets: Sequence[int], sizes: Sequence[int]) -> tuple[Range, ...]:
    if len(offsets) != len(sizes):
        raise Corrupt(f"there are {len(offsets)} buffer offsets and {len(sizes)} buffer sizes, expected as many")
    return tuple(zip(offsets, sizes, strict=True))


def _check_pages(pages: tuple[Page, ...], limit: int, alignment: int) -> None:
    rows = 0
    for number, page in enumerate(pages):
        _check_ranges(page.buffers, limit, alignment, number)
        if isinstance(page.description, Deferred):
            _check_ranges((page.description.place,), limit, 1, number)
        rows += page.length
    if rows >= 1 << 63:
        raise Corrupt(f"the pages hold {rows} rows together, expected fewer than 2**63")


def _check_ranges(ranges: tuple[Range, ...], limit: int, alignment: int, page: int | None) -> None:
    for number, (offset, size) in enumerate(ranges):
        if offset + size > limit:
            found = f"buffer {number} ends at byte {offset + size}, expected at or before {limit}"
            raise Corrupt(found, page=page, byte_range=(offset, size))
        if offset % alignment:
            found = f"buffer {number} starts at byte {offset}, expected a multiple of {alignment}"
            raise Corrupt(found, page=page, byte_range=(offset, size))


def _parse_column_encoding(message: wire.Encoding) -> ColumnEncoding:
    if message.WhichOneof("location") != "direct":
        raise Unsupported("the column's encoding is not within its metadata")
    data = message.direct.encoding
    # Nearly all columns of all files are encoded alike.
    return _remembered_encoding(data) if len(data) <= _LARGEST_REMEMBERED else _unwrapped_encoding(data)


def _unwrapped_encoding(data: bytes) -> ColumnEncoding:
    url, content = unwrap(data, "column encoding")
    if url != _COLUMN_URL:
        raise Unsupported(f"the column's encoding has type {url!r}, expected {_COLUMN_URL!r}")
    return parse_column_encoding(content)


def parse_description(data: bytes, version: FileVersion) -> PageDescription:
    """What a page's description says, checked against the grammar of the file's version.

    Pages of a column mostly have equal descriptions, so results are remembered, unless large; they are immutable.
    """
    return _remembered(data, version) if len(data) <= _LARGEST_REMEMBERED else _parse_description(data, version)


def _parse_description(data: bytes, version: FileVersion) -> PageDescription:
    url, content = unwrap(data, "page description")
    expected = _PAGE_URLS.get(version)
    if url != expected:
        raise Corrupt(f"page description has type {url!r}, expected {expected!r} in version {version.label}")
    if url == _ARRAY_URL:
        return parse_array_encoding(content)
    if url == _PLANAR_URL:
        raise Unsupported("pages of version 2.3 cannot be read")
    layout = parse_layout(content)
    check_grammar(layout, version)
    return layout


_LARGEST_REMEMBERED = 16 * 2**10
_remembered = lru_cache(maxsize=1024)(_parse_description)
_remembered_encoding = lru_cache(maxsize=64)(_unwrapped_encoding)


def describe_page(description: PageDescription, *, buffers: Sequence[Range], length: int, priority: int) -> Page:
    """A page with its description in the form in which files hold it."""
    if isinstance(description, MiniBlockLayout | FullZipLayout | ConstantLayout | BlobLayout):
        data = wrap(_LAYOUT_URL, write_layout(description))
    else:
        data = wrap(_ARRAY_URL, write_array_encoding(description))
    return Page(tuple(buffers), length, priority, data)


def write_column(column: Column) -> bytes:
    """The bytes of the ``ColumnMetadata`` message that describes a column."""
    message = wire.ColumnMetadata()
    message.encoding.direct.encoding = wrap(_COLUMN_URL, write_column_encoding(column.encoding))
    message.buffer_offsets.extend(offset for offset, _ in column.buffers)
    message.buffer_sizes.extend(size for _, size in column.buffers)
    for page in column.pages:
        item = message.pages.add(length=page.length, priority=page.priority)
        item.buffer_offsets.extend(offset for offset, _ in page.buffers)
        item.buffer_sizes.extend(size for _, size in page.buffers)
        if isinstance(page.description, Deferred):
            item.encoding.indirect.buffer_location, item.encoding.indirect.buffer_length = page.description.place
        else:
            item.encoding.direct.encoding = page.description
    return write_message(message)
