"""The closest rows so far: of each table looked at only rows that may be among them are kept."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.query.distances import distances_to, prepared
from lancelet.query.nearest import Nearest
from lancelet.rows.addresses import UInt64s

__all__ = ["Closest", "Hits", "closest_of"]

#: Rows kept before those that are too far are dropped.
_MOST = 2**16


class Hits:
    """Rows that were found: for each the number of its question, its distance, id and address."""

    __slots__ = ("addresses", "distances", "ids", "questions")

    def __init__(
        self, questions: npt.NDArray[np.int32], distances: npt.NDArray[np.float32], ids: UInt64s, addresses: UInt64s
    ) -> None:
        self.questions, self.distances, self.ids, self.addresses = questions, distances, ids, addresses

    def __len__(self) -> int:
        return len(self.distances)

    def of(self, rows: npt.NDArray[np.generic] | slice) -> Hits:
        """Some of them, by number or by mask."""
        return Hits(self.questions[rows], self.distances[rows], self.ids[rows], self.addresses[rows])

    def ordered(self, k: int) -> Hits:
        """The first ``k`` of each question, question by question: by distance, equal ones by row id.

        >>> many = Hits(np.array([0, 1, 0, 0]), np.array([2, 1, 1, 1]), np.array([1, 2, 3, 0]), np.array([1, 2, 3, 0]))
        >>> many.ordered(2).ids.tolist()
        [0, 3, 2]
        """
        found = self.of(np.lexsort((self.ids, self.distances, self.questions)))
        starts = np.searchsorted(found.questions, found.questions, "left")
        return found.of(np.arange(len(found)) - starts < k)


_NONE = Hits(np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.uint64), np.empty(0, np.uint64))


def _joined(some: Iterable[Hits]) -> Hits:
    parts = [_NONE, *some]
    return Hits(
        np.concatenate([part.questions for part in parts]),
        np.concatenate([part.distances for part in parts]),
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.addresses for part in parts]),
    )


class Closest:
    """What is known while tables are looked at, by several threads maybe: how far the last row is that still counts."""

    def __init__(self, nearest: Nearest) -> None:
        self.nearest = nearest
        self._ready = prepared(nearest)
        # A race between threads may leave a larger bound than it could be; rows are then kept that others drop later.
        self._bounds = np.full(nearest.questions, np.inf, np.float32)
        if nearest.highest is not None:
            self._bounds[:] = nearest.highest

    def among(self, table: pa.Table) -> Hits:
        """The rows of a table that may count: its columns are vectors, addresses and, where they differ, ids."""
        found, first = [], 0
        addresses = np.asarray(table.column(1).combine_chunks())
        ids = addresses if table.num_columns == 2 else np.asarray(table.column(2).combine_chunks())
        for chunk in table.column(0).chunks:
            last = first + len(chunk)
            for question, distances in enumerate(distances_to(self._ready, chunk)):
                found.append(self._kept(question, distances, ids[first:last], addresses[first:last]))
            first = last
        return _joined(found)

    def _kept(self, question: int, distances: npt.NDArray[np.float32], ids: UInt64s, addresses: UInt64s) -> Hits:
        nearest = self.nearest
        # NaN is in no range.
        wanted = distances <= self._bounds[question]
        if nearest.lowest is not None:
            wanted &= distances >= nearest.lowest
        if nearest.highest is not None:
            wanted &= distances < nearest.highest
        rows = np.flatnonzero(wanted)
        if len(rows) > nearest.k:
            near = distances[rows]
            bound = np.partition(near, nearest.k - 1)[nearest.k - 1]
            self._narrow(question, bound)
            rows = rows[near <= bound]
            if len(rows) > nearest.k:
                rows = rows[np.lexsort((ids[rows], distances[rows]))[: nearest.k]]
        return Hits(np.full(len(rows), question, np.int32), distances[rows], ids[rows], addresses[rows])

    def _narrow(self, question: int, bound: np.float32) -> None:
        self._bounds[question] = min(bound, self._bounds[question])

    def narrowed(self, hits: Hits) -> Hits:
        """The rows that still count of all that were found so far, in order."""
        kept = hits.ordered(self.nearest.k)
        questions, counts = np.unique(kept.questions, return_counts=True)
        last = np.cumsum(counts) - 1
        for question, count, place in zip(questions.tolist(), counts.tolist(), last.tolist(), strict=True):
            if count == self.nearest.k:
                self._narrow(question, kept.distances[place])
        return kept


def closest_of(closest: Closest, found: Iterable[Hits]) -> Hits:
    """The closest rows of all, in order."""
    kept, held = [_NONE], 0
    most = max(2 * closest.nearest.k * closest.nearest.questions, _MOST)
    for hits in found:
        kept.append(hits)
        held += len(hits)
        if held > most:
            kept = [closest.narrowed(_joined(kept))]
            held = len(kept[0])
    return closest.narrowed(_joined(kept))
