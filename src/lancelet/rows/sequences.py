"""Row-id sequences: the stable id of each row of a fragment, in the order of the rows, as runs of consecutive ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lancelet.errors import Corrupt, InvalidInput
from lancelet.rows.addresses import UInt64s, as_uint64s
from lancelet.rows.deletions import DeletionVector
from lancelet.rows.runs import Cuts, Int64s, checked_positions, cut, run_of, starts_of

__all__ = ["RowIdSequence", "concatenate"]


class RowIdSequence:
    """The ids of a fragment's rows by position. Immutable; equal where the ids are.

    Run ``r`` holds the ids from ``firsts[r]`` on, for the positions up to ``ends[r]``. A range of a thousand million
    ids is one run; ids in no order are runs of one row.

    >>> ids = RowIdSequence.from_ids([7, 8, 9, 3])
    >>> ids.firsts.tolist(), ids.ends.tolist(), ids.take([3, 0]).tolist()
    ([7, 3], [3, 4], [3, 7])
    """

    __slots__ = ("ends", "firsts")

    def __init__(self, firsts: UInt64s, ends: Int64s) -> None:
        """From runs; those that continue each other are joined."""
        if len(firsts) > 1:
            lengths = ends - starts_of(ends)
            joined = firsts[:-1] + lengths[:-1].astype(np.uint64) == firsts[1:]
            if bool(joined.any()):
                firsts = firsts[np.concatenate(([True], ~joined))]
                ends = ends[np.concatenate((~joined, [True]))]
        self.firsts, self.ends = firsts, ends

    @staticmethod
    def from_range(begin: int, end: int) -> RowIdSequence:
        """The ids from ``begin`` up to but not including ``end``.

        >>> RowIdSequence.from_range(5, 8).to_ids().tolist()
        [5, 6, 7]
        """
        if not 0 <= begin <= end < 2**64:
            raise InvalidInput(f"row ids from {begin} up to {end} are no range")
        runs = 1 if begin < end else 0
        return RowIdSequence(np.array([begin][:runs], np.uint64), np.array([end - begin][:runs], np.int64))

    @staticmethod
    def from_ids(ids: npt.ArrayLike) -> RowIdSequence:
        """The ids as given, one for each row."""
        values = as_uint64s(ids, "row ids").ravel()
        if not len(values):
            return RowIdSequence.from_range(0, 0)
        breaks = np.flatnonzero(values[1:] - values[:-1] != 1) + 1
        firsts = values[np.concatenate(([0], breaks))]
        return RowIdSequence(firsts, np.concatenate((breaks, [len(values)])))

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowIdSequence):
            return NotImplemented
        return np.array_equal(self.firsts, other.firsts) and np.array_equal(self.ends, other.ends)

    def __hash__(self) -> int:
        return hash((self.firsts.tobytes(), self.ends.tobytes()))

    def __repr__(self) -> str:
        return f"RowIdSequence({len(self)} rows in {len(self.ends)} runs)"

    @property
    def lengths(self) -> Int64s:
        """Rows in each run."""
        return self.ends - starts_of(self.ends)

    @property
    def lasts(self) -> UInt64s:
        """The last id of each run."""
        lasts: UInt64s = self.firsts + (self.lengths - 1).astype(np.uint64)
        return lasts

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.firsts.nbytes + self.ends.nbytes

    def check(self, physical_rows: int) -> RowIdSequence:
        """Itself, if it has an id for each of so many rows; else Corrupt."""
        if len(self) != physical_rows:
            raise Corrupt(f"the fragment has {len(self)} row ids for {physical_rows} rows")
        return self

    def to_ids(self) -> UInt64s:
        """Every id, by position."""
        if len(self.ends) == len(self):
            return self.firsts
        ids = np.repeat(self.firsts - starts_of(self.ends).astype(np.uint64), self.lengths)
        ids += np.arange(len(ids), dtype=np.uint64)
        return ids

    def take(self, positions: npt.ArrayLike) -> UInt64s:
        """The ids at some positions, in the order asked."""
        asked = checked_positions(positions, len(self))
        run = run_of(self.ends, asked)
        ids: UInt64s = self.firsts[run] + (asked - starts_of(self.ends)[run]).astype(np.uint64)
        return ids

    def slice(self, begin: int, end: int) -> RowIdSequence:
        """The sequence from one position up to but not including another; what lies outside is passed over.

        >>> RowIdSequence.from_range(0, 100).slice(10, 12).to_ids().tolist()
        [10, 11]
        """
        begin = max(begin, 0)
        return self._pieces(cut(self.ends, np.array([begin]), np.array([min(max(end, begin), len(self))])))

    def without(self, deleted: DeletionVector) -> RowIdSequence:
        """The sequence of the rows that are left when some are deleted.

        >>> RowIdSequence.from_range(10, 14).without(DeletionVector([1])).to_ids().tolist()
        [10, 12, 13]
        """
        if not len(deleted):
            return self
        if self._mostly_single:
            return RowIdSequence.from_ids(self.to_ids()[deleted.check(len(self)).live_offsets(0, len(self))])
        return self._pieces(cut(self.ends, *deleted.check(len(self)).live_ranges(0, len(self))))

    def live_runs(self, deleted: DeletionVector) -> tuple[UInt64s, Int64s, Int64s]:
        """What is left when rows are deleted, in runs that neither ids nor positions break: first ids, rows, positions.

        >>> [part.tolist() for part in RowIdSequence.from_range(10, 14).live_runs(DeletionVector([1]))]
        [[10, 12], [1, 2], [0, 2]]
        """
        starts = starts_of(self.ends)
        if not len(deleted):
            return self.firsts, self.ends - starts, starts
        if self._mostly_single:
            live = deleted.check(len(self)).live_offsets(0, len(self))
            return self.to_ids()[live], np.ones(len(live), np.int64), live.astype(np.int64)
        cuts = cut(self.ends, *deleted.check(len(self)).live_ranges(0, len(self)))
        return self._firsts(cuts), cuts.lengths, starts[cuts.run] + cuts.skipped

    @property
    def _mostly_single(self) -> bool:
        """Whether runs are so short that rows one by one are less work."""
        return len(self.ends) * 4 > len(self)

    def _pieces(self, cuts: Cuts) -> RowIdSequence:
        return RowIdSequence(self._firsts(cuts), np.cumsum(cuts.lengths))

    def _firsts(self, cuts: Cuts) -> UInt64s:
        firsts: UInt64s = self.firsts[cuts.run] + cuts.skipped.astype(np.uint64)
        return firsts


def concatenate(sequences: Sequence[RowIdSequence]) -> RowIdSequence:
    """The sequences one after the other.

    >>> len(concatenate([RowIdSequence.from_range(0, 5), RowIdSequence.from_range(5, 9)]).ends)
    1
    """
    if not sequences:
        return RowIdSequence.from_range(0, 0)
    lengths = np.concatenate([sequence.lengths for sequence in sequences])
    return RowIdSequence(np.concatenate([sequence.firsts for sequence in sequences]), np.cumsum(lengths))
