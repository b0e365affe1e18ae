"""Values of full-zip pages, once freed of levels and lengths: walks the encodings that the page names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.config import default_options
from lancelet.encodings import fsst, general, packed_struct
from lancelet.encodings.values import Bytes, Fixed, FixedList, Packed, Values, Variable, fixed_bits
from lancelet.errors import Corrupt, Unsupported
from lancelet.format import compressions as c
from lancelet.kernels import gather, packed_rows

__all__ = ["fixed_values", "stored_bits", "variable_values"]


def stored_bits(encoding: c.Compression) -> int:
    """Bits that each value of fixed width takes in the page.

    >>> stored_bits(c.FixedSizeList(3, c.Flat(32), has_validity=True))
    104
    """
    match encoding:
        case c.Flat(bits, None):
            return bits
        case c.PackedStruct(bits_per_field, c.Flat(_, None)):
            return sum(bits_per_field)
        case c.FixedSizeList():
            items, validity, innermost = _levels_of_list(encoding)
            return 8 * sum(validity) + (0 if isinstance(innermost, c.Constant) else items * stored_bits(innermost))
    raise Unsupported(f"encoding {type(encoding).__name__} of full-zip values of fixed width")


def fixed_values(encoding: c.Compression, kind: pa.DataType, data: Bytes, count: int) -> Values:
    """``count`` values of type ``kind`` that stand side by side in ``data``."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    match encoding:
        case c.Flat(8, None) if fixed_bits(kind) == 1:
            return Fixed(1, count, np.packbits(data, bitorder="little"))
        case c.Flat(bits, None):
            return Fixed(bits, count, data)
        case c.PackedStruct(bits_per_field, c.Flat(bits, None)):
            return packed_struct.unpack(bits_per_field, Fixed(bits, count, np.ascontiguousarray(data)))
        case c.FixedSizeList():
            return _lists(encoding, kind, data, count)
    raise Unsupported(f"encoding {type(encoding).__name__} of full-zip values of fixed width")


def _levels_of_list(encoding: c.FixedSizeList) -> tuple[int, tuple[int, ...], c.Compression]:
    """Innermost items of a value, bytes of each of its validity bitmaps (outermost first), and the items' encoding."""
    items, validity = 1, []
    inner: c.Compression = encoding
    while isinstance(inner, c.FixedSizeList):
        items *= inner.items_per_value
        if inner.has_validity:
            validity.append((items + 7) // 8)
        inner = inner.values
    if isinstance(inner, c.Constant) and not (validity and validity[-1] == (items + 7) // 8):
        raise Corrupt("list items without values have no validity")
    return items, tuple(validity), inner


def _lists(encoding: c.FixedSizeList, kind: pa.DataType, data: Bytes, count: int) -> FixedList:
    """A value is its validity bitmaps, outermost first, then all its innermost items."""
    _, validity, innermost = _levels_of_list(encoding)
    head = sum(validity)
    table = data.reshape(count, -1) if count else data.reshape(0, head)
    body = np.ascontiguousarray(table[:, head:]).reshape(-1) if head else data

    def nest(inner: c.Compression, inner_kind: pa.DataType, number: int, at: int) -> Values:
        if isinstance(inner_kind, pa.BaseExtensionType):
            inner_kind = inner_kind.storage_type
        if not isinstance(inner, c.FixedSizeList):
            return _items(innermost, inner_kind, body, number)
        if not pat.is_fixed_size_list(inner_kind) or inner_kind.list_size != inner.items_per_value:
            raise Corrupt(f"page holds lists of {inner.items_per_value} items, expected type {inner_kind}")
        below = number * inner.items_per_value
        bits = None
        if inner.has_validity:
            width = (below // max(count, 1) + 7) // 8
            bits = _joined_bits(table[:, at : at + width], below // max(count, 1))
            at += width
        return FixedList(inner.items_per_value, number, nest(inner.values, inner_kind.value_type, below, at), bits)

    lists = nest(encoding, kind, count, 0)
    if not isinstance(lists, FixedList):
        raise Corrupt(f"page holds lists, expected type {kind}")
    return lists


def _items(encoding: c.Compression, kind: pa.DataType, data: Bytes, count: int) -> Values:
    return _absent(kind, count) if isinstance(encoding, c.Constant) else fixed_values(encoding, kind, data, count)


def _absent(kind: pa.DataType, count: int) -> Values:
    """Items that are all null: the page holds nothing for them."""
    if pat.is_fixed_size_list(kind):
        return FixedList(kind.list_size, count, _absent(kind.value_type, count * kind.list_size))
    bits = fixed_bits(kind)
    if bits is None:
        raise Corrupt(f"page holds list items without values, expected type {kind}")
    return Fixed(bits, count, _zeros((count * bits + 7) // 8))


def _zeros(size: int) -> Bytes:
    """Room for values that the page does not hold; how many there are is only what it says."""
    budget = default_options().memory_budget
    if size > budget:
        raise Corrupt(
            f"page stands for {size:,} bytes of absent values, more than the memory budget of {budget:,}",
            hint="raise LANCELET_MEMORY_BUDGET if the data really is that large",
        )
    return np.zeros(size, np.uint8)


def _joined_bits(table: Bytes, bits: int) -> Bytes:
    """The first ``bits`` bits of each row, without what fills its last byte."""
    if bits % 8 == 0:
        return np.ascontiguousarray(table).reshape(-1)
    return np.packbits(np.unpackbits(table, axis=1, count=bits, bitorder="little").reshape(-1), bitorder="little")


def variable_values(encoding: c.Compression, kind: pa.DataType, stored: Variable) -> Values:
    """The values behind byte strings that were stored one by one."""
    match encoding:
        case c.Variable(c.Flat(32 | 64, None), None):
            return stored
        case c.Fsst(symbol_table, inner):
            return fsst.decode(symbol_table, _strings(variable_values(inner, kind, stored)))
        case c.General(compression, inner):
            return variable_values(inner, kind, _decompressed(compression.scheme, stored))
        case c.VariablePackedStruct(fields):
            return _structs(fields, kind, stored)
    raise Unsupported(f"encoding {type(encoding).__name__} of full-zip values of varying length")


def _strings(values: Values) -> Variable:
    if not isinstance(values, Variable):
        raise Corrupt(f"FSST over {type(values).__name__.lower()} values, expected strings")
    return values


def _decompressed(scheme: c.Scheme, stored: Variable) -> Variable:
    """Each value has its own compressed buffer; those of nulls are missing altogether."""
    starts = stored.offsets[:-1].astype(np.int64, copy=False)
    sizes = np.diff(stored.offsets).astype(np.int64, copy=False)
    present = np.flatnonzero(sizes)
    data, _, lengths = general.decompress_many(scheme, stored.data, starts[present], sizes[present])
    offsets = np.zeros(stored.count + 1, np.int64)
    offsets[present + 1] = lengths
    return Variable(stored.count, np.cumsum(offsets), data)


def _structs(fields: tuple[c.PackedField, ...], kind: pa.DataType, rows: Variable) -> Packed:
    """A row is its fields side by side, those of varying length after their lengths; a null row is no bytes at all."""
    if not pat.is_struct(kind) or kind.num_fields != len(fields):
        raise Corrupt(f"page holds structs of {len(fields)} fields, expected type {kind}")
    widths = np.array([_field_width(field) for field in fields], np.int64)
    starts, sizes = packed_rows.field_places(rows.data, rows.offsets, widths)
    children: list[Values] = []
    for at, field in enumerate(fields):
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[at])])
        data = np.empty(int(offsets[-1]), np.uint8)
        gather.copy_pieces(rows.data, starts[at], sizes[at], data)
        child_kind = kind.field(at).type
        if field.bits_per_value is None:
            children.append(variable_values(field.value, child_kind, Variable(rows.count, offsets, data)))
            continue
        present = np.flatnonzero(sizes[at])
        if len(present) < rows.count:
            table = _zeros(rows.count * int(widths[at])).reshape(rows.count, -1)
            table[present] = data.reshape(len(present), int(widths[at]))
            data = table.reshape(-1)
        children.append(fixed_values(field.value, child_kind, data, rows.count))
    return Packed(rows.count, tuple(children))


def _field_width(field: c.PackedField) -> int:
    """Bytes of a fixed field; for others, bytes of the length before it, negated."""
    if field.bits_per_value is not None:
        if stored_bits(field.value) != field.bits_per_value or field.bits_per_value % 8 or not field.bits_per_value:
            raise Corrupt(f"field of a packed struct has {field.bits_per_value} bits, its encoding makes other")
        return field.bits_per_value // 8
    if field.bits_per_length not in (32, 64):
        raise Corrupt(f"field of a packed struct has lengths of {field.bits_per_length} bits, expected 32 or 64")
    return -(field.bits_per_length // 8)
