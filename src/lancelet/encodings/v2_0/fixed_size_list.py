"""Fixed-size lists: the items of all lists, one after another; and packed structs: the fields of all rows in turn."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.v2_0.buffers import (
    Decoded,
    PageBuffers,
    Pending,
    Rows,
    aligned,
    count_of,
    expanded,
    put,
    read_bytes,
)
from lancelet.encodings.v2_0.spans import Reader
from lancelet.encodings.v2_0.steps import Steps
from lancelet.encodings.values import Bytes, Fixed, FixedList, Packed, Values
from lancelet.errors import Corrupt, Unsupported
from lancelet.format.arrays import ArrayEncoding, FixedSizeList, Flat, NoNulls, PackedStruct

__all__ = ["encode_packed", "listed", "read", "read_packed"]


def read(encoding: FixedSizeList, kind: pa.DataType, source: PageBuffers, rows: Rows, reader: Reader) -> Steps[Pending]:
    """Some lists. Lists of plain values are read as values as wide as a list."""
    size, count = encoding.dimension, count_of(rows)
    if not pat.is_fixed_size_list(kind) or kind.list_size != size:
        raise Corrupt(f"page holds lists of {size:,} items, expected type {kind}")
    match encoding.items:
        case NoNulls(Flat(bits, buffer, None)) | Flat(bits, buffer, None) if bits and bits % 8 == 0:
            data = yield from read_bytes(source, buffer, size * bits // 8, rows)
            items = Fixed(bits, count * size, aligned(data, bits // 8))
            return lambda: Decoded(FixedList(size, count, items))
    if isinstance(rows, slice):
        inner: Rows = slice(rows.start * size, rows.stop * size)
    else:
        inner = expanded(rows, size)
    pending = yield from reader(encoding.items, kind.value_type, source, inner)

    def finish() -> Decoded:
        found = pending()
        return Decoded(FixedList(size, count, found.values, found.validity))

    return finish


def _width(encoding: ArrayEncoding) -> tuple[int, int]:
    """Bits of one plain value of a packed field, and how many of them a field has."""
    match encoding:
        case NoNulls(inner):
            return _width(inner)
        case Flat(bits, _, None) if bits and bits % 8 == 0:
            return bits, 1
        case FixedSizeList(dimension, items, _):
            bits, number = _width(items)
            return bits, number * dimension
    raise Unsupported(f"field of a packed struct in encoding {type(encoding).__name__}")


def read_packed(encoding: PackedStruct, kind: pa.DataType, source: PageBuffers, rows: Rows) -> Steps[Pending]:
    """Some rows of fields that are never null."""
    if not pat.is_struct(kind) or kind.num_fields != len(encoding.inner):
        raise Corrupt(f"page holds structs of {len(encoding.inner)} fields, expected type {kind}")
    widths = [(bits, number, bits * number // 8) for bits, number in map(_width, encoding.inner)]
    total = sum(size for _, _, size in widths)
    data = yield from read_bytes(source, encoding.buffer, total, rows)

    def finish() -> Decoded:
        count, at, children = count_of(rows), 0, []
        for (bits, number, size), field in zip(widths, kind, strict=True):
            column = np.empty((count, size), np.uint8)
            if count:
                column[:] = data.reshape(count, total)[:, at : at + size]
            children.append(listed(Fixed(bits, count * number, column.reshape(-1)), field.type, count))
            at += size
        return Decoded(Packed(count, tuple(children)))

    return finish


def listed(values: Fixed, kind: pa.DataType, count: int) -> Values:
    """Plain values grouped as nested fixed-size lists."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if not pat.is_fixed_size_list(kind):
        if values.count != count:
            raise Corrupt(f"field of a packed struct has {values.count:,} values, expected {count:,}")
        return values
    return FixedList(kind.list_size, count, listed(values, kind.value_type, count * kind.list_size))


def encode_packed(values: Packed, buffers: list[Bytes]) -> PackedStruct:
    """Append the rows; fields of fixed width only."""
    encodings, columns = zip(*map(_packed_field, values.children), strict=True)
    rows = np.concatenate([column.reshape(values.count, -1) for column in columns], axis=1)
    buffer = put(buffers, rows.reshape(-1))
    return PackedStruct(tuple(encodings), buffer)


def _packed_field(values: Values) -> tuple[ArrayEncoding, Bytes]:
    """A field's description, which names no buffer of its own, and its bytes."""
    match values:
        case Fixed(bits, count, data) if bits % 8 == 0:
            none: list[Bytes] = []
            return NoNulls(Flat(bits, put(none, data))), data[: count * bits // 8]
        case FixedList(dimension, _, items, None):
            inner, data = _packed_field(items)
            return NoNulls(FixedSizeList(dimension, inner)), data
    raise Unsupported("packed structs of version 2.0 hold fields of fixed width without nulls only")
