"""Paces: how many rows are decoded at once, by what they are expected to take in memory and turn out to take."""

from __future__ import annotations

from lancelet.encodings.budget import is_fixed, row_bits
from lancelet.file.stream import row_bytes
from lancelet.format.fields import Schema
from lancelet.query.layouts import Projection
from lancelet.query.stored import StoredFragment

__all__ = ["Pace", "window_bytes"]

#: Decoded bytes aimed at for one window: small enough for the processor's cache to matter, large enough to share out.
_WINDOW = 16 * 2**20
#: By how much a window may exceed what the rows before it suggest, where types do not tell how large rows are.
_STEP = 8
#: Rows of the first such window.
_FIRST_ROWS = 32 * 2**10
#: What decoding and filtering take besides the result, in windows.
_COPIES = 4


def window_bytes(memory_budget: int, ahead: int) -> int:
    """Bytes to aim at for one window where so many are under way at once.

    >>> window_bytes(2**34, 3), window_bytes(2**20, 3)
    (16777216, 65536)
    """
    return max(min(_WINDOW, memory_budget // (_COPIES * (ahead + 1))), 1)


class Pace:
    """How many rows of some columns to read at once. Shared by the fragments of a scan, and by its threads."""

    def __init__(self, projection: Projection, target: int, *, least: int = 1) -> None:
        self.projection, self.target = projection, target
        #: Windows are of whole batches where a batch fits.
        self.least = least
        fields = projection.reads.arrow
        self._fixed = all(is_fixed(field.type) for field in fields)
        self._row_bytes = sum(row_bits(field.type) for field in fields) / 8 + 8 * len(projection.reads.system)
        self._measured = 0

    def rows(self, stored: StoredFragment) -> int:
        """Rows of a fragment to read at once."""
        if self._fixed:
            return self._whole(self.target / max(self._row_bytes, 1 / 8))
        if stored.physical_rows <= self.least:
            return self.least
        guessed = self.target / max(self._estimate(stored), 1)
        return self._whole(min(guessed, self._measured or _FIRST_ROWS))

    def seen(self, rows: int, size: int) -> None:
        """Learn that so many rows took so many bytes."""
        if rows and not self._fixed:
            self._measured = int(min(rows * _STEP, self.target * rows / max(size, 1)))

    def _whole(self, rows: float) -> int:
        count = max(int(rows), 1)
        return count // self.least * self.least if count > self.least else count

    def _estimate(self, stored: StoredFragment) -> float:
        """About what a row of a fragment takes."""
        layout = self.projection.layout(stored.fragment)
        total = 0.0
        for part in layout.parts:
            file = stored.file(part.place, Schema(part.fields) if part.legacy else Schema(()))
            total += row_bytes(file, part.shapes)
        return total
