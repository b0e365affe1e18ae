"""Packed structs: a row of fixed-width fields stored as one value, field behind field."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.values import Fixed, Packed
from lancelet.errors import Corrupt, Unsupported

__all__ = ["pack", "unpack"]


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


def pack(rows: Packed) -> tuple[tuple[int, ...], Fixed]:
    """Each row's fields side by side, and the width of each field."""
    fields = []
    for child in rows.children:
        if not isinstance(child, Fixed) or child.bits % 8:
            raise Unsupported("packed structs of mini-blocks hold fields of whole bytes only, and no booleans")
        fields.append(child)
    bits = tuple(field.bits for field in fields)
    table = np.empty((rows.count, sum(bits) // 8), np.uint8)
    at = 0
    for field in fields:
        width = field.bits // 8
        table[:, at : at + width] = field.data.reshape(rows.count, width)
        at += width
    return bits, Fixed(sum(bits), rows.count, table.reshape(-1))
