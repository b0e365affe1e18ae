"""What an index answers: for which rows a condition is true or null, whether that is exact, and how rows are named."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from lancelet.index.queries import Query
from lancelet.rows.masks import SelectionMask

__all__ = ["Answer", "Domain", "OpenIndex", "Skipped", "Statistics"]

#: As JSON has it.
Statistics: TypeAlias = "dict[str, int | float | str | bool | None]"


class Domain(Enum):
    """What an index calls a row. Without stable row ids the two are the same, and indexes say ADDRESSES."""

    ADDRESSES = "row addresses"
    ROW_IDS = "stable row ids"


@dataclass(frozen=True, slots=True)
class Answer:
    """For which of the rows that an index covers a condition is true, and for which it is null.

    Not exact means: every row for which the condition is true is among those that ``mask`` says it is true for,
    and it is true for no row that ``mask`` says it is null for. Such an answer must be checked, and its negation
    says nothing. Rows may have been deleted since, and rows of fragments that are no longer covered may be listed.
    """

    mask: SelectionMask
    exact: bool = True


class OpenIndex(Protocol):
    """One segment of an index. Opening reads nothing; what searches load is kept by the process's cache."""

    @property
    def kind(self) -> str:
        """The type, as users name it: ``BTREE``."""

    @property
    def domain(self) -> Domain:
        """What the rows of answers are called by."""

    def answers(self, query: Query) -> bool:
        """Whether :meth:`search` takes the query. Nothing is read."""

    def search(self, query: Query, *, nulls: bool = True) -> Answer:
        """The rows for which the query is true and for which it is null.

        Without ``nulls`` the mask need not list the latter: enough where nobody negates the condition, and less work.
        """

    def estimate(self, query: Query) -> int | None:
        """About how many rows the answer will list, or None where only searching tells. Reads less than a search."""

    def statistics(self) -> Statistics:
        """What ``index_stats`` says of the segment."""

    def prewarm(self) -> None:
        """Load what searches will need into the cache, as far as it fits."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An index that cannot be used, and why: the rows are scanned instead, and ``explain`` says so."""

    reason: str
