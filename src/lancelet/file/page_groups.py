"""Small pages read as one: where neighbouring pages of a mapped file are alike, their chunks make one table.

A page costs some microseconds whatever its size. Writers that are handed few rows at a time leave hundreds of small
pages, so a run of them is given to the decoders as if it were one page whose chunks lie apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lancelet.encodings import constant, mini_block
from lancelet.encodings.chunks import Ints
from lancelet.encodings.mini_block import DATA_BUFFER, MiniBlockIndex
from lancelet.encodings.page import StoredPage
from lancelet.encodings.values import Bytes
from lancelet.format.columns import Page
from lancelet.format.layouts import ConstantLayout, MiniBlockLayout

__all__ = ["Apart", "group_bounds", "merged"]

# A page this large is worth its microseconds, and groups stay small enough to be shared among threads.
_LARGE_PAGE = 2**20
_LARGEST_GROUP = 4 * 2**20
_MOST_PAGES = 256
# Values of a chunk.
_MOST_VALUES = 2**15
# More than any small page has: what claims more is damaged.
_MOST_ITEMS = 2**40


@dataclass(frozen=True, slots=True)
class Apart:
    """Neighbouring pages that turned out not to be alike: each is read by itself."""

    first: int
    #: First row of each page and behind them the number of rows, counted from the first page.
    firsts: Ints
    pages: tuple[StoredPage, ...]


def group_bounds(pages: Sequence[Page]) -> list[int]:
    """Number of the first page of each group, and behind them the number of pages; only small pages are grouped.

    >>> group_bounds([Page(((0, size),), 1, 0, b"") for size in (10, 20, 2**20, 30, 40)])
    [0, 2, 3, 5]
    """
    bounds: list[int] = []
    room = 0
    for number, page in enumerate(pages):
        size = sum(length for _, length in page.buffers)
        if not bounds or size >= _LARGE_PAGE or size > room or number - bounds[-1] >= _MOST_PAGES:
            bounds.append(number)
            room = _LARGEST_GROUP if size < _LARGE_PAGE else 0
        room -= size
    return [*bounds, len(pages)]


def merged(view: Bytes, pages: Sequence[StoredPage]) -> tuple[StoredPage, MiniBlockIndex | None] | None:
    """One page and its index that stand for all the pages; None where these differ in more than their rows.

    ``view`` is the whole file.
    """
    first = pages[0]
    if isinstance(first.layout, ConstantLayout):
        return _constant(view, pages)
    layouts = [page.layout for page in pages if isinstance(page.layout, MiniBlockLayout)]
    if len(layouts) < len(pages) or first.scale != 1 or any(page.path is not first.path for page in pages):
        return None
    pattern = replace(layouts[0], num_items=0)
    buffers = len(mini_block.index_buffers(pattern)) + 1
    # Equal descriptions are mostly one and the same object.
    distinct = {id(layout): layout for layout in layouts}.values()
    if pattern.dictionary is not None or any(replace(layout, num_items=0) != pattern for layout in distinct):
        return None
    if any(
        len(page.buffers) != buffers or layout.num_items >= _MOST_ITEMS
        for page, layout in zip(pages, layouts, strict=True)
    ):
        return None
    data = np.array([page.buffers[DATA_BUFFER] for page in pages], np.int64)
    base, end = int(data[:, 0].min()), int(data.sum(axis=1).max())
    moves = data[:, 0] - base
    rows = np.cumsum([0, *(page.rows for page in pages)])
    items = np.array([layout.num_items for layout in layouts], np.int64)
    index = _single_chunks(view, pattern, pages, np.stack([moves, data[:, 1], items]), rows)
    if index is None:
        indexes = [_index(view, layout, page) for layout, page in zip(layouts, pages, strict=True)]
        index = _joined(indexes, moves, rows)
    layout = replace(pattern, num_items=int(items.sum()))
    places = tuple((base, end - base if number == DATA_BUFFER else 0) for number in range(buffers))
    return StoredPage(layout, places, first.path, int(rows[-1])), index


def _constant(view: Bytes, pages: Sequence[StoredPage]) -> tuple[StoredPage, None] | None:
    """Pages without levels whose rows all have one value, and all the same."""
    first = pages[0]
    if not constant.without_levels(len(first.buffers)):
        return None
    value = _bytes(view, first)
    if any(page.layout != first.layout or _bytes(view, page) != value for page in pages[1:]):
        return None
    return replace(first, rows=sum(page.rows for page in pages)), None


def _bytes(view: Bytes, page: StoredPage) -> list[bytes]:
    return [view[start : start + size].tobytes() for start, size in page.buffers]


def _single_chunks(
    view: Bytes, layout: MiniBlockLayout, pages: Sequence[StoredPage], places: Ints, rows: Ints
) -> MiniBlockIndex | None:
    """The index of pages of one chunk each, for all at once; None where they are not, or are damaged.

    ``places`` has for each page where its chunks begin, their bytes, and the number of its values.
    """
    width = 4 if layout.has_large_chunk else 2
    words = [page.buffers[0] for page in pages]
    if layout.repetition_index_depth or any(layer.is_list for layer in layout.layers):
        return None
    if any(size != width for _, size in words):
        return None
    at = np.array([start for start, _ in words], np.int64)
    table = view[at[:, None] + np.arange(width)].view(f"<u{width}")[:, 0].astype(np.int64)
    starts, sizes, items = places
    logs = table & 15
    counted = (logs == 0) | (np.left_shift(1, logs) == items)
    if not np.all(counted & (((table >> 4) + 1) * 8 == sizes) & (items > 0) & (items <= _MOST_VALUES)):
        return None
    if np.any(np.diff(rows) != items):
        return None
    return MiniBlockIndex(starts, sizes, items, rows, rows[:-1], None)


def _index(view: Bytes, layout: MiniBlockLayout, page: StoredPage) -> MiniBlockIndex:
    places = [page.buffers[number] for number in mini_block.index_buffers(layout)]
    buffers = [view[start : start + size] for start, size in places]
    return mini_block.parse_index(layout, page.rows, buffers, page.buffers[DATA_BUFFER][1])


def _joined(indexes: Sequence[MiniBlockIndex], moves: Ints, rows: Ints) -> MiniBlockIndex:
    """One index of the chunks of all pages, whose data begin at ``moves`` and whose rows at ``rows``."""
    each = list(zip(indexes, moves.tolist(), rows.tolist(), strict=False))
    return MiniBlockIndex(
        np.concatenate([index.starts + move for index, move, _ in each]),
        np.concatenate([index.sizes for index in indexes]),
        np.concatenate([index.counts for index in indexes]),
        np.concatenate([*(index.first_rows[:-1] + row for index, _, row in each), rows[-1:]]),
        np.concatenate([index.touched_rows + row for index, _, row in each]),
        None,
    )
