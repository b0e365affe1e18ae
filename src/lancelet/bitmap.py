"""Bitmap: a set of unsigned 32-bit integers, such as fragment ids, in the form that indexes store it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, MutableSet
from typing import Self

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.rows.bitmaps import BitMap, parse_bitmap, to_bitmap, write_bitmap

__all__ = ["Bitmap"]

_LIMIT = 2**32
#: Members shown by repr.
_SHOWN = 20


class Bitmap:
    """A mutable set of integers from 0 to 2**32 - 1; compares and combines with any set or iterable of integers.

    >>> bitmap = Bitmap([3, 1, 3])
    >>> bitmap, 1 in bitmap, bitmap == {1, 3}, bitmap | [7]
    (Bitmap({1, 3}), True, True, Bitmap({1, 3, 7}))
    """

    __slots__ = ("_members",)

    def __init__(self, values: Iterable[int] | pa.Array | pa.ChunkedArray | None = None) -> None:
        self._members = BitMap() if values is None else _members(values)

    @classmethod
    def from_bytes(cls, data: bytes) -> Bitmap:
        """The set that bytes in the portable Roaring format hold.

        >>> Bitmap.from_bytes(Bitmap([5]).to_bytes())
        Bitmap({5})
        """
        return cls._of(parse_bitmap(data, "a bitmap"))

    def to_bytes(self) -> bytes:
        """The set in the portable Roaring format."""
        return write_bitmap(self._members)

    @classmethod
    def _of(cls, members: BitMap) -> Bitmap:
        made = cls.__new__(cls)
        made._members = members
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return Bitmap.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        shown = [str(item) for item, _ in zip(self._members, range(_SHOWN), strict=False)]
        if len(self._members) <= _SHOWN:
            return f"Bitmap({{{', '.join(shown)}}})"
        return f"Bitmap({{{', '.join(shown)}, ...}}, len={len(self._members)})"

    def __copy__(self) -> Bitmap:
        return self._of(self._members.copy())

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[int]:
        return iter(self._members)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | np.integer) and 0 <= int(value) < _LIMIT and int(value) in self._members

    def __eq__(self, other: object) -> bool:
        known = _operand(other)
        return NotImplemented if known is None else bool(self._members == known)

    __hash__ = None  # type: ignore[assignment]

    def __le__(self, other: object) -> bool:
        known = _operand(other)
        return NotImplemented if known is None else bool(self._members <= known)

    def __lt__(self, other: object) -> bool:
        known = _operand(other)
        return NotImplemented if known is None else bool(self._members < known)

    def __ge__(self, other: object) -> bool:
        known = _operand(other)
        return NotImplemented if known is None else bool(self._members >= known)

    def __gt__(self, other: object) -> bool:
        known = _operand(other)
        return NotImplemented if known is None else bool(self._members > known)

    def __and__(self, other: object) -> Bitmap:
        known = _operand(other)
        return NotImplemented if known is None else self._of(self._members & known)

    def __or__(self, other: object) -> Bitmap:
        known = _operand(other)
        return NotImplemented if known is None else self._of(self._members | known)

    def __sub__(self, other: object) -> Bitmap:
        known = _operand(other)
        return NotImplemented if known is None else self._of(self._members - known)

    def __xor__(self, other: object) -> Bitmap:
        known = _operand(other)
        return NotImplemented if known is None else self._of(self._members ^ known)

    def __rsub__(self, other: object) -> Bitmap:
        known = _operand(other)
        return NotImplemented if known is None else self._of(known - self._members)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __iand__(self, other: object) -> Self:
        return self._become(_operand(other), BitMap.__iand__)

    def __ior__(self, other: object) -> Self:
        return self._become(_operand(other), BitMap.__ior__)

    def __isub__(self, other: object) -> Self:
        return self._become(_operand(other), BitMap.__isub__)

    def __ixor__(self, other: object) -> Self:
        return self._become(_operand(other), BitMap.__ixor__)

    def _become(self, other: BitMap | None, change: Callable[[BitMap, BitMap], BitMap]) -> Self:
        if other is None:
            return NotImplemented  # type: ignore[no-any-return]
        self._members = change(self._members, other)
        return self

    def intersection(self, other: Iterable[int]) -> Bitmap:
        """What is in both."""
        return self._of(self._members & _members(other))

    def union(self, other: Iterable[int]) -> Bitmap:
        """What is in either."""
        return self._of(self._members | _members(other))

    def difference(self, other: Iterable[int]) -> Bitmap:
        """What is here and not in the other."""
        return self._of(self._members - _members(other))

    def symmetric_difference(self, other: Iterable[int]) -> Bitmap:
        """What is in one of the two alone."""
        return self._of(self._members ^ _members(other))

    def issubset(self, other: Iterable[int]) -> bool:
        """Whether the other has all of this."""
        return bool(self._members <= _members(other))

    def issuperset(self, other: Iterable[int]) -> bool:
        """Whether this has all of the other."""
        return bool(self._members >= _members(other))

    def isdisjoint(self, other: Iterable[int]) -> bool:
        """Whether no member is shared."""
        return bool(self._members.isdisjoint(_members(other)))

    def copy(self) -> Bitmap:
        """A set of its own with the same members."""
        return self.__copy__()

    def add(self, value: int) -> None:
        """Put a member in."""
        self._members.add(_checked(value))

    def discard(self, value: int) -> None:
        """Take a member out if it is in."""
        self._members.discard(_checked(value))

    def remove(self, value: int) -> None:
        """Take a member out; KeyError if it is not in."""
        if _checked(value) not in self._members:
            raise KeyError(value)
        self._members.discard(value)

    def pop(self) -> int:
        """Take the smallest member out; KeyError if there is none."""
        if not self._members:
            raise KeyError("pop from an empty Bitmap")
        least = int(self._members.min())
        self._members.discard(least)
        return least

    def clear(self) -> None:
        """Take all members out."""
        self._members.clear()

    def update(self, values: Iterable[int]) -> None:
        """Put several members in."""
        self._members |= _members(values)


MutableSet.register(Bitmap)


def _checked(value: int) -> int:
    number = operator.index(value)
    if not 0 <= number < _LIMIT:
        # The builtin that integers out of range raise elsewhere, too.
        raise OverflowError(f"{number} is no member of a bitmap, expected 0 to {_LIMIT - 1}")
    return number


def _operand(other: object) -> BitMap | None:
    """The members of what a bitmap is compared or combined with; None where that is no collection of integers."""
    if isinstance(other, Bitmap):
        return other._members
    if not isinstance(other, Iterable) or isinstance(other, str | bytes):
        return None
    try:
        return _members(other)
    except (TypeError, InvalidInput):
        return None


def _members(values: Iterable[object] | pa.Array | pa.ChunkedArray) -> BitMap:
    if isinstance(values, Bitmap):
        return values._members.copy()
    if isinstance(values, range) and values.step == 1 and values.start >= 0 and values.stop <= _LIMIT:
        return BitMap(values)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if values.null_count:
            raise InvalidInput(f"{values.null_count} of {len(values)} values are null, a bitmap has none")
        numbers = np.asarray(values)
    else:
        items = [operator.index(item) for item in values]  # type: ignore[arg-type]
        numbers = np.array(items, dtype=object if items and not 0 <= min(items) <= max(items) < _LIMIT else np.int64)
    if not len(numbers):
        return BitMap()
    if numbers.dtype.kind not in "iuO":
        raise TypeError(f"a bitmap holds integers, not {numbers.dtype}")
    least, most = int(numbers.min()), int(numbers.max())
    if least < 0 or most >= _LIMIT:
        raise InvalidInput(f"{least if least < 0 else most} is no member of a bitmap, expected 0 to {_LIMIT - 1}")
    return to_bitmap(numbers.astype(np.uint32))
