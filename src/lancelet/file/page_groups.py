"""Small pages read as one: where neighbouring pages of a mapped file are alike, their chunks make one table.

A page costs some microseconds whatever its size. Writers that are handed few rows at a time leave hundreds of small
pages, so a run of them is given to the decoders as if it were one page whose chunks lie apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lancelet.encodings import mini_block
from lancelet.encodings.chunks import Ints
from lancelet.encodings.mini_block import DATA_BUFFER, MiniBlockIndex
from lancelet.encodings.page import StoredPage
from lancelet.encodings.values import Bytes
from lancelet.format.columns import Page
from lancelet.format.layouts import MiniBlockLayout

__all__ = ["Apart", "group_bounds", "merged"]

# A page this large is worth its microseconds, and groups stay small enough to be shared among threads.
_LARGE_PAGE = 2**20
_LARGEST_GROUP = 4 * 2**20
_MOST_PAGES = 256


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


def merged(view: Bytes, pages: Sequence[StoredPage]) -> tuple[StoredPage, MiniBlockIndex] | None:
    """One page and its index that stand for all the pages; None where these differ in more than their rows.

    ``view`` is the whole file.
    """
    layouts = [page.layout for page in pages if isinstance(page.layout, MiniBlockLayout)]
    if len(layouts) < len(pages) or any(page.scale != 1 for page in pages):
        return None
    pattern = replace(layouts[0], num_items=0)
    buffers = len(mini_block.index_buffers(pattern)) + 1
    if pattern.dictionary is not None or any(replace(layout, num_items=0) != pattern for layout in layouts):
        return None
    if any(len(page.buffers) != buffers for page in pages):
        return None
    data = [page.buffers[DATA_BUFFER] for page in pages]
    base = min(start for start, _ in data)
    end = max(start + size for start, size in data)
    indexes = [_index(view, layout, page) for layout, page in zip(layouts, pages, strict=True)]
    layout = replace(pattern, num_items=sum(layout.num_items for layout in layouts))
    places = tuple((base, end - base if number == DATA_BUFFER else 0) for number in range(buffers))
    rows = np.cumsum([0, *(page.rows for page in pages)])
    index = _joined(indexes, np.array([start - base for start, _ in data]), rows)
    return StoredPage(layout, places, pages[0].path, int(rows[-1])), index


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
