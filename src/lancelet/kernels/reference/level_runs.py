"""Run lengths as the codec of levels: a chunk's levels as values and how often each repeats.

u64 LE  bytes of the values part, 2 per run
u16 LE  value of each run
u8      length of each run, 1 to 255; longer runs are several
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import bad_runs, check_bounds

__all__ = ["decode_rle_levels", "encode_rle_levels"]


def decode_rle_levels(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    out: NDArray[np.uint16],
) -> None:
    """Decode the levels of many chunks, one after the other, into ``out``: ``counts[i]`` levels from chunk ``i``."""
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("counts", len(counts), len(starts))
    if (counts < 0).any() or sum(counts.tolist()) != len(out):
        raise refuse.wrong_total("the chunks' counts", found=sum(counts.tolist()), expected=len(out))
    at = 0
    for i, (start, size, count) in enumerate(zip(starts.tolist(), sizes.tolist(), counts.tolist(), strict=True)):
        if size < 0 or start < 0 or start > len(data) - size:
            raise refuse.range_outside("chunk", i, start=start, size=size, have=len(data))
        chunk = data[start : start + size]
        used = int(chunk[:8].view("<u8")[0]) if size >= 8 else 0
        runs = used // 2
        if size < 8 or used % 2 or 8 + 3 * runs != size:
            raise bad_runs(i)
        lengths = chunk[8 + used :]
        if int(lengths.sum(dtype=np.int64)) != count:
            raise bad_runs(i)
        out[at : at + count] = np.repeat(chunk[8 : 8 + used].view("<u2"), lengths)
        at += count


def encode_rle_levels(
    levels: NDArray[np.uint16], bounds: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Encode the levels between each two neighbouring bounds: all chunks' bytes, where each starts, and its size.

    >>> data, starts, sizes = encode_rle_levels(np.array([7, 7, 7, 1], np.uint16), np.array([0, 4]))
    >>> data.tolist()
    [4, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 3, 1]
    """
    check_bounds(bounds, len(levels))
    parts = []
    for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        chunk = levels[first:end]
        heads = np.flatnonzero(np.append(True, chunk[1:] != chunk[:-1])) if len(chunk) else np.empty(0, np.int64)
        runs = np.diff(np.append(heads, len(chunk)))
        pieces = (runs + 254) // 255
        lengths = np.full(int(pieces.sum()), 255, dtype=np.uint8)
        lengths[np.cumsum(pieces) - 1] = runs - 255 * (pieces - 1)
        values = np.repeat(chunk[heads], pieces).astype("<u2").view(np.uint8)
        parts.append(np.concatenate([np.array([len(values)], "<u8").view(np.uint8), values, lengths]))
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    data = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint8)
    return data, np.cumsum(sizes) - sizes, sizes
