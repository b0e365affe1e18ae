"""Selections: which rows of a physical range of a fragment are still wanted, as bits or, where few are, as numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelet.encodings.page import Rows
from lancelet.rows.deletions import DeletionVector

__all__ = ["SINGLE", "Selection", "as_bits", "from_bits"]

Ints = npt.NDArray[np.int64]
#: Below this share of wanted rows single ones are read: each costs as much as so many in a row.
SINGLE = 1 / 16


def as_bits(mask: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """A mask to Arrow: many times as fast as pyarrow does it itself.

    >>> as_bits(np.array([True, False])).to_pylist()
    [True, False]
    """
    packed = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(mask), [None, packed])


def from_bits(bits: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """A mask from Arrow; nulls are false.

    >>> from_bits(pa.array([True, None, False, True]).slice(1)).tolist()
    [False, False, True]
    """
    if bits.null_count:
        bits = pc.fill_null(bits, False)
    buffer = bits.buffers()[1]
    if buffer is None or not len(bits):
        return np.zeros(len(bits), np.bool_)
    whole = np.unpackbits(np.frombuffer(buffer, np.uint8), count=bits.offset + len(bits), bitorder="little")
    return whole[bits.offset :].view(np.bool_)


class Selection:
    """Rows of a physical range, ascending: all of them, those of a mask, or single ones. Immutable.

    >>> some = Selection(10, 14).kept(pa.array([True, False, True, True]))
    >>> some.count, some.numbers.tolist(), some.kept(pa.array([False, True, True])).numbers.tolist()
    (3, [10, 12, 13], [12, 13])
    """

    __slots__ = ("_bits", "_numbers", "count", "start", "stop")

    def __init__(
        self, start: int, stop: int, *, bits: pa.BooleanArray | None = None, numbers: Ints | None = None
    ) -> None:
        self.start, self.stop = start, stop
        self._bits, self._numbers = bits, numbers
        if numbers is not None:
            self.count = len(numbers)
        else:
            self.count = stop - start if bits is None else bits.true_count

    @property
    def whole(self) -> bool:
        """Whether every row of the range is wanted."""
        return self.count == self.stop - self.start

    @property
    def share(self) -> float:
        """Which part of the range is wanted."""
        return self.count / max(self.stop - self.start, 1)

    @property
    def numbers(self) -> Ints:
        """Physical offsets of the rows."""
        if self._numbers is None:
            if self._bits is None:
                self._numbers = np.arange(self.start, self.stop, dtype=np.int64)
            else:
                self._numbers = np.flatnonzero(from_bits(self._bits)) + self.start
        return self._numbers

    @property
    def bits(self) -> pa.BooleanArray:
        """For each row of the range whether it is wanted."""
        if self._bits is None:
            mask = np.ones(self.stop - self.start, np.bool_)
            if self._numbers is not None and not self.whole:
                mask[:] = False
                mask[self._numbers - self.start] = True
            self._bits = as_bits(mask)
        return self._bits

    @property
    def rows(self) -> Rows:
        """The rows as files are asked for them."""
        return slice(self.start, self.stop) if self.whole else self.numbers

    def kept(self, bits: pa.BooleanArray) -> Selection:
        """Those of the rows for which a mask, one bit for each, is true."""
        if self.whole:
            return Selection(self.start, self.stop, bits=bits)
        return Selection(self.start, self.stop, numbers=self.numbers[from_bits(bits)])

    def met(self, bits: pa.BooleanArray) -> Selection:
        """Those of the rows for which a mask over the whole range is true."""
        if self.whole:
            return Selection(self.start, self.stop, bits=bits)
        return Selection(self.start, self.stop, bits=pc.and_(self.bits, bits))

    def without(self, deleted: DeletionVector) -> Selection:
        """Those of the rows that are not deleted.

        >>> Selection(0, 4, numbers=np.array([1, 2])).without(DeletionVector([2])).numbers.tolist()
        [1]
        """
        if not len(deleted):
            return self
        if self._numbers is not None and not self.whole:
            return Selection(self.start, self.stop, numbers=self._numbers[~deleted.contains(self._numbers)])
        live = deleted.live_mask(self.start, self.stop)
        return self if live is None else self.met(as_bits(live))

    def within(self, start: int, stop: int) -> Selection:
        """Those of the rows that lie in a smaller range.

        >>> Selection(0, 10, numbers=np.array([1, 5, 8])).within(2, 8).numbers.tolist()
        [5]
        """
        if self.whole:
            return Selection(start, stop)
        if self._numbers is None:
            return Selection(start, stop, bits=self.bits.slice(start - self.start, stop - start))
        first, last = self._numbers.searchsorted([start, stop])
        return Selection(start, stop, numbers=self._numbers[first:last])

    def split(self, most: int) -> tuple[Selection, Selection]:
        """The first of the rows, of which so many can be read at once, and the others.

        >>> first, others = Selection(0, 100, numbers=np.array([1, 50, 99])).split(2)
        >>> first.numbers.tolist(), others.numbers.tolist()
        ([1, 50], [99])
        """
        singles = self.share < SINGLE
        if (self.count if singles else self.stop - self.start) <= most:
            return self, Selection(self.stop, self.stop)
        middle = int(self.numbers[most]) if singles else self.start + most
        return self.within(self.start, middle), self.within(middle, self.stop)
