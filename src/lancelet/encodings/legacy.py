"""Pages of 0.1: plain values, strings and list offsets. They know no nulls.

Plain: values of one width side by side, or single bits. Strings: their bytes somewhere, and at the page's position
``n + 1`` int64 positions in the file, from the beginning of the first to the end of the last. Lists: ``n + 1`` offsets
of int32 or int64 into the items of the same batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.chunks import Ints
from lancelet.encodings.v2_0.buffers import (
    PageBuffers,
    Rows,
    aligned,
    count_of,
    expanded,
    read_bits,
    read_bytes,
    runs_of,
)
from lancelet.encodings.v2_0.fixed_size_list import listed
from lancelet.encodings.v2_0.steps import Steps, fetch
from lancelet.encodings.values import Fixed, Variable, fixed_bits, to_arrow
from lancelet.encodings.variable import offset_type
from lancelet.errors import Corrupt, Unsupported
from lancelet.format.arrays import Buffer

__all__ = ["Place", "read_bounds", "read_plain", "read_strings"]

#: Position and length (in values) of a page.
Place = tuple[int, int]


def _source(place: Place, bits: int, file_size: int, *, whole: bool) -> PageBuffers:
    position, length = place
    size = (length * bits + 7) // 8
    if size > file_size - min(position, file_size):
        found = f"page of {length:,} values at byte {position:,} ends at {position + size:,}"
        raise Corrupt(f"{found}, the file has {file_size:,} bytes", byte_range=(position, size))
    return PageBuffers(((position, size),), length, whole)


def _plain_type(kind: pa.DataType) -> tuple[int, int]:
    """Bits of an innermost value, and how many of them a value has."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pat.is_fixed_size_list(kind):
        bits, number = _plain_type(kind.value_type)
        return bits, number * int(kind.list_size)
    bits_of = fixed_bits(kind)
    if bits_of is None:
        raise Unsupported(f"type {kind} in a file of version 0.1")
    return bits_of, 1


def read_plain(
    kind: pa.DataType, place: Place, rows: Rows, file_size: int, *, whole: bool
) -> Steps[Callable[[], pa.Array]]:
    """Some rows of plain values."""
    bits, number = _plain_type(kind)
    count = count_of(rows)
    source = _source(place, bits * number, file_size, whole=whole)
    if bits == 1:
        if isinstance(rows, slice):
            items: Rows = slice(rows.start * number, rows.stop * number)
        else:
            items = expanded(rows, number)
        data = yield from read_bits(source, Buffer(0), items)
    else:
        data = yield from read_bytes(source, Buffer(0), bits * number // 8, rows)
    values = listed(Fixed(bits, count * number, aligned(data, bits // 8)), kind, count)
    return lambda: to_arrow(values, kind)


def read_bounds(place: Place, width: int, rows: Rows, file_size: int, *, whole: bool) -> Steps[tuple[Ints, Ints]]:
    """Where each row starts and stops; ``place`` counts the bounds, one more than there are rows."""
    picked = np.zeros(0, np.int64) if isinstance(rows, slice) else np.unique(np.concatenate([rows, rows + 1]))
    needed = slice(rows.start, rows.stop + 1) if isinstance(rows, slice) else picked
    source = _source(place, 8 * width, file_size, whole=whole)
    data = yield from read_bytes(source, Buffer(0), width, needed)
    bounds = aligned(data, width).view(f"<i{width}").astype(np.int64)
    if bounds[0] < 0 or np.any(bounds[1:] < bounds[:-1]):
        raise Corrupt("bounds decrease, expected them to grow from row to row")
    if isinstance(rows, slice):
        return bounds[:-1], bounds[1:]
    at = np.searchsorted(picked, rows)
    return bounds[at], bounds[at + 1]


def read_strings(
    kind: pa.DataType, place: Place, rows: Rows, file_size: int, *, whole: bool, nullable: bool
) -> Steps[Callable[[], pa.Array]]:
    """Some strings; where the field can be null, each empty one is."""
    bounds = (place[0], place[1] + 1)
    starts, stops = yield from read_bounds(bounds, 8, rows, file_size, whole=whole)
    if int(stops[-1]) > file_size:
        raise Corrupt(f"strings end at byte {int(stops[-1]):,} of {file_size:,}")
    pieces = yield from fetch(runs_of(starts, stops))

    def finish() -> pa.Array:
        data = pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.uint8), *pieces])
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(stops - starts, out=offsets[1:])
        valid = stops > starts
        validity = np.packbits(valid, bitorder="little") if nullable and not valid.all() else None
        return to_arrow(Variable(len(starts), offsets.astype(offset_type(len(data))), data), kind, validity, -1)

    return finish
