"""The order of values, as indexes sort them: nulls first, then ascending.

Files have floating-point numbers in total order: NaNs with a minus sign before minus infinity, those without behind
infinity. Conditions know one NaN, larger than all numbers, and one zero. Strings and bytes are ordered byte by byte.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.rows.runs import Int64s

__all__ = ["Ascending", "are_ascending", "compare", "extremes", "holds_nan", "is_number", "number_keys", "orderable"]

_Keys = npt.NDArray[np.integer]
_COMPARE = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_NUMPY = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
#: Bits of the fraction of floating-point numbers by their bits in all.
_DIGITS = {16: 10, 32: 23, 64: 52}
_WIDTHS: dict[int, type[np.unsignedinteger]] = {16: np.uint16, 32: np.uint32, 64: np.uint64}


def orderable(kind: pa.DataType) -> bool:
    """Whether values of a type have an order that indexes know.

    >>> orderable(pa.timestamp("us")), orderable(pa.list_(pa.int8()))
    (True, False)
    """
    return bool(is_number(kind) or pat.is_decimal(kind) or _is_bytes(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether values are stored as one number of at most 64 bits."""
    found = pat.is_integer(kind) or pat.is_floating(kind) or pat.is_temporal(kind) or pat.is_boolean(kind)
    return bool(found)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pat.is_string(kind)
        or pat.is_large_string(kind)
        or pat.is_binary(kind)
        or pat.is_large_binary(kind)
        or pat.is_fixed_size_binary(kind)
    )


def number_keys(values: pa.Array, *, exact: bool = False) -> _Keys:
    """Integers that are in the order of some numbers. What stands for a null means nothing.

    ``exact`` tells the zeros of both signs apart, the negative one first, and NaNs of different bits.

    >>> keys = number_keys(pa.array([-1.0, -0.0, 0.0, float("nan")]))
    >>> bool(keys[0] < keys[1] == keys[2] < keys[3])
    True
    """
    kind = values.type
    if pat.is_boolean(kind):
        return np.asarray(values.cast(pa.uint8()).fill_null(0))
    width = kind.bit_width
    if pat.is_floating(kind):
        return _float_keys(_stored(values, _WIDTHS[width]), exact=exact)
    signed = not pat.is_unsigned_integer(kind)
    return _stored(values, np.dtype(f"{'i' if signed else 'u'}{width // 8}"))


def _stored(values: pa.Array, dtype: npt.DTypeLike) -> _Keys:
    """The numbers of an array as they lie in memory; nothing is copied."""
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.zeros(len(values), dtype)
    return np.frombuffer(buffer, dtype, len(values) + values.offset)[values.offset :]


def _float_keys(bits: _Keys, *, exact: bool) -> _Keys:
    kind = bits.dtype.type
    width = bits.dtype.itemsize * 8
    digits = _DIGITS[width]
    sign = kind(1 << (width - 1))
    infinity = kind(((1 << (width - 1 - digits)) - 1) << digits)
    size = bits & ~sign
    negative = (bits & sign) != 0
    if not exact:
        # All NaNs of a sign become one, just beyond infinity, and both zeros the positive one.
        size = np.where(size > infinity, infinity + kind(1), size)
        negative &= size != 0
    keys: _Keys = np.where(negative, ~(size | sign), size | sign)
    return keys


def extremes(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The smallest and the largest of values, each as an array of one; nulls and NaNs are passed over.

    >>> [found.to_pylist() for found in extremes(pa.array([2.5, None, float("nan"), 1.0]))]
    [[1.0], [2.5]]
    """
    kind = values.type
    if values.null_count:
        values = values.drop_null()
    if pat.is_floating(kind):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if not len(values):
        return pa.nulls(1, kind), pa.nulls(1, kind)
    if is_number(kind):
        keys = number_keys(values, exact=True)
        low, high = int(keys.argmin()), int(keys.argmax())
        return values[low : low + 1], values[high : high + 1]
    found = pc.min_max(values)
    return pa.repeat(found["min"], 1), pa.repeat(found["max"], 1)


def compare(values: pa.Array, value: pa.Scalar, how: str) -> npt.NDArray[np.bool_]:
    """Whether each value is ``<``, ``<=``, ``>`` or ``>=`` another; False for null.

    >>> compare(pa.array([1, None, 3]), pa.scalar(3), ">=").tolist()
    [False, False, True]
    """
    if not is_number(values.type):
        return np.asarray(_COMPARE[how](values, value).fill_null(False))
    found: npt.NDArray[np.bool_] = _NUMPY[how](number_keys(values), _asked(pa.repeat(value, 1))[0])
    return found & np.asarray(values.is_valid()) if values.null_count else found


def are_ascending(values: pa.Array) -> bool:
    """Whether values come in their order, nulls first.

    >>> are_ascending(pa.array([None, "a", "b", "b"])), are_ascending(pa.array([1, None]))
    (True, False)
    """
    nulls = values.null_count
    if nulls and values[:nulls].null_count != nulls:
        return False
    rest = values[nulls:]
    if is_number(values.type):
        keys = number_keys(rest)
        return bool(np.all(keys[1:] >= keys[:-1]))
    return len(rest) < 2 or bool(pc.all(pc.less_equal(rest[:-1], rest[1:])).as_py())


class Ascending:
    """Values in ascending order behind any nulls, that can be searched. Immutable.

    >>> found = Ascending(pa.array([None, 1, 3, 3, 7]))
    >>> found.span(pa.scalar(3), None), found.span(pa.scalar(3), pa.scalar(7), low_inclusive=False)
    ((2, 5), (4, 5))
    """

    __slots__ = ("_exact", "_keys", "first", "nulls", "values")

    def __init__(self, values: pa.Array, *, exact: bool = False) -> None:
        """``exact`` as :func:`number_keys` has it: for those who merge what is sorted."""
        self._exact = exact
        self.values = values
        #: How many nulls come first.
        self.nulls: int = values.null_count
        self._keys: _Keys | None = number_keys(values[self.nulls :], exact=exact) if is_number(values.type) else None
        #: Where values begin that are no null, and no NaN with a minus sign.
        self.first = self.nulls
        if self._keys is not None and not exact and pat.is_floating(values.type):
            self.first += int(np.searchsorted(self._keys, _lowest(values.type), "right"))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.values.nbytes) + (0 if self._keys is None else int(self._keys.nbytes))

    def span(
        self,
        low: pa.Scalar | None,
        high: pa.Scalar | None,
        *,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
    ) -> tuple[int, int]:
        """Where the values between two bounds begin and end; NaNs with a minus sign are left out."""
        if low is not None and low is high and self._keys is not None:
            # One value: its key is made once.
            key = self._key(low)
            start = self.nulls + int(self._keys.searchsorted(key, "left" if low_inclusive else "right"))
            return start, max(
                start, self.nulls + int(self._keys.searchsorted(key, "right" if high_inclusive else "left"))
            )
        start = self.first if low is None else self._place(low, after=not low_inclusive)
        stop = len(self.values) if high is None else self._place(high, after=high_inclusive)
        return start, max(start, stop)

    def ranges(
        self,
        low: pa.Scalar | None,
        high: pa.Scalar | None,
        *,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
    ) -> list[tuple[int, int]]:
        """Where values between two bounds are: one range, and where NaN is among them also the NaNs that come first.

        >>> found = Ascending(pa.array([-float("nan"), 1.0, float("nan")]))
        >>> found.ranges(pa.scalar(2.0), None)
        [(2, 3), (0, 1)]
        """
        main = self.span(low, high, low_inclusive=low_inclusive, high_inclusive=high_inclusive)
        if self.first == self.nulls or not holds_nan(low, high, low_inclusive, high_inclusive, self.values.type):
            return [main]
        return [main, (self.nulls, self.first)]

    def _place(self, value: pa.Scalar, *, after: bool) -> int:
        if self._keys is not None:
            return self.nulls + int(self._keys.searchsorted(self._key(value), "right" if after else "left"))
        search = bisect_right if after else bisect_left
        values = self.values
        place = search(range(self.nulls, len(values)), value.as_py(), key=lambda at: values[at].as_py())
        return self.nulls + place

    def _key(self, value: pa.Scalar) -> np.integer:
        if pat.is_integer(value.type) and value.is_valid:
            integer: np.integer = value.type.to_pandas_dtype()(value.as_py())
            return integer
        listed = pa.repeat(value, 1)
        found: np.integer = number_keys(listed, exact=True)[0] if self._exact else _asked(listed)[0]
        return found

    def places(self, wanted: pa.Array) -> Int64s:
        """The places, ascending, of the values equal to any of those wanted, none of which is null.

        >>> Ascending(pa.array([1, 3, 3, 7])).places(pa.array([7, 3, 5])).tolist()
        [1, 2, 3]
        """
        if self._keys is None:
            ranges = [self.span(one, one) for one in wanted]
        else:
            keys = np.unique(_asked(wanted))
            begins = np.searchsorted(self._keys, keys, "left") + self.nulls
            ends = np.searchsorted(self._keys, keys, "right") + self.nulls
            ranges = list(zip(begins.tolist(), ends.tolist(), strict=True))
            if self.first > self.nulls and bool(pc.any(pc.is_nan(wanted)).as_py()):
                ranges.append((self.nulls, self.first))
        return np.unique(np.concatenate([np.empty(0, np.int64), *(np.arange(*one) for one in ranges)]))


def holds_nan(
    low: pa.Scalar | None, high: pa.Scalar | None, low_inclusive: bool, high_inclusive: bool, kind: pa.DataType
) -> bool:
    """Whether NaN, the largest of floating-point numbers, lies between two bounds.

    >>> holds_nan(pa.scalar(1.0), None, True, True, pa.float64()), holds_nan(None, None, True, True, pa.int8())
    (True, False)
    """
    if not pat.is_floating(kind):
        return False
    below = high is None or (high_inclusive and math.isnan(high.as_py()))
    return below and (low is None or low_inclusive or not math.isnan(low.as_py()))


def _asked(values: pa.Array) -> _Keys:
    """The keys of values that are asked for: of NaN that of the positive one."""
    keys = number_keys(values)
    return np.where(keys == _lowest(values.type), ~keys, keys) if pat.is_floating(values.type) else keys


def _lowest(kind: pa.DataType) -> np.integer:
    """The key of NaN with a minus sign; that of the other is its complement."""
    stored = _WIDTHS[kind.bit_width]
    sign = stored(1 << (kind.bit_width - 1))
    infinity = stored(((1 << (kind.bit_width - 1 - _DIGITS[kind.bit_width])) - 1) << _DIGITS[kind.bit_width])
    found: np.integer = ~(sign | (infinity + stored(1)))
    return found
