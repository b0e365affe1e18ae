"""Spans: where each list or string begins and ends, from the ends that are stored.

The first begins at 0, each other where the one before it ends. The end of a null is raised by an adjustment that no
valid end reaches::

    values  "ab"  null  "c"       adjustment 4
    ends     2    2+4    3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.encodings.chunks import Ints
from lancelet.encodings.v2_0.buffers import PageBuffers, Pending, Rows
from lancelet.encodings.v2_0.steps import Steps
from lancelet.encodings.values import Bytes, Fixed
from lancelet.errors import Corrupt
from lancelet.format.arrays import ArrayEncoding

__all__ = ["Reader", "Spans", "encode", "read"]

#: Reads some rows of an encoding as values of a type.
Reader = Callable[[ArrayEncoding, pa.DataType, PageBuffers, Rows], Steps[Pending]]


@dataclass(frozen=True, slots=True)
class Spans:
    """Entry ``i`` reaches from ``starts[i]`` to ``stops[i]``."""

    starts: Ints
    stops: Ints
    validity: Bytes | None
    #: Starts and stops in one, where each entry begins at the end of the one before it.
    bounds: Ints | None = None

    @property
    def sizes(self) -> Ints:
        """The length of each entry."""
        return self.stops - self.starts

    def offsets(self) -> Ints:
        """Offsets from 0 on, one more than there are entries."""
        if self.bounds is not None:
            return self.bounds - self.bounds[0] if self.bounds[0] else self.bounds
        out = np.zeros(len(self.starts) + 1, np.int64)
        np.cumsum(self.sizes, out=out[1:])
        return out


def read(
    encoding: ArrayEncoding, adjustment: int, source: PageBuffers, rows: Rows, reader: Reader
) -> Steps[Callable[[], Spans]]:
    """The spans of some rows; what bounds them from above is for the caller to check."""
    picked = np.zeros(0, np.int64) if isinstance(rows, slice) else np.unique(np.concatenate([rows[rows > 0] - 1, rows]))
    needed = slice(max(rows.start - 1, 0), rows.stop) if isinstance(rows, slice) else picked
    pending = yield from reader(encoding, pa.uint64(), source, needed)

    def finish() -> Spans:
        found = pending().values
        if not isinstance(found, Fixed) or found.bits not in (8, 16, 32, 64):
            raise Corrupt("ends are not stored as integers")
        ends, null = _lowered(found.words().astype(np.uint64, copy=False), adjustment)
        if isinstance(rows, slice):
            return _adjoining(ends, null, after_start=bool(rows.start))
        at = np.searchsorted(picked, rows)
        stops = ends[at]
        starts = np.where(rows > 0, ends[at - 1], 0)
        if len(rows) and (np.any(starts > stops) or starts[0] < 0 or np.any(starts[1:] < stops[:-1])):
            raise Corrupt("ends decrease, expected them to grow from row to row")
        return Spans(starts, stops, None if null is None else _validity(null[at]))

    return finish


def _lowered(ends: np.ndarray, adjustment: int) -> tuple[Ints, np.ndarray | None]:
    """Ends without the adjustment, and which of them had it."""
    if not len(ends) or int(ends.max()) < adjustment:
        return ends.view(np.int64), None
    null = ends >= np.uint64(adjustment)
    return (ends - null * np.uint64(adjustment)).view(np.int64), null


def _adjoining(ends: Ints, null: np.ndarray | None, *, after_start: bool) -> Spans:
    bounds = ends if after_start else np.concatenate([np.zeros(1, np.int64), ends])
    if bounds[0] < 0 or np.any(bounds[1:] < bounds[:-1]):
        raise Corrupt("ends decrease, expected them to grow from row to row")
    if null is not None and after_start:
        null = null[1:]
    return Spans(bounds[:-1], bounds[1:], _validity(null), bounds)


def _validity(null: np.ndarray | None) -> Bytes | None:
    return None if null is None or not null.any() else np.packbits(~null, bitorder="little")


def encode(offsets: np.ndarray, valid: np.ndarray | None) -> tuple[Fixed, int]:
    """The ends that stand for offsets, and the adjustment; ``valid`` has a truth value for each entry."""
    ends = offsets[1:].astype(np.uint64) - np.uint64(int(offsets[0]) if len(offsets) else 0)
    adjustment = int(ends[-1]) + 1 if len(ends) else 1
    if valid is not None:
        ends += (~valid).view(np.uint8) * np.uint64(adjustment)
    return Fixed(64, len(ends), ends.view(np.uint8)), adjustment
