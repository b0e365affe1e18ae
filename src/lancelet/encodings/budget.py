"""What may be made of few stored bytes: memory that nothing in the file vouches for stays within the budget."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from lancelet.config import default_options
from lancelet.errors import OverBudget

__all__ = ["check_budget", "is_fixed", "nulls", "row_bits"]


def check_budget(size: int) -> None:
    """OverBudget if so many bytes, which nothing stored vouches for, exceed the memory budget."""
    budget = default_options().memory_budget
    if size > budget:
        raise OverBudget(
            f"the rows decode to {size:,} bytes, more than the memory budget of {budget:,}",
            hint="read fewer rows at a time, or raise LANCELET_MEMORY_BUDGET",
        )


def row_bits(kind: pa.DataType) -> int:
    """About how many bits a value takes in memory, nulls included; of what varies, the offset alone.

    >>> row_bits(pa.int32()), row_bits(pa.list_(pa.float32(), 3)), row_bits(pa.null())
    (33, 100, 0)
    """
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pat.is_null(kind):
        return 0
    if pat.is_fixed_size_list(kind):
        return 1 + int(kind.list_size) * row_bits(kind.value_type)
    if pat.is_struct(kind):
        return 1 + sum(row_bits(field.type) for field in kind)
    try:
        return 1 + int(kind.bit_width)
    except ValueError:
        return 65


def is_fixed(kind: pa.DataType) -> bool:
    """Whether all values of a type take as much memory.

    >>> is_fixed(pa.list_(pa.float32(), 3)), is_fixed(pa.struct([("x", pa.string())])), is_fixed(pa.null())
    (True, False, True)
    """
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pat.is_fixed_size_list(kind):
        return is_fixed(kind.value_type)
    if pat.is_struct(kind):
        return all(is_fixed(field.type) for field in kind)
    try:
        return pat.is_null(kind) or (kind.bit_width > 0 and not pat.is_dictionary(kind))
    except ValueError:
        return False


def nulls(count: int, kind: pa.DataType) -> pa.Array:
    """``count`` nulls, which may well be all that a page says."""
    if pat.is_null(kind):
        return pa.Array.from_buffers(kind, count, [None], count)
    check_budget(count * row_bits(kind) // 8)
    return pa.nulls(count, kind)
