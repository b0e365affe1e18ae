"""Pairs of tokens and rows, gathered while texts go by and handed out by token; what does not fit waits in a file.

texts -> pieces, the rows of each by token: tokens | rows of each | rows, as numbers of the piece's own list of ids
      -> for some tokens at a time: their rows in all pieces, put one behind the other
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lancelet.index.scalar.ngram.tokens import Pairs
from lancelet.kernels import trigrams
from lancelet.rows.addresses import UInt32s, UInt64s
from lancelet.rows.runs import Int64s

__all__ = ["GatheredPairs", "RowsOfTokens"]

_Number = TypeVar("_Number", np.uint32, np.uint64)
#: Rows that are handed out at once, unless one token has more.
_AT_ONCE = 2**21


@dataclass(frozen=True, slots=True)
class RowsOfTokens:
    """The rows of some tokens: those of token i from ``bounds[i]`` up to ``bounds[i + 1]``."""

    tokens: UInt32s
    bounds: Int64s
    ids: UInt64s


@dataclass(frozen=True, slots=True)
class _Piece:
    tokens: UInt32s
    #: Where the rows of each token end.
    ends: UInt32s
    rows: UInt32s
    ids: UInt64s


class GatheredPairs:
    """Pairs of tokens and rows. Its files go when the stack is closed."""

    def __init__(self, stack: ExitStack, memory: int) -> None:
        self._stack, self._memory = stack, memory
        self._pieces: list[_Piece] = []
        self._held = 0
        self._folder: Path | None = None

    def add(self, pairs: Pairs, ids: UInt64s) -> None:
        """Take in the pairs of some texts, and what the index calls the row of each."""
        counts = np.bincount(pairs.tokens, minlength=trigrams.LARGEST)
        tokens = np.flatnonzero(counts).astype(np.uint32)
        ends = np.cumsum(counts)
        rows = np.empty(len(pairs.tokens), np.uint32)
        trigrams.group_by_number(pairs.tokens, pairs.texts, ends - counts, rows)
        piece = _Piece(tokens, ends[tokens].astype(np.uint32), rows, ids)
        size = rows.nbytes + ids.nbytes
        if self._held + size > self._memory:
            piece = _Piece(piece.tokens, piece.ends, self._stored(rows), self._stored(ids))
        else:
            self._held += size
        self._pieces.append(piece)

    def _stored(self, numbers: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        if self._folder is None:
            self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="lancelet-ngram-")))
        path = self._folder / str(len(list(self._folder.iterdir())))
        numbers.tofile(path)
        return np.memmap(path, numbers.dtype, "r") if len(numbers) else numbers

    def by_token(self) -> Iterator[RowsOfTokens]:
        """All pairs, tokens ascending; those of a token with many rows come in several parts, one after the other."""
        if not self._pieces:
            return
        tokens = np.unique(np.concatenate([piece.tokens for piece in self._pieces]))
        counts = np.zeros(len(tokens), np.int64)
        for piece in self._pieces:
            counts[np.searchsorted(tokens, piece.tokens)] += np.diff(piece.ends, prepend=np.uint32(0))
        for first, last in _groups(counts):
            if last == first + 1 and counts[first] > _AT_ONCE:
                yield from self._large(tokens[first:last])
            else:
                yield self._together(tokens[first:last], counts[first:last])

    def _large(self, tokens: UInt32s) -> Iterator[RowsOfTokens]:
        """One token, piece by piece."""
        for piece in self._pieces:
            rows, _, _ = _rows(piece, tokens)
            if len(rows):
                yield RowsOfTokens(tokens, np.array([0, len(rows)]), np.asarray(piece.ids[rows]))

    def _together(self, tokens: UInt32s, counts: Int64s) -> RowsOfTokens:
        bounds = np.append(0, np.cumsum(counts))
        ids = np.empty(bounds[-1], np.uint64)
        # Where the next rows of each token go.
        free = bounds[:-1].copy()
        for piece in self._pieces:
            rows, held, sizes = _rows(piece, tokens)
            at = np.searchsorted(tokens, held)
            before = np.cumsum(sizes) - sizes
            ids[np.repeat(free[at] - before, sizes) + np.arange(len(rows))] = piece.ids[rows]
            free[at] += sizes
        return RowsOfTokens(tokens, bounds, ids)


def _rows(piece: _Piece, tokens: UInt32s) -> tuple[UInt32s, UInt32s, Int64s]:
    """Of a piece the rows of tokens that follow each other, the tokens that have any, and how many each has."""
    low = int(np.searchsorted(piece.tokens, tokens[0]))
    high = int(np.searchsorted(piece.tokens, tokens[-1], "right"))
    start = int(piece.ends[low - 1]) if low else 0
    ends = piece.ends[low:high].astype(np.int64)
    rows = piece.rows[start : int(ends[-1]) if len(ends) else start]
    return rows, piece.tokens[low:high], np.diff(ends, prepend=start)


def _groups(counts: Int64s) -> Iterator[tuple[int, int]]:
    """Where groups of about so many rows, at most twice as many, begin and end; what is larger stands by itself."""
    ends = np.cumsum(counts)
    large = np.flatnonzero(counts > _AT_ONCE)
    cuts = np.flatnonzero(np.diff(ends // _AT_ONCE)) + 1
    bounds = np.unique(np.concatenate([[0, len(counts)], cuts, large, large + 1]))
    for first, last in pairwise(bounds.tolist()):
        if first < last:
            yield first, last
