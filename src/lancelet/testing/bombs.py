"""Bombs: small data files that are in order, or nearly so, and would take all memory if they were believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelet.format import arrays
from lancelet.format import compressions as c
from lancelet.format.columns import Page, describe_page
from lancelet.format.layouts import BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout
from lancelet.testing.damage import Damage
from lancelet.testing.damage_parts import Parts

__all__ = ["bombs"]

_ROWS = (2**24, 2**31 + 5, 2**40, 2**62)
_TYPES = ("fixed_size_list:float:2147483647", "fixed_size_binary:2147483647", "int64", "string")
_LONG = 40 * 2**20
_ZSTD = c.BufferCompression(c.Scheme.ZSTD)


def bombs(data: bytes) -> Iterator[Damage]:
    """What can be made of a file with one column."""
    parts = Parts.of(data)
    for rows in _ROWS:
        for kind in (None, *_TYPES):
            try:
                yield Damage(f"{rows:,} rows of type {kind}", _with_rows(parts, rows, kind))
            except ValueError:
                # Some descriptions have no room for so large a number.
                continue
    for column, number, page in parts.pages():
        described = parts.describe(page)
        if isinstance(described, MiniBlockLayout) and described.dictionary is not None:
            for size in (_LONG, 200 * 2**20):
                yield Damage(f"dictionary of {size:,} bytes", _with_dictionary(parts, column, number, size))
        if isinstance(described, ConstantLayout) and len(page.buffers) == 1:
            yield Damage("long constant", _with_scalar(parts, column, number))


def _with_rows(parts: Parts, rows: int, kind: str | None = None) -> bytes:
    """The file with so many rows in each first page, wherever they are counted."""
    columns = []
    for column in parts.columns:
        first, *others = column.pages
        columns.append(replace(column, pages=(_larger(parts, first, rows), *others)))
    schema = parts.descriptor.schema
    if kind is not None:
        schema = replace(schema, fields=tuple(replace(one, logical_type=kind, children=()) for one in schema.fields))
    return parts.with_columns(columns, replace(parts.descriptor, length=rows, schema=schema))


def _larger(parts: Parts, page: Page, rows: int) -> Page:
    described = parts.describe(page)
    match described:
        case MiniBlockLayout():
            described = replace(described, num_items=rows)
        case FullZipLayout():
            described = replace(described, num_items=rows, num_visible_items=rows)
        case BlobLayout(inner=MiniBlockLayout() as inner):
            described = replace(described, inner=replace(inner, num_items=rows))
        case arrays.List():
            described = replace(described, num_items=rows)
    return describe_page(described, buffers=page.buffers, length=rows, priority=page.priority)  # type: ignore[arg-type]


def _appended(parts: Parts, buffer: bytes) -> tuple[bytes, tuple[int, int]]:
    """What to put behind the pages, and where the buffer then lies."""
    end = parts.footer.column_metadata_start
    filler = bytes(-end % 64)
    return filler + buffer, (end + len(filler), len(buffer))


def _with_dictionary(parts: Parts, column: int, number: int, size: int) -> bytes:
    """The file with a dictionary whose every item is ``size`` zeros, which zstd makes next to nothing of."""
    page = parts.columns[column].pages[number]
    described = parts.describe(page)
    if not isinstance(described, MiniBlockLayout):
        return parts.data
    count = described.num_dictionary_items
    offsets = np.full(count + 1, size, np.uint32)
    offsets[0] = 0
    head = np.array([32, 4 * (3 + count)], np.uint32)
    plain = head.tobytes() + offsets.tobytes() + bytes(size)
    frame = len(plain).to_bytes(8, "little") + pa.Codec("zstd").compress(plain, asbytes=True)
    body, place = _appended(parts, frame)
    changed = describe_page(
        replace(described, dictionary=c.General(_ZSTD, c.Variable(c.Flat(32)))),
        buffers=(*page.buffers[:2], place, *page.buffers[3:]),
        length=page.length,
        priority=page.priority,
    )
    return _rebuilt(parts, column, number, changed, body)


def _with_scalar(parts: Parts, column: int, number: int) -> bytes:
    """The file with a constant string of 100,000 bytes."""
    page = parts.columns[column].pages[number]
    size = 100_000
    offsets = np.array([0, size], np.int32).tobytes()
    scalar = np.array([2, len(offsets), size], np.uint32).tobytes() + offsets + b"x" * size
    body, place = _appended(parts, scalar)
    return _rebuilt(parts, column, number, replace(page, buffers=(place,)), body)


def _rebuilt(parts: Parts, column: int, number: int, page: Page, body: bytes) -> bytes:
    columns = list(parts.columns)
    pages = list(columns[column].pages)
    pages[number] = page
    columns[column] = replace(columns[column], pages=tuple(pages))
    return parts.with_columns(columns, body=body)
