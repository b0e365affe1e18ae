"""Planning: which pages, and which of their rows, some rows of some columns need. Pure; nothing is read here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lancelet.encodings.page import PageIndex, Rows, StoredPage
from lancelet.encodings.shape import Leaf, Shape, items_per_row, leaves, path_to
from lancelet.errors import Corrupt, LanceletError
from lancelet.file.data_file import DataFile
from lancelet.file.leaf_pages import LeafPages
from lancelet.file.page_groups import Apart, group_bounds, merged
from lancelet.format.columns import Page

__all__ = ["PageRequest", "requests_for", "rows_by_page"]

# Readers of one file seldom have many projections; what is kept for them is let go all at once.
_SHAPES_KEPT = 1024


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Some rows of one page of one leaf column."""

    column: int
    number: int
    page: StoredPage
    rows: Rows
    #: The field the leaf belongs to, for messages.
    name: str


def requests_for(file: DataFile, shape: Shape, rows: Rows) -> list[PageRequest]:
    """The page requests of one top-level field, leaf by leaf in row order."""
    known = file.leaf_pages.get(id(shape))
    if known is None:
        if len(file.leaf_pages) >= _SHAPES_KEPT:
            file.leaf_pages.clear()
        known = file.leaf_pages[id(shape)] = shape, tuple(_leaf_pages(file, shape, leaf) for leaf in leaves(shape))
    requests: list[PageRequest] = []
    for leaf in known[1]:
        try:
            _check_rows(leaf, rows)
            for group, local in rows_by_page(leaf.firsts, rows, leaf.first_list):
                stored = leaf.stored[group] or _described(file, leaf, group)
                if isinstance(stored, StoredPage):
                    requests.append(PageRequest(leaf.column, leaf.bounds[group], stored, local, leaf.name))
                else:
                    requests.extend(
                        PageRequest(leaf.column, stored.first + at, stored.pages[at], below, leaf.name)
                        for at, below in rows_by_page(stored.firsts, local)
                    )
        except LanceletError as error:
            raise error.where(uri=file.uri, column=leaf.name) from None
    return requests


def _leaf_pages(file: DataFile, shape: Shape, leaf: Leaf) -> LeafPages:
    path = path_to(shape, leaf.column)
    name = ".".join(node.field.name for node in path)
    scale = items_per_row(path)
    try:
        first_items = file.first_rows(leaf.column)
        if scale > 1 and np.any(first_items % scale):
            raise Corrupt(f"pages hold parts of fixed-size lists of {scale} items")
    except LanceletError as error:
        raise error.where(uri=file.uri, column=name) from None
    pages = file.column(leaf.column).pages
    bounds = list(range(len(pages) + 1)) if file.view is None else group_bounds(pages)
    firsts = (first_items // scale)[bounds]
    return LeafPages(leaf.column, name, path, bounds, firsts, firsts.tolist(), [None] * (len(bounds) - 1))


def _check_rows(leaf: LeafPages, rows: Rows) -> None:
    wanted = rows.stop if isinstance(rows, slice) else int(rows[-1]) + 1 if len(rows) else 0
    if wanted > leaf.first_list[-1]:
        raise Corrupt(f"column has {leaf.first_list[-1]:,} rows, expected at least {wanted:,}")


def _described(file: DataFile, leaf: LeafPages, group: int) -> StoredPage | Apart:
    first, end = leaf.bounds[group], leaf.bounds[group + 1]
    column, scale = file.column(leaf.column), items_per_row(leaf.path)
    pages = tuple([_stored_page(file, leaf, column.pages[number], number, scale) for number in range(first, end)])
    stored: StoredPage | Apart = pages[0]
    if len(pages) > 1:
        firsts = np.cumsum([0, *(page.rows for page in pages)])
        stored = Apart(first, firsts, pages)
        one = _merged(file, pages)
        if one is not None:
            stored, file.page_indexes[leaf.column, first] = one
    leaf.stored[group] = stored
    return stored


def _merged(file: DataFile, pages: Sequence[StoredPage]) -> tuple[StoredPage, PageIndex] | None:
    """The pages as one; None where they are not alike, or damaged: then each is read, and refused, by itself."""
    try:
        return None if file.view is None else merged(file.view, pages)
    except LanceletError:
        return None


def _stored_page(file: DataFile, leaf: LeafPages, page: Page, number: int, scale: int) -> StoredPage:
    try:
        layout = page.describe(file.version)
    except LanceletError as error:
        raise error.where(page=number, byte_range=file.place_of(leaf.column)) from None
    return StoredPage(layout, page.buffers, leaf.path, page.length // scale)  # type: ignore[arg-type]


def rows_by_page(firsts: np.ndarray, rows: Rows, first_list: Sequence[int] | None = None) -> Sequence[tuple[int, Rows]]:
    """The rows of each page they fall into, counted from its start; ``first_list`` is ``firsts`` as a list."""
    if isinstance(rows, slice):
        if rows.start >= rows.stop:
            return []
        begin = int(np.searchsorted(firsts, rows.start, "right")) - 1
        end = int(np.searchsorted(firsts, rows.stop, "left"))
        return [
            (number, slice(max(rows.start - first, 0), min(rows.stop, stop) - first))
            for number in range(begin, end)
            if (first := int(firsts[number])) < (stop := int(firsts[number + 1]))
        ]
    if len(rows) == 1 and first_list is not None:
        number = bisect_right(first_list, int(rows[0])) - 1
        return [(number, rows - first_list[number])]
    cuts = rows.searchsorted(firsts)
    bounds = cuts.tolist()
    return [
        (number, rows[bounds[number] : bounds[number + 1]] - firsts[number])
        for number in (cuts[1:] > cuts[:-1]).nonzero()[0].tolist()
    ]
