"""Packed structs: a row of fixed-width fields stored as one value, field behind field."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.values import Fixed, Packed
from lancelet.errors import Corrupt

__all__ = ["unpack"]


def unpack(bits_per_field: tuple[int, ...], rows: Fixed) -> Packed:
    """The fields of each row, apart."""
    if sum(bits_per_field) != rows.bits or any(bits % 8 for bits in bits_per_field):
        raise Corrupt(f"packed struct rows of {rows.bits} bits do not hold fields of {bits_per_field} bits")
    table = rows.data.reshape(rows.count, rows.bits // 8)
    children, at = [], 0
    for bits in bits_per_field:
        width = bits // 8
        children.append(Fixed(bits, rows.count, np.ascontiguousarray(table[:, at : at + width]).reshape(-1)))
        at += width
    return Packed(rows.count, tuple(children))
