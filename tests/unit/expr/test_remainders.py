"""Remainders of integers: by one number for all rows as by one of each row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancelet.errors import InvalidInput
from lancelet.expr import evaluate
from lancelet.expr.functions.arithmetic import calculated
from lancelet.expr.tree import Column, literal

KINDS = [pa.int32(), pa.int64(), pa.uint32(), pa.uint64()]


def drawn(kind: pa.DataType, rows: int = 40_000) -> pa.Array:
    """Numbers of all sizes, the largest and the least among them, some null."""
    limits = np.iinfo(kind.to_pandas_dtype())
    draw = np.random.default_rng(kind.bit_width)
    values = draw.integers(limits.min, limits.max, rows, limits.dtype, endpoint=True)
    values[: rows // 2] >>= draw.integers(0, kind.bit_width, rows // 2).astype(limits.dtype)
    values[:4] = limits.min, limits.max, 0, 1
    return pa.array(values, mask=draw.random(rows) < 0.1)


def remainders(column: pa.Array, divisor: int) -> pa.Array:
    expr = calculated("%", Column(("x",), column.type), literal(divisor, column.type))
    return evaluate(expr, pa.record_batch({"x": column}))


@pytest.mark.parametrize(
    ("kind", "divisor"),
    [
        (kind, divisor)
        for kind in KINDS
        for divisor in (1, 2, 7, 100, 2**31 - 1, -1, -7, -(2**31))
        if divisor > 0 or pa.types.is_signed_integer(kind)
    ],
    ids=str,
)
def test_a_remainder_is_exact_and_has_the_sign_of_what_is_divided(kind: pa.DataType, divisor: int) -> None:
    column = drawn(kind)
    size = abs(divisor)
    expected = [
        None if number is None else number % size if number >= 0 else -(-number % size) for number in column.to_pylist()
    ]
    assert remainders(column, divisor).to_pylist() == expected
    assert remainders(column[100:], divisor).to_pylist() == expected[100:]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_remainder_by_zero_is_refused_where_there_is_something_to_divide(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="division by zero"):
        remainders(drawn(kind), 0)
    assert remainders(pa.nulls(3, kind), 0).to_pylist() == [None] * 3
    assert remainders(pa.nulls(3, kind), 5).to_pylist() == [None] * 3
    assert len(remainders(pa.array([], kind), 5)) == 0
