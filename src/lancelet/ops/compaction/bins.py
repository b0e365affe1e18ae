"""Bins: which neighbouring fragments are to be written anew together. Pure.

Fragments are looked at in the order of the table. Neighbours come together that have too few rows, or too many deleted
ones, and are covered by the same indexes: rows that an index knows are not put together with rows that it does not.

Rows alone would have the largest fragment written anew each time a few rows were appended behind it. So a fragment of
many bytes waits until its neighbours have a fair part of what it has: each time it is written it grows by that part,
and every row is written a few times only, however often the table is compacted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lancelet.format.fragments import Fragment
from lancelet.ops.compaction.options import CompactionOptions
from lancelet.ops.working import bytes_of

__all__ = ["Candidate", "bins_of", "candidate", "rows_of_files"]

#: Fragments of fewer bytes never wait: to write them anew costs about as much as to open them.
_SMALL = 64 * 2**20
#: The part of its bytes that a fragment's neighbours must have.
_PART = 4
#: Bytes of a file where nothing else is said.
_LARGEST_FILE = 90 * 2**30


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fragment as planning sees it."""

    fragment: Fragment
    rows: int
    deleted: int
    #: Which indexes cover it.
    indexes: frozenset[int] = frozenset()
    #: Whether it is to be left alone.
    excluded: bool = False

    @property
    def live(self) -> int:
        """Rows that are not deleted."""
        return self.rows - self.deleted

    @property
    def stored(self) -> int:
        """Bytes in its files."""
        return bytes_of(self.fragment)

    @property
    def live_bytes(self) -> int:
        """About what of them is of rows that are not deleted."""
        return self.stored * self.live // self.rows if self.rows else 0


def candidate(fragment: Fragment, indexes: frozenset[int] = frozenset(), *, excluded: bool = False) -> Candidate:
    """A fragment by what its manifest says."""
    file = fragment.deletion_file
    deleted = 0 if file is None else file.num_deleted_rows or 0
    return Candidate(fragment, fragment.physical_rows or 0, deleted, indexes, excluded)


def rows_of_files(rows: int, target: int) -> list[int]:
    """How many rows each file gets: all about the same, and none fewer than are asked for if there are enough.

    >>> rows_of_files(79, 40), rows_of_files(101, 50), rows_of_files(0, 50)
    ([79], [51, 50], [])
    """
    files = max(rows // max(target, 1), 1)
    each, more = divmod(rows, files)
    return [each + (place < more) for place in range(files) if rows]


def bins_of(candidates: Iterable[Candidate], options: CompactionOptions) -> list[tuple[Candidate, ...]]:
    """Fragments to be written anew, those together that one task takes, within the limits of one compaction."""
    largest = options.max_bytes_per_file or _LARGEST_FILE
    found = []
    for run in _runs(candidates, options, largest):
        for part in _without_waiting(run, options):
            found += [piece for piece in _split(part, options, largest) if _worth_it(piece, options)]
    return _within_limits(found, options)


def _must(item: Candidate, options: CompactionOptions) -> bool:
    """Whether a fragment is to be written anew even alone."""
    share = item.deleted / item.rows if item.rows else 0.0
    return options.rewrites_deletions and share > options.materialize_deletions_threshold


def _may(item: Candidate, options: CompactionOptions, largest: int) -> bool:
    """Whether a fragment may be put together with others."""
    return item.rows < options.target_rows_per_fragment and item.stored < largest


def _runs(candidates: Iterable[Candidate], options: CompactionOptions, largest: int) -> list[list[Candidate]]:
    runs: list[list[Candidate]] = []
    current: list[Candidate] = []
    for item in candidates:
        wanted = not item.excluded and (_must(item, options) or _may(item, options, largest))
        if current and (not wanted or current[-1].indexes != item.indexes):
            runs.append(current)
            current = []
        if wanted:
            current.append(item)
    return [*runs, current] if current else runs


def _without_waiting(run: Sequence[Candidate], options: CompactionOptions) -> list[Sequence[Candidate]]:
    """The parts of a run beside the large fragments whose neighbours are too small yet."""
    parts: list[Sequence[Candidate]] = []
    waiting = [run]
    while waiting:
        part = waiting.pop()
        if not part:
            continue
        at = max(range(len(part)), key=lambda place: part[place].live_bytes)
        large = part[at]
        others = sum(item.live_bytes for item in part) - large.live_bytes
        if large.stored < _SMALL or _must(large, options) or others * _PART >= large.live_bytes:
            parts.append(part)
        else:
            waiting += [part[at + 1 :], part[:at]]
    return parts


def _split(run: Sequence[Candidate], options: CompactionOptions, largest: int) -> list[tuple[Candidate, ...]]:
    """A run in pieces, each with enough rows, or bytes, for a file."""
    enough = options.target_rows_per_fragment
    pieces: list[tuple[Candidate, ...]] = []
    rows_left, bytes_left = sum(item.live for item in run), sum(item.live_bytes for item in run)
    current: list[Candidate] = []
    rows = size = 0
    for item in run:
        current.append(item)
        rows, size = rows + item.live, size + item.live_bytes
        rows_left, bytes_left = rows_left - item.live, bytes_left - item.live_bytes
        if (rows >= enough or size >= largest) and (rows_left >= enough or bytes_left >= largest):
            pieces.append(tuple(current))
            current, rows, size = [], 0, 0
    return [*pieces, tuple(current)] if current else pieces


def _worth_it(piece: Sequence[Candidate], options: CompactionOptions) -> bool:
    return len(piece) > 1 or _must(piece[0], options)


def _within_limits(pieces: list[tuple[Candidate, ...]], options: CompactionOptions) -> list[tuple[Candidate, ...]]:
    """The first pieces, as long as together they are within what one compaction may take."""
    fragments = rows = size = 0
    for at, piece in enumerate(pieces):
        fragments += len(piece)
        rows += sum(item.live for item in piece)
        size += sum(item.stored for item in piece)
        if (
            fragments > (options.max_source_fragments or fragments)
            or rows > (options.max_source_rows or rows)
            or size > (options.max_source_bytes or size)
        ):
            return pieces[:at]
    return pieces
