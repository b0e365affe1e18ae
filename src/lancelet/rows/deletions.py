"""Deletion vectors: which physical rows of one fragment are deleted, and what that leaves of ranges and offsets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lancelet.errors import Corrupt, InvalidInput
from lancelet.rows.addresses import LARGEST, UInt32s, as_uint64s
from lancelet.rows.ordering import places_in

__all__ = ["NO_DELETIONS", "DeletionVector", "union"]


class DeletionVector:
    """The deleted rows of a fragment: physical offsets, ascending, each once. Immutable; equal by content.

    A *physical* offset counts every row of the fragment's files, a *logical* one only those that are not deleted.

    >>> deleted = DeletionVector([5, 3])
    >>> deleted.to_physical([2, 3, 4]).tolist()
    [2, 4, 6]
    """

    __slots__ = ("_before", "rows")

    def __init__(self, rows: npt.ArrayLike = ()) -> None:
        """From physical offsets in any order, repeated or not."""
        values = _as_uint32s(rows)
        if values.size > 1 and not bool(np.all(values[1:] > values[:-1])):
            values = np.unique(values)
        #: Physical offsets, ascending and distinct; read-only.
        self.rows: UInt32s = values
        self.rows.flags.writeable = False
        self._before: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeletionVector) and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash(self.rows.tobytes())

    def __repr__(self) -> str:
        return f"DeletionVector({len(self)} rows)"

    def __reduce__(self) -> tuple[type[DeletionVector], tuple[UInt32s]]:
        return DeletionVector, (self.rows,)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.rows.nbytes + (0 if self._before is None else self._before.nbytes)

    def check(self, physical_rows: int) -> DeletionVector:
        """Itself, if every row is one of a fragment of so many; else Corrupt.

        >>> len(DeletionVector([3]).check(4))
        1
        """
        if len(self) and int(self.rows[-1]) >= physical_rows:
            raise Corrupt(f"row {int(self.rows[-1])} is listed as deleted, the fragment has {physical_rows} rows")
        return self

    def contains(self, offsets: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each physical offset is deleted.

        >>> DeletionVector([1, 2]).contains([0, 2]).tolist()
        [False, True]
        """
        asked = as_uint64s(offsets, "offsets")
        if not len(self):
            return np.zeros(asked.shape, np.bool_)
        places = np.searchsorted(self.rows, np.minimum(asked, LARGEST).astype(np.uint32))
        found = self.rows[np.minimum(places, len(self) - 1)]
        return np.equal(found, asked)

    def within(self, begin: int, end: int) -> UInt32s:
        """The deleted rows from physical offset ``begin`` up to but not including ``end``; a view.

        >>> DeletionVector([1, 4, 9]).within(2, 9).tolist()
        [4]
        """
        first, last = np.searchsorted(self.rows, np.array([max(begin, 0), max(end, 0)], np.uint64))
        return self.rows[first:last]

    def live_count(self, begin: int, end: int) -> int:
        """How many rows of a physical range are not deleted.

        >>> DeletionVector([1, 4]).live_count(0, 3)
        2
        """
        return max(end - begin, 0) - len(self.within(begin, end))

    def live_mask(self, begin: int, end: int) -> npt.NDArray[np.bool_] | None:
        """For each row of a physical range whether it is live; None where all are.

        >>> DeletionVector([1, 4]).live_mask(0, 3).tolist()
        [True, False, True]
        """
        deleted = self.within(begin, end)
        if not len(deleted):
            return None
        mask = np.ones(end - begin, np.bool_)
        mask[deleted.astype(np.int64) - begin] = False
        return mask

    def live_offsets(self, begin: int, end: int) -> UInt32s:
        """The physical offsets of the live rows of a physical range.

        >>> DeletionVector([1]).live_offsets(0, 3).tolist()
        [0, 2]
        """
        mask = self.live_mask(begin, end)
        if mask is None:
            return np.arange(begin, max(begin, end), dtype=np.uint32)
        return (np.flatnonzero(mask) + begin).astype(np.uint32)

    def live_ranges(self, begin: int, end: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The longest live stretches of a physical range: where each begins, and where it ends.

        >>> [side.tolist() for side in DeletionVector([1, 4]).live_ranges(0, 5)]
        [[0, 2], [1, 4]]
        """
        deleted = self.within(begin, end).astype(np.int64)
        begins = np.concatenate(([begin], deleted + 1))
        ends = np.concatenate((deleted, [end]))
        kept = begins < ends
        return begins[kept], ends[kept]

    def to_physical(self, logical: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The physical offset of each logical one: the live row with so many live rows before it.

        Whether the fragment has so many rows is for the caller to check.
        """
        asked = as_uint64s(logical, "offsets").ravel().astype(np.int64)
        if not len(self):
            return asked
        if self._before is None:
            # Live rows before each deleted row: it never falls, and a deleted row with at most n live rows before it
            # lies before the live row with exactly n.
            self._before = self.rows.astype(np.int64) - np.arange(len(self), dtype=np.int64)
        return asked + places_in(self._before, asked, "right")

    def to_logical(self, physical: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The logical offset of each physical one: the live rows before it, be it live or not.

        >>> DeletionVector([3, 5]).to_logical([2, 4, 6]).tolist()
        [2, 3, 4]
        """
        asked = as_uint64s(physical, "offsets").astype(np.int64)
        return asked - np.searchsorted(self.rows, asked)


def _as_uint32s(rows: npt.ArrayLike) -> UInt32s:
    """The row numbers in an array of their own."""
    if isinstance(rows, np.ndarray) and rows.dtype == np.uint32:
        return rows.flatten()
    values = as_uint64s(rows, "deleted rows").ravel()
    if values.size and int(values.max()) > LARGEST:
        raise InvalidInput(f"deleted row {int(values.max())} does not fit 32 bits")
    return values.astype(np.uint32)


#: The vector of a fragment without deleted rows.
NO_DELETIONS = DeletionVector()


def union(vectors: Iterable[DeletionVector]) -> DeletionVector:
    """The rows deleted in any of the vectors.

    >>> union([DeletionVector([1, 2]), DeletionVector([2, 3])]).rows.tolist()
    [1, 2, 3]
    """
    filled = [vector for vector in vectors if len(vector)]
    if len(filled) < 2:
        return filled[0] if filled else NO_DELETIONS
    return DeletionVector(np.concatenate([vector.rows for vector in filled]))
