"""What a file knows of one leaf column for one shape: found once, asked by every read."""

from __future__ import annotations

from dataclasses import dataclass

from lancelet.encodings.chunks import Ints
from lancelet.encodings.page import StoredPage
from lancelet.encodings.shape import Shape
from lancelet.file.page_groups import Apart

__all__ = ["LeafPages"]


@dataclass(frozen=True, slots=True)
class LeafPages:
    """A leaf column: the nodes that lead to it and, group of pages by group, the first row and the description.

    Most groups are one page; see ``page_groups``.
    """

    column: int
    #: The field the leaf belongs to, for messages.
    name: str
    path: tuple[Shape, ...]
    #: Number of the first page of each group and behind them the number of pages.
    bounds: list[int]
    #: First row of each group and behind them the number of rows; the same as a list, which is faster for one row.
    firsts: Ints
    first_list: list[int]
    #: Groups described so far.
    stored: list[StoredPage | Apart | None]
