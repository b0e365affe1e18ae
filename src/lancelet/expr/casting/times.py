"""Casts of dates, times and durations: units changed, zones taken on and off, counts read as times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import Unsupported
from lancelet.expr.casting.numbers import as_number
from lancelet.expr.types import is_number
from lancelet.expr.vectors import from_numpy, raw_values, valid_in_all

__all__ = ["as_time", "ticks"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400


def ticks(array: pa.Array) -> pa.Array:
    """The counts that times are stored as.

    >>> ticks(pa.array([0, 5], pa.timestamp("s"))).to_pylist()
    [0, 5]
    """
    return array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())


def as_time(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Times or counts as another type of time; what a coarser unit cannot show is cut off, null what does not fit.

    A time without zone is the local time of the zone that it gets; one that loses its zone keeps the time in UTC.

    >>> as_time(pa.array([1500, None], pa.timestamp("ms")), pa.timestamp("s")).cast(pa.int64()).to_pylist()
    [1, None]
    """
    given = array.type
    if given == kind:
        return array
    if is_number(given):
        return as_number(array, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    if pat.is_timestamp(given):
        return _of_timestamp(array, kind)
    if pat.is_date(given):
        return _of_date(array, kind)
    if pat.is_time(given) and pat.is_time(kind):
        return _scaled(array, _PER_SECOND[given.unit], _PER_SECOND[kind.unit], kind)
    if pat.is_duration(given) and pat.is_duration(kind):
        return _scaled(array, _PER_SECOND[given.unit], _PER_SECOND[kind.unit], kind)
    raise Unsupported(f"{given} is not cast to {kind}")


def _scaled(array: pa.Array, given: int, wanted: int, kind: pa.DataType) -> pa.Array:
    """Counts of another unit; null where there are too many."""
    values = raw_values(array).astype(np.int64)
    valid = valid_in_all(array)
    if wanted >= given:
        factor = wanted // given
        inside = np.abs(values) <= np.iinfo(np.int64).max // factor
        values = np.where(inside, values, 0) * factor
        valid = inside if valid is None else valid & inside
    else:
        factor = given // wanted
        # Towards zero, as Arrow counts.
        values = values // factor + ((values < 0) & (values % factor != 0))
    return from_numpy(values, kind, valid) if kind.bit_width == 64 else _small(values, kind, valid)


def _small(values: np.ndarray, kind: pa.DataType, valid: np.ndarray | None) -> pa.Array:
    bounds = np.iinfo(np.int32)
    inside = (values >= bounds.min) & (values <= bounds.max)
    return from_numpy(np.where(inside, values, 0), kind, inside if valid is None else valid & inside)


def _of_timestamp(array: pa.Array, kind: pa.DataType) -> pa.Array:
    given = array.type
    per_second = _PER_SECOND[given.unit]
    if pat.is_timestamp(kind):
        made = _scaled(
            array.cast(pa.timestamp(given.unit)), per_second, _PER_SECOND[kind.unit], pa.timestamp(kind.unit)
        )
        if kind.tz is None:
            return made
        if given.tz is None:
            return pc.assume_timezone(made, kind.tz, ambiguous="earliest", nonexistent="latest")
        return made.cast(pa.timestamp(kind.unit, "UTC")).cast(kind)
    local = pc.local_timestamp(array) if given.tz else array
    values, valid = raw_values(local), valid_in_all(local)
    days = values // (_DAY * per_second)
    if pat.is_date32(kind):
        return _small(days, kind, valid)
    if pat.is_date64(kind):
        return from_numpy(days * (_DAY * 1000), kind, valid)
    if pat.is_time(kind):
        clock = from_numpy(values - days * (_DAY * per_second), pa.int64(), valid)
        return _scaled(clock, per_second, _PER_SECOND[kind.unit], kind)
    raise Unsupported(f"{given} is not cast to {kind}")


def _of_date(array: pa.Array, kind: pa.DataType) -> pa.Array:
    values, valid = raw_values(array).astype(np.int64), valid_in_all(array)
    days = values if pat.is_date32(array.type) else values // (_DAY * 1000)
    if pat.is_date32(kind):
        return _small(days, kind, valid)
    if pat.is_date64(kind):
        return from_numpy(days * (_DAY * 1000), kind, valid)
    if not pat.is_timestamp(kind):
        raise Unsupported(f"{array.type} is not cast to {kind}")
    if pat.is_date32(array.type):
        seconds = from_numpy(days * _DAY, pa.timestamp("s"), valid)
        return _of_timestamp(seconds, kind)
    return _of_timestamp(from_numpy(values, pa.timestamp("ms"), valid), kind)
