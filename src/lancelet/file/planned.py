"""What is planned to be read of one page."""

from __future__ import annotations

from dataclasses import dataclass

from lancelet.format.columns import Range

__all__ = ["PagePlan"]


@dataclass(frozen=True, slots=True)
class PagePlan:
    """The bytes that some rows of a page need: first those of its index, where it is not known, then the data's."""

    name: str
    column: int
    page: int
    rows: int
    index: tuple[Range, ...]
    #: None while nobody can say: the index must be read first.
    data: tuple[Range, ...] | None
