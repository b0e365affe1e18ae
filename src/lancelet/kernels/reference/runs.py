"""Run lengths, in NumPy: values, and beside them how often each repeats.

A run is at most 255 values long, so that its length fits a byte; a longer one is written as several. Values are bytes
here, ``item_size`` (1, 2, 4, 8 or 16) of them for each value.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lancelet.kernels import refuse

__all__ = ["count_runs", "expand_runs", "find_runs", "runs_at"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

LONGEST = 255


def count_runs(values: Bytes, item_size: int) -> int:
    """Number of runs, however long: tells whether run lengths would pay.

    >>> count_runs(np.array([7] * 1000 + [8], np.uint8), 1)
    2
    """
    items = _items(values, item_size)
    return int(_changes(items).sum())


def find_runs(values: Bytes, item_size: int, bounds: Places) -> tuple[Bytes, Bytes, Places]:
    """Run values, run lengths, and the number of runs in each chunk.

    Chunk i holds the values from ``bounds[i]`` up to ``bounds[i + 1]``; no run reaches over a bound.

    >>> find_runs(np.array([7, 7, 7, 8], np.uint8), 1, np.array([0, 2, 4]))
    (array([7, 7, 8], dtype=uint8), array([2, 1, 1], dtype=uint8), array([1, 2]))
    """
    items = _items(values, item_size)
    refuse.wrong_bounds(bounds, len(items))
    starts_run = _changes(items)
    starts_run[bounds[:-1][bounds[:-1] < len(items)]] = True
    firsts = np.flatnonzero(starts_run)
    spans = np.diff(firsts, append=len(items))
    pieces = -(-spans // LONGEST)
    lengths = np.full(int(pieces.sum()), LONGEST, np.uint8)
    lengths[np.cumsum(pieces) - 1] = spans - (pieces - 1) * LONGEST
    before = np.concatenate([[0], np.cumsum(pieces)])
    run_counts = np.diff(before[np.searchsorted(firsts, bounds)])
    return np.repeat(items[firsts], pieces, axis=0).reshape(-1), lengths, run_counts


def expand_runs(
    data: Bytes,
    value_starts: Places,
    value_sizes: Places,
    length_starts: Places,
    length_sizes: Places,
    counts: Places,
    item_size: int,
    out: Bytes,
) -> None:
    """Repeat the runs of each chunk, one chunk after the other.

    The run values of chunk i are the ``value_sizes[i]`` bytes from ``value_starts[i]``, its run lengths the
    ``length_sizes[i]`` bytes from ``length_starts[i]``; they must come to ``counts[i]`` values.

    >>> out = np.zeros(4, np.uint8)
    >>> one = lambda number: np.array([number])
    >>> expand_runs(np.array([7, 8, 3, 1], np.uint8), one(0), one(2), one(2), one(2), one(4), 1, out)
    >>> out
    array([7, 7, 7, 8], dtype=uint8)
    """
    refuse.item_size_of_runs(item_size)
    refuse.unequal_chunks(value_starts, value_sizes, length_starts, length_sizes, counts)
    chunks = value_starts, value_sizes, length_starts, length_sizes
    fits = _fits(data, *chunks, item_size)
    lengths = _concatenated(data, length_starts, np.where(fits, length_sizes, 0))
    totals = _sums(lengths, np.where(fits, length_sizes, 0))
    bad = np.flatnonzero(~fits | (totals != counts))
    if len(bad):
        i = int(bad[0])
        raise refuse.bad_runs(i, data, *chunks, int(counts[i]), item_size)
    if int(totals.sum()) * item_size != len(out):
        raise refuse.wrong_total("the chunks' bytes", found=int(totals.sum()) * item_size, expected=len(out))
    run_values = _concatenated(data, value_starts, value_sizes).reshape(-1, item_size)
    out[:] = np.repeat(run_values, lengths, axis=0).reshape(-1)


def runs_at(
    data: Bytes,
    value_starts: Places,
    value_sizes: Places,
    length_starts: Places,
    length_sizes: Places,
    chunks: Places,
    indices: Places,
    item_size: int,
    out: Bytes,
) -> None:
    """Value ``indices[k]`` of chunk ``chunks[k]`` into the k-th place of ``out``; chunks as in :func:`expand_runs`.

    Quickest when the lookups go forward within each chunk.
    """
    refuse.item_size_of_runs(item_size)
    parts = value_starts, value_sizes, length_starts, length_sizes
    refuse.unequal_chunks(*parts, value_starts)
    refuse.other_length("indices", len(indices), len(chunks))
    refuse.other_length("out", len(out), len(chunks) * item_size)
    known = (chunks >= 0) & (chunks < len(value_starts))
    used = np.unique(chunks[known])
    fits = _fits(data, value_starts[used], value_sizes[used], length_starts[used], length_sizes[used], item_size)
    sizes = np.where(fits, length_sizes[used], 0)
    lengths = _concatenated(data, length_starts[used], sizes)
    totals, ends = _sums(lengths, sizes), np.cumsum(lengths, dtype=np.int64)
    place = np.searchsorted(used, np.where(known, chunks, 0))
    chunk_totals, chunk_fits = np.append(totals, 0)[place], np.append(fits, True)[place]
    bad = np.flatnonzero(~known | ~chunk_fits | (indices < 0) | (indices >= chunk_totals))
    if len(bad):
        raise _bad_run_lookup(int(bad[0]), data, parts, chunks, indices, known, chunk_fits, chunk_totals, item_size)
    if not len(chunks):
        return
    run = np.searchsorted(ends, (np.cumsum(totals) - totals)[place] + indices, side="right")
    run -= (np.cumsum(sizes) - sizes)[place]
    windows = sliding_window_view(data, item_size)
    out[:] = windows[value_starts[chunks] + run * item_size].reshape(-1)


def _bad_run_lookup(
    k: int,
    data: Bytes,
    parts: tuple[Places, Places, Places, Places],
    chunks: Places,
    indices: Places,
    known: NDArray[np.bool_],
    fits: NDArray[np.bool_],
    totals: Places,
    item_size: int,
) -> Exception:
    chunk = int(chunks[k])
    if known[k] and not fits[k]:
        return refuse.bad_runs(chunk, data, *parts, -1, item_size)
    return refuse.bad_lookup(k, "chunk", chunk, len(parts[0]), int(indices[k]), int(totals[k]) if known[k] else 0)


def _items(values: Bytes, item_size: int) -> Bytes:
    """The values, one a line."""
    refuse.item_size_of_runs(item_size)
    if len(values) % item_size:
        raise refuse.not_whole_items(len(values), item_size)
    return values.reshape(-1, item_size)


def _changes(items: Bytes) -> NDArray[np.bool_]:
    """Whether each value differs from the one before; the first one does."""
    changes = np.ones(len(items), np.bool_)
    changes[1:] = (items[1:] != items[:-1]).any(axis=1)
    return changes


def _fits(
    data: Bytes,
    value_starts: Places,
    value_sizes: Places,
    length_starts: Places,
    length_sizes: Places,
    item_size: int,
) -> NDArray[np.bool_]:
    """Whether both parts of each chunk lie within the data and speak of equally many runs."""
    have = len(data)
    fits: NDArray[np.bool_] = (value_starts >= 0) & (length_starts >= 0) & (value_sizes >= 0) & (length_sizes >= 0)
    fits &= (value_starts <= have - np.maximum(value_sizes, 0)) & (length_starts <= have - np.maximum(length_sizes, 0))
    fits &= (length_sizes == value_sizes // item_size) & (value_sizes % item_size == 0)
    return fits


def _concatenated(data: Bytes, starts: Places, sizes: Places) -> Bytes:
    """The byte ranges one after the other."""
    shifts = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    places: Places = np.arange(len(shifts)) + shifts
    return data[places]


def _sums(lengths: Bytes, sizes: Places) -> Places:
    """The sum of each group of so many lengths."""
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    last = np.cumsum(sizes)
    sums: Places = ends[last] - ends[last - sizes]
    return sums
