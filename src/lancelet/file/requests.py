"""Planning: which pages, and which of their rows, some rows of some columns need. Pure; nothing is read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lancelet.encodings.page import Rows, StoredPage
from lancelet.encodings.shape import Shape, items_per_row, leaves, path_to
from lancelet.errors import Corrupt, LanceletError
from lancelet.file.data_file import DataFile

__all__ = ["PageRequest", "requests_for", "rows_by_page"]


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
    requests: list[PageRequest] = []
    for leaf in leaves(shape):
        path = path_to(shape, leaf.column)
        name = ".".join(node.field.name for node in path)
        try:
            requests.extend(_requests(file, path, leaf.column, name, rows))
        except LanceletError as error:
            raise error.where(uri=file.uri, column=name) from None
    return requests


def _requests(file: DataFile, path: tuple[Shape, ...], column: int, name: str, rows: Rows) -> list[PageRequest]:
    scale = items_per_row(path)
    first_items = file.first_rows(column)
    if scale > 1 and np.any(first_items % scale):
        raise Corrupt(f"pages hold parts of fixed-size lists of {scale} items")
    firsts = first_items // scale
    wanted = rows.stop if isinstance(rows, slice) else int(rows[-1]) + 1 if len(rows) else 0
    if wanted > firsts[-1]:
        raise Corrupt(f"column has {int(firsts[-1]):,} rows, expected at least {wanted:,}")
    pages = file.column(column).pages
    requests = []
    for number, local in rows_by_page(firsts, rows):
        page = pages[number]
        try:
            layout = page.describe(file.version)
        except LanceletError as error:
            raise error.where(page=number) from None
        stored = StoredPage(layout, page.buffers, path, int(firsts[number + 1] - firsts[number]))  # type: ignore[arg-type]
        requests.append(PageRequest(column, number, stored, local, name))
    return requests


def rows_by_page(firsts: np.ndarray, rows: Rows) -> Sequence[tuple[int, Rows]]:
    """The rows of each page they fall into, counted from its start."""
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
    cuts = np.searchsorted(rows, firsts)
    return [
        (number, rows[cuts[number] : cuts[number + 1]] - firsts[number])
        for number in np.flatnonzero(cuts[1:] > cuts[:-1]).tolist()
    ]
