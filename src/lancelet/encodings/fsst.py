"""FSST: strings in which one table's symbols of up to eight bytes stand for single codes."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.values import Variable
from lancelet.encodings.variable import offset_type
from lancelet.kernels import fsst

__all__ = ["decode"]


def decode(symbol_table: bytes, packed: Variable) -> Variable:
    """The plain strings."""
    table = fsst.read_table(symbol_table)
    sizes = fsst.decoded_sizes(table, packed.data, packed.offsets.astype(np.int64, copy=False))
    total = int(sizes.sum())
    offsets = np.empty(packed.count + 1, offset_type(total))
    data = np.empty(total, np.uint8)
    fsst.decode(table, packed.data, packed.offsets, offsets, data)
    return Variable(packed.count, offsets, data)
