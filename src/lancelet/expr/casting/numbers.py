"""Casts between numbers: cut off towards integers, rounded towards decimals, null where the type has no such value."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.expr.types import integer_bounds
from lancelet.expr.vectors import from_numpy, raw_values, valid_in_all

__all__ = ["as_condition", "as_number"]

_WIDEST = 76


def as_condition(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Whether numbers are not zero.

    >>> as_condition(pa.array([0, 2]), pa.bool_()).to_pylist()
    [False, True]
    """
    if pat.is_float16(array.type):
        array = array.cast(pa.float32())
    zero = pa.scalar(Decimal(0) if pat.is_decimal(array.type) else 0, array.type)
    return pc.not_equal(array, zero).cast(kind)


def as_number(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers as another type of number.

    >>> as_number(pa.array([1.9, 300.0, float("nan")]), pa.int8()).to_pylist()
    [1, None, None]
    """
    given = array.type
    if pat.is_boolean(given):
        array, given = array.cast(pa.int8()), pa.int8()
    if given == kind:
        return array
    if pat.is_floating(kind):
        return _to_float(array, kind)
    if pat.is_decimal(kind):
        return _to_decimal(array, kind)
    if pat.is_floating(given):
        return _whole(array, kind)
    if pat.is_decimal(given):
        return _cut_off(array, kind)
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        return _narrowed(array, kind)


def _to_float(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pat.is_float16(kind) and not pat.is_float32(array.type):
        array = array.cast(pa.float32(), safe=False)
    if pat.is_float16(array.type) and pat.is_float64(kind):
        array = array.cast(pa.float32())
    return array.cast(kind, safe=False)


def _narrowed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    values = raw_values(array)
    low, high = integer_bounds(kind)
    own_low, own_high = integer_bounds(array.type)
    inside = (values >= max(low, own_low)) & (values <= min(high, own_high))
    valid = valid_in_all(array)
    return from_numpy(values.astype(f"{'u' if low == 0 else 'i'}{kind.bit_width // 8}"), kind, _both(valid, inside))


def _both(valid: np.ndarray | None, inside: np.ndarray) -> np.ndarray:
    return inside if valid is None else valid & inside


def _whole(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Floats without what is behind the point."""
    values = np.trunc(raw_values(array).astype(np.float64))
    low, high = integer_bounds(kind)
    # The bounds of 64 bits are no doubles: the next power of two is, and is outside.
    inside = (values >= float(low)) & (values < float(high + 1))
    dtype = np.dtype(f"{'u' if low == 0 else 'i'}{kind.bit_width // 8}")
    return from_numpy(np.where(inside, values, 0).astype(dtype), kind, _both(valid_in_all(array), inside))


def _cut_off(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Decimals without what is behind the point."""
    wide = _rounded(array, 0, "towards_zero")
    low, high = integer_bounds(kind)
    if wide.type.precision <= len(str(high)) - 1:
        return wide.cast(kind)
    bounds = [pa.scalar(bound, pa.decimal256(_WIDEST, 0)) for bound in (low, high)]
    inside = pc.and_(pc.greater_equal(wide, bounds[0]), pc.less_equal(wide, bounds[1]))
    return pc.if_else(inside, wide, pa.scalar(None, wide.type)).cast(kind)


def _rounded(array: pa.Array, scale: int, mode: str) -> pa.Array:
    """Decimals of 256 bits with just ``scale`` digits behind the point."""
    given = array.type
    wide = array.cast(pa.decimal256(min(given.precision + 1, _WIDEST), given.scale))
    if scale >= given.scale:
        room = min(wide.type.precision + scale - given.scale, _WIDEST)
        return wide.cast(pa.decimal256(room, scale))
    rounded = pc.round(wide, ndigits=scale, round_mode=mode)
    return rounded.cast(pa.decimal256(_WIDEST, scale))


def _to_decimal(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pat.is_floating(array.type):
        return _decimal_of_float(array, kind)
    if pat.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))
    wide = _rounded(array, kind.scale, "half_towards_infinity")
    try:
        return wide.cast(kind)
    except pa.ArrowInvalid:
        limit = pa.scalar(Decimal((0, (9,) * kind.precision, -kind.scale)), pa.decimal256(_WIDEST, kind.scale))
        inside = pc.less_equal(pc.abs(wide), limit)
        return pc.if_else(inside, wide, pa.scalar(None, wide.type)).cast(kind)


def _decimal_of_float(array: pa.Array, kind: pa.DataType) -> pa.Array:
    doubles = array.cast(pa.float32()) if pat.is_float16(array.type) else array
    values = raw_values(doubles).astype(np.float64)
    with np.errstate(all="ignore"):
        inside = np.abs(values) < 10.0 ** (kind.precision - kind.scale)
    kept = from_numpy(np.where(inside, values, 0.0), pa.float64(), _both(valid_in_all(array), inside))
    try:
        return kept.cast(kind)
    except pa.ArrowInvalid:
        # Rounding up may need one digit more.
        return _to_decimal(kept.cast(pa.decimal256(min(kind.precision + 1, _WIDEST), kind.scale)), kind)
