"""Version sequences: which table version made, or last changed, each row of a fragment, as runs of one version."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lancelet.errors import Corrupt
from lancelet.format.row_ids import Range, VersionRun, parse_versions, segment_rows, write_versions
from lancelet.rows.addresses import LARGEST, UInt64s, as_uint64s
from lancelet.rows.deletions import DeletionVector
from lancelet.rows.runs import Cuts, Int64s, checked_positions, cut, run_of, starts_of

__all__ = ["VersionSequence", "concatenate_versions", "read_version_sequence", "write_version_sequence"]


class VersionSequence:
    """The version of each row by position. Immutable; equal where the versions are.

    >>> versions = VersionSequence.from_versions([1, 1, 4])
    >>> versions.versions.tolist(), versions.ends.tolist(), versions.take([2]).tolist()
    ([1, 4], [2, 3], [4])
    """

    __slots__ = ("ends", "versions")

    def __init__(self, versions: UInt64s, ends: Int64s) -> None:
        """From runs; neighbours with the same version are joined."""
        if len(versions) > 1:
            differ = versions[1:] != versions[:-1]
            if not bool(differ.all()):
                versions = versions[np.concatenate(([True], differ))]
                ends = ends[np.concatenate((differ, [True]))]
        self.versions, self.ends = versions, ends

    @staticmethod
    def uniform(version: int, rows: int) -> VersionSequence:
        """So many rows of one version."""
        runs = 1 if rows else 0
        return VersionSequence(np.array([version][:runs], np.uint64), np.array([rows][:runs], np.int64))

    @staticmethod
    def from_versions(versions: npt.ArrayLike) -> VersionSequence:
        """The versions as given, one for each row."""
        values = as_uint64s(versions, "versions").ravel()
        return VersionSequence(values, np.arange(1, len(values) + 1))

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VersionSequence):
            return NotImplemented
        return np.array_equal(self.versions, other.versions) and np.array_equal(self.ends, other.ends)

    def __hash__(self) -> int:
        return hash((self.versions.tobytes(), self.ends.tobytes()))

    def __repr__(self) -> str:
        return f"VersionSequence({len(self)} rows in {len(self.ends)} runs)"

    @property
    def lengths(self) -> Int64s:
        """Rows in each run."""
        return self.ends - starts_of(self.ends)

    def to_versions(self) -> UInt64s:
        """Every row's version, by position."""
        return np.repeat(self.versions, self.lengths)

    def take(self, positions: npt.ArrayLike) -> UInt64s:
        """The versions at some positions, in the order asked."""
        return self.versions[run_of(self.ends, checked_positions(positions, len(self)))]

    def slice(self, begin: int, end: int) -> VersionSequence:
        """The sequence from one position up to but not including another; what lies outside is passed over."""
        begin = max(begin, 0)
        return self._pieces(cut(self.ends, np.array([begin]), np.array([min(max(end, begin), len(self))])))

    def without(self, deleted: DeletionVector) -> VersionSequence:
        """The sequence of the rows that are left when some are deleted.

        >>> VersionSequence.from_versions([1, 2, 1]).without(DeletionVector([1])).ends.tolist()
        [2]
        """
        if not len(deleted):
            return self
        return self._pieces(cut(self.ends, *deleted.check(len(self)).live_ranges(0, len(self))))

    def _pieces(self, cuts: Cuts) -> VersionSequence:
        return VersionSequence(self.versions[cuts.run], np.cumsum(cuts.lengths))


def concatenate_versions(sequences: Sequence[VersionSequence]) -> VersionSequence:
    """The sequences one after the other."""
    if not sequences:
        return VersionSequence.uniform(0, 0)
    lengths = np.concatenate([sequence.lengths for sequence in sequences])
    return VersionSequence(np.concatenate([sequence.versions for sequence in sequences]), np.cumsum(lengths))


def read_version_sequence(data: bytes | memoryview, *, rows: int | None = None) -> VersionSequence:
    """The sequence that a fragment's stored versions hold; Corrupt if they are not as many as its ``rows``.

    >>> stored = write_version_sequence(VersionSequence.uniform(3, 10))
    >>> read_version_sequence(stored, rows=10) == VersionSequence.uniform(3, 10)
    True
    """
    runs = parse_versions(data, rows=rows)
    lengths = [segment_rows(run.span) for run in runs]
    if sum(lengths) > LARGEST + 1:
        raise Corrupt(f"a fragment has versions for {sum(lengths)} rows, expected at most {LARGEST + 1}")
    filled = [place for place, length in enumerate(lengths) if length]
    versions = np.array([runs[place].version for place in filled], np.uint64)
    return VersionSequence(versions, np.cumsum(np.array([lengths[place] for place in filled], np.int64)))


def write_version_sequence(sequence: VersionSequence) -> bytes:
    """The bytes in which a fragment's row versions are stored."""
    starts, ends = starts_of(sequence.ends).tolist(), sequence.ends.tolist()
    versions = sequence.versions.tolist()
    return write_versions(
        VersionRun(Range(start, end), version) for start, end, version in zip(starts, ends, versions, strict=True)
    )
