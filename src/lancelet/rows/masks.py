"""Selection masks: for every row whether a condition is true, false or null, combined as SQL combines them.

    and    true  false null        or     true  false null        not
    true   true  false null        true   true  true  true        true   false
    false  false false false       false  true  false null        false  true
    null   null  false null        null   true  null  null        null   null

A mask lists the fewer: the rows for which the condition is true, or for an inverted mask those for which it is false.
Every row that it does not list has the other value, also rows that the mask has never heard of.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lancelet.rows.addresses import as_uint64s
from lancelet.rows.row_sets import NO_ROWS, RowSet

__all__ = ["ALL_FALSE", "ALL_TRUE", "SelectionMask"]


@dataclass(frozen=True, slots=True)
class SelectionMask:
    """What a condition says of every row. ``&``, ``|`` and ``~`` are SQL's and, or and not.

    >>> big = SelectionMask(RowSet.of([1, 2]), nulls=RowSet.of([3]))
    >>> (~big).value_of([1, 3, 9]).tolist()
    [False, None, True]
    """

    #: The rows for which the condition is true; false, where ``inverted``.
    listed: RowSet
    #: The rows for which it is null; wins over ``listed``.
    nulls: RowSet = field(default=NO_ROWS)
    inverted: bool = False

    def __post_init__(self) -> None:
        if self.nulls and self.listed:
            object.__setattr__(self, "listed", self.listed - self.nulls)

    def __invert__(self) -> SelectionMask:
        return SelectionMask(self.listed, self.nulls, not self.inverted)

    def __and__(self, other: SelectionMask) -> SelectionMask:
        if self.inverted and other.inverted:
            false = self.listed | other.listed
            return SelectionMask(false, (self.nulls | other.nulls) - false, True)
        one, two = (other, self) if self.inverted else (self, other)
        maybe = one._not_false_among(two)
        true = (one.listed - two.listed - two.nulls) if two.inverted else (one.listed & two.listed)
        return SelectionMask(true, maybe - true)

    def _not_false_among(self, other: SelectionMask) -> RowSet:
        """The rows that neither condition is false for; this mask lists what is true."""
        maybe = self.listed | self.nulls
        return maybe - other.listed if other.inverted else maybe & (other.listed | other.nulls)

    def __or__(self, other: SelectionMask) -> SelectionMask:
        return ~(~self & ~other)

    def true_among(self, rows: RowSet) -> RowSet:
        """Those of ``rows`` for which the condition is true: what a filter keeps.

        >>> mask = ~SelectionMask(RowSet.of([1]), nulls=RowSet.of([2]))
        >>> mask.true_among(RowSet.of([0, 1, 2, 3])).to_values().tolist()
        [0, 3]
        """
        return rows - self.listed - self.nulls if self.inverted else rows & self.listed

    def false_among(self, rows: RowSet) -> RowSet:
        """Those of ``rows`` for which the condition is false."""
        return (~self).true_among(rows)

    def null_among(self, rows: RowSet) -> RowSet:
        """Those of ``rows`` for which the condition is null."""
        return rows & self.nulls if self.nulls else NO_ROWS

    def selects(self, rows: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether the condition is true, for each address or id."""
        asked = as_uint64s(rows)
        listed = self.listed.contains(asked)
        return ~(listed | self.nulls.contains(asked)) if self.inverted else listed

    def value_of(self, rows: npt.ArrayLike) -> npt.NDArray[np.object_]:
        """True, False or None for each address or id: for explanations and tests."""
        values = self.selects(rows).astype(object)
        values[self.nulls.contains(rows)] = None
        return values

    def is_equivalent(self, other: SelectionMask, rows: RowSet) -> bool:
        """Whether two masks say the same of each of ``rows``.

        >>> ALL_TRUE.is_equivalent(SelectionMask(RowSet.of([1])), RowSet.of([1]))
        True
        """
        same_true = self.true_among(rows) == other.true_among(rows)
        return same_true and self.null_among(rows) == other.null_among(rows)


#: The condition that no row fulfils, and the one that every row does.
ALL_FALSE = SelectionMask(NO_ROWS)
ALL_TRUE = SelectionMask(NO_ROWS, inverted=True)
