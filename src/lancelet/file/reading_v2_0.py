"""Reading files of 2.0: every node of the schema has a column, and the pages of one do not end where another's do.

Rows go down the tree: a struct hands them on, a list turns them into its items' row numbers once it has read its ends.
Arrays come back up. Each level of lists costs one more round of requests, whatever the number of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.budget import check_budget
from lancelet.encodings.shape import Leaf, List, Shape, Struct
from lancelet.encodings.v2_0 import spans
from lancelet.encodings.v2_0.blob import read_blobs
from lancelet.encodings.v2_0.buffers import PageBuffers, Rows, count_of
from lancelet.encodings.v2_0.nested import list_array, struct_array
from lancelet.encodings.v2_0.page import read_page, read_values
from lancelet.encodings.v2_0.spans import Spans
from lancelet.encodings.v2_0.steps import Steps, decode, together
from lancelet.errors import Corrupt, LanceletError, Unsupported
from lancelet.file.carrying_out import run_steps
from lancelet.file.data_file import DataFile
from lancelet.file.requests import rows_by_page
from lancelet.format import arrays
from lancelet.format.columns import Column, Page

__all__ = ["leaf_page", "list_page", "pages_of", "read_columns"]


def read_columns(file: DataFile, shapes: Sequence[Shape], rows: Rows) -> list[pa.ChunkedArray]:
    """The rows of each shape, one chunked array each; row numbers ascend and may repeat."""
    repeated = None
    if not isinstance(rows, slice) and len(rows) and np.any(rows[1:] == rows[:-1]):
        rows, repeated = np.unique(rows, return_inverse=True)
    if count_of(rows):
        nodes = [_read_node(file, shape, rows, shape.field.name) for shape in shapes]
        found = run_steps(file, together(nodes)) if nodes else []
    else:
        found = [[] for _ in shapes]
    columns = [pa.chunked_array(parts, shape.field.type) for shape, parts in zip(shapes, found, strict=True)]
    return columns if repeated is None else [column.take(pa.array(repeated)) for column in columns]


def _read_node(file: DataFile, shape: Shape, rows: Rows, name: str) -> Steps[list[pa.Array]]:
    match shape:
        case Leaf():
            return (yield from _read_leaf(file, shape, rows, name))
        case Struct(field, children):
            parts = yield from together(
                [_read_node(file, child, rows, f"{name}.{child.field.name}") for child in children]
            )
            return _structs(field.type, parts)
        case List(field):
            if not (pat.is_list(field.type) or pat.is_large_list(field.type)):
                raise Unsupported(f"type {field.type} in a file of version 2.0", uri=file.uri, column=name)
            return (yield from _read_lists(file, shape, rows, name))


@contextmanager
def _located(file: DataFile, name: str, column: int, number: int) -> Iterator[None]:
    """An error learns where it happened."""
    span = file.span_of(column, file.column(column).pages[number].buffers)
    try:
        yield
    except LanceletError as error:
        raise error.where(uri=file.uri, column=name, page=number, byte_range=span) from None
    except pa.ArrowException as error:
        found = f"page does not decode: {error}"
        raise Corrupt(found, uri=file.uri, column=name, page=number, byte_range=span) from None


def pages_of(file: DataFile, number: int, rows: Rows, name: str) -> tuple[Column, list[tuple[int, Rows]]]:
    """A column and, for each page with some of the rows, which of its own rows they are."""
    column, firsts = file.column(number), file.first_rows(number)
    wanted = rows.stop if isinstance(rows, slice) else int(rows[-1]) + 1
    if wanted > firsts[-1]:
        found = f"column has {int(firsts[-1]):,} rows, expected at least {wanted:,}"
        raise Corrupt(found, uri=file.uri, column=name)
    return column, list(rows_by_page(firsts, rows))


def _source(file: DataFile, column: Column, page: Page) -> PageBuffers:
    shared = tuple((start, size) for start, size in file.global_buffers.tolist())
    return PageBuffers(page.buffers, page.length, file.view is not None, column.buffers, shared)


def _encoding(file: DataFile, page: Page) -> arrays.ArrayEncoding:
    found = page.describe(file.version)
    if not isinstance(found, arrays.ArrayEncoding):
        raise Corrupt(f"page has a layout of version 2.1, {type(found).__name__}")
    return found


def _read_leaf(file: DataFile, leaf: Leaf, rows: Rows, name: str) -> Steps[list[pa.Array]]:
    column, pages = pages_of(file, leaf.column, rows, name)
    if not pages:
        return []
    pending = yield from together([leaf_page(file, leaf, column, at, local, name) for at, local in pages])
    return (yield from decode(pending))


def leaf_page(file: DataFile, leaf: Leaf, column: Column, number: int, rows: Rows, name: str):  # type: ignore[no-untyped-def]
    """The task that makes an array of some rows of one page, once its bytes are here."""
    page, kind = column.pages[number], leaf.field.type
    with _located(file, name, leaf.column, number):
        source, encoding = _source(file, column, page), _encoding(file, page)
        if isinstance(column.encoding, arrays.BlobColumn):
            finish = yield from read_blobs(encoding, kind, source, rows, file.size)
        else:
            finish = yield from read_page(encoding, kind, source, rows)

    def located() -> pa.Array:
        with _located(file, name, leaf.column, number):
            return finish()

    return located


def _structs(kind: pa.DataType, children: Sequence[list[pa.Array]]) -> list[pa.Array]:
    """Structs of the children's arrays, cut wherever one of them ends."""
    ends = [np.cumsum([len(part) for part in parts]) for parts in children]
    cuts = np.unique(np.concatenate([np.zeros(1, np.int64), *ends])).tolist()
    columns = [_Cutter(parts) for parts in children]
    return [struct_array(kind, [column.take(stop - start) for column in columns]) for start, stop in pairwise(cuts)]


class _Cutter:
    """Hands out the rows of some arrays piece by piece."""

    def __init__(self, parts: list[pa.Array]) -> None:
        self._parts, self._at, self._used = parts, 0, 0

    def take(self, count: int) -> pa.Array:
        """The next ``count`` rows, at least one, joined if they lie in several arrays."""
        pieces = []
        while count:
            part = self._parts[self._at]
            piece = part.slice(self._used, count)
            pieces.append(piece)
            count -= len(piece)
            self._used += len(piece)
            if self._used == len(part):
                self._at, self._used = self._at + 1, 0
        return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def _read_lists(file: DataFile, shape: List, rows: Rows, name: str) -> Steps[list[pa.Array]]:
    _, pages = pages_of(file, shape.column, rows, name)
    found = yield from together([list_page(file, shape.column, at, local, name) for at, local in pages])
    bases = _item_bases(file, shape.column, name)
    items_end = int(file.first_rows(shape.child.column)[-1])
    selected = _selection([(one, int(bases[at])) for one, (at, _) in zip(found, pages, strict=True)])
    total = count_of(selected)
    if total and (selected.stop if isinstance(selected, slice) else int(selected[-1]) + 1) > items_end:
        raise Corrupt(f"lists name items past {items_end:,}", uri=file.uri, column=name)
    below = f"{name}.{shape.child.field.name}"
    items = _Cutter((yield from _read_node(file, shape.child, selected, below)) if total else [])
    made = []
    for one in found:
        count = int(one.sizes.sum())
        values = items.take(count) if count else None
        made.append(list_array(shape.field, one.offsets(), one.validity, values))
    return made


def list_page(file: DataFile, at: int, number: int, rows: Rows, name: str) -> Steps[Spans]:
    """Where the items of some lists of one page lie."""
    column = file.column(at)
    page = column.pages[number]
    with _located(file, name, at, number):
        encoding = _encoding(file, page)
        if not isinstance(encoding, arrays.List):
            raise Corrupt(f"page has encoding {type(encoding).__name__}, expected List")
        source, adjustment = _source(file, column, page), encoding.null_offset_adjustment
        found = (yield from spans.read(encoding.offsets, adjustment, source, rows, read_values))()
        if len(found.stops) and int(found.stops[-1]) > encoding.num_items:
            raise Corrupt(f"lists end at item {int(found.stops[-1]):,} of {encoding.num_items:,}")
    return found


def _item_bases(file: DataFile, at: int, name: str) -> np.ndarray:
    """The item with which each page begins."""
    bases = [0]
    for number, page in enumerate(file.column(at).pages):
        with _located(file, name, at, number):
            encoding = _encoding(file, page)
            bases.append(bases[-1] + (encoding.num_items if isinstance(encoding, arrays.List) else 0))
            if bases[-1] >= 1 << 62:
                raise Corrupt(f"lists declare {bases[-1]:,} items")
    return np.array(bases)


def _selection(found: Sequence[tuple[Spans, int]]) -> Rows:
    """The item rows of all spans in order; a range where nothing lies between them."""
    starts = np.concatenate([one.starts + base for one, base in found])
    stops = np.concatenate([one.stops + base for one, base in found])
    filled = stops > starts
    starts, stops = starts[filled], stops[filled]
    if not len(starts):
        return slice(0, 0)
    if np.array_equal(starts[1:], stops[:-1]):
        return slice(int(starts[0]), int(stops[-1]))
    sizes = stops - starts
    total = int(sizes.sum())
    check_budget(8 * total)
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(total)
