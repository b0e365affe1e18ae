"""Conditions as bits: Arrow's booleans to NumPy's and back, and what each kind of truth test makes of null."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["is_false", "is_true", "marked", "to_bools", "true_where"]

Bools = npt.NDArray[np.bool_]


def _unpacked(buffer: pa.Buffer | None, offset: int, rows: int, missing: bool) -> Bools:
    if buffer is None or rows == 0:
        return np.full(rows, missing)
    bits = np.frombuffer(buffer, np.uint8)[offset // 8 :]
    skip = offset % 8
    return np.unpackbits(bits, count=skip + rows, bitorder="little")[skip:].view(np.bool_)


def to_bools(condition: pa.BooleanArray) -> tuple[Bools, Bools | None]:
    """The values of a condition, and where it is not null; None for that if it is null nowhere.

    >>> to_bools(pa.array([True, None]))[1].tolist()
    [True, False]
    """
    validity, data = condition.buffers()
    rows, offset = len(condition), condition.offset
    valid = _unpacked(validity, offset, rows, True) if condition.null_count else None
    return _unpacked(data, offset, rows, False), valid


def true_where(condition: pa.Array | pa.Scalar, rows: int) -> Bools:
    """Whether a condition is true, for each row; null is not.

    >>> true_where(pa.array([True, None, False]), 3).tolist()
    [True, False, False]
    """
    if isinstance(condition, pa.Scalar):
        return np.full(rows, condition.as_py() is True)
    values, valid = to_bools(condition)
    return values if valid is None else values & valid


def marked(values: Bools) -> pa.BooleanArray:
    """A condition that is null nowhere.

    >>> marked(np.array([True, False])).to_pylist()
    [True, False]
    """
    data = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, data])


def is_true(condition: pa.BooleanArray) -> pa.BooleanArray:
    """True where the condition is, false elsewhere."""
    return condition if condition.null_count == 0 else marked(true_where(condition, len(condition)))


def is_false(condition: pa.BooleanArray) -> pa.BooleanArray:
    """True where the condition is false, false elsewhere."""
    values, valid = to_bools(condition)
    return marked(~values if valid is None else ~values & valid)
