"""The forms that values take in full-zip pages: each value by itself, compressed or as it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings import fsst, general
from lancelet.encodings.choose import wants_symbols, widest
from lancelet.encodings.chunks import Ints
from lancelet.encodings.encoded import Pieces
from lancelet.encodings.knobs import Knobs
from lancelet.encodings.values import Bytes, Fixed, FixedList, Packed, Values, Variable
from lancelet.errors import InvalidInput, Unsupported
from lancelet.format import compressions as c
from lancelet.kernels import packed_rows

__all__ = ["StoredFixed", "StoredVariable", "holds_no_item", "store_fixed", "store_rows", "store_variable"]

# Less than this, all values together, is not worth a general compressor; a value of more is worth it by itself.
_WORTH_COMPRESSING = 32768
# Where a few values, spread evenly, hardly shrink, the others are not tried.
_SAMPLE, _HARDLY = 16, 0.97


@dataclass(frozen=True, slots=True)
class StoredFixed:
    """Values of ``width`` bytes each, side by side."""

    encoding: c.Compression
    width: int
    data: Bytes


@dataclass(frozen=True, slots=True)
class StoredVariable:
    """Byte strings, and the width of the length that goes before each."""

    encoding: c.Compression
    offset_bits: int
    strings: Variable


def store_fixed(values: Values, validity: Bytes | None = None) -> StoredFixed:
    """Values of one width as they stand in the page: booleans in a byte each, bitmaps of items before lists."""
    match values:
        case Fixed(1, count, data):
            return StoredFixed(c.Flat(8), 1, np.unpackbits(data, count=count, bitorder="little"))
        case Fixed(bits, count, data):
            return StoredFixed(c.Flat(bits), bits // 8, data[: count * (bits // 8)])
        case FixedList(_, count):
            return _store_lists(values, count, validity)
        case Packed(count, children):
            parts = [store_fixed(child) for child in children]
            widths = tuple(8 * part.width for part in parts)
            table = np.concatenate([part.data.reshape(count, part.width) for part in parts], axis=1)
            return StoredFixed(c.PackedStruct(widths, c.Flat(sum(widths))), sum(widths) // 8, table.reshape(-1))
    raise Unsupported(f"{type(values).__name__.lower()} values as values of one width")


def _store_lists(lists: FixedList, count: int, validity: Bytes | None) -> StoredFixed:
    """Bitmaps of each value, the outermost list's first, then all its innermost items."""
    dimensions: list[tuple[int, bool]] = []
    bitmaps: list[Bytes] = []
    inner: Values = lists
    items = 1
    while isinstance(inner, FixedList):
        items *= inner.dimension
        dimensions.append((inner.dimension, inner.validity is not None))
        if inner.validity is not None:
            bitmaps.append(_bits_of_each(inner.validity, count, items))
        inner = inner.items
    if not isinstance(inner, Fixed):
        raise Unsupported(f"fixed-size lists of {type(inner).__name__.lower()} values")
    if inner.bits == 1:
        raise Unsupported(
            "fixed-size lists of booleans in a full-zip page", hint="leave lance-encoding:structural-encoding out"
        )
    width = items * inner.bits // 8
    encoding: c.Compression = c.Flat(inner.bits)
    if holds_no_item(lists, validity):
        # The bitmaps say all.
        encoding, width = c.Constant(), 0
        bitmaps[-1] = np.zeros_like(bitmaps[-1])
    for dimension, has_validity in reversed(dimensions):
        encoding = c.FixedSizeList(dimension, encoding, has_validity)
    if not bitmaps:
        return StoredFixed(encoding, width, inner.data[: count * width])
    parts = [*bitmaps, inner.data[: count * width].reshape(count, width)]
    table = np.concatenate(parts, axis=1)
    return StoredFixed(encoding, table.shape[1], table.reshape(-1))


def holds_no_item(lists: FixedList, validity: Bytes | None) -> bool:
    """Whether lists that are not null have null items only: their bitmaps say all. Booleans have no such form."""
    levels = [lists]
    while isinstance(levels[-1].items, FixedList):
        levels.append(levels[-1].items)
    items = levels[-1].items
    if levels[-1].validity is None or not isinstance(items, Fixed) or items.bits == 1:
        return False
    shown = _bits(validity, lists.count)
    for level in levels:
        shown = np.repeat(shown, level.dimension) & _bits(level.validity, level.count * level.dimension)
    return not shown.any()


def _bits(bitmap: Bytes | None, count: int) -> Bytes:
    return np.ones(count, np.uint8) if bitmap is None else np.unpackbits(bitmap, count=count, bitorder="little")


def _bits_of_each(bitmap: Bytes, count: int, bits: int) -> Bytes:
    """``bits`` of the bitmap for each value, filled up to whole bytes."""
    if bits % 8 == 0:
        return bitmap[: count * bits // 8].reshape(count, bits // 8)
    single = np.unpackbits(bitmap, count=count * bits, bitorder="little").reshape(count, bits)
    return np.packbits(single, axis=1, bitorder="little")


def store_variable(
    values: Variable, validity: Bytes | None, knobs: Knobs, *, text: bool, offset_bits: int
) -> StoredVariable:
    """Strings in codes of a symbol table, compressed one by one, or as they are: whatever suits them and is smaller."""
    plain = StoredVariable(c.Variable(c.Flat(offset_bits)), offset_bits, values)
    if knobs.compression == "none":
        return plain
    size = len(values.data) + (values.count + 1) * offset_bits // 8
    asked = knobs.compression in ("lz4", "zstd")
    if size >= _WORTH_COMPRESSING and (asked or widest(values) > _WORTH_COMPRESSING):
        # As the reference implementation does, whichever compressor is named.
        compression = c.BufferCompression(c.Scheme.ZSTD, knobs.compression_level or 0)
        strings = _compressed(values, validity, compression, sample=not asked)
        return (
            plain if strings is None else StoredVariable(c.General(compression, plain.encoding), offset_bits, strings)
        )
    coded = None
    if wants_symbols(values, text=text, offset_bits=offset_bits, knobs=knobs):
        coded = fsst.encode(values)
    if coded is None or len(coded[1].data) + len(coded[0]) >= len(values.data):
        return plain
    return StoredVariable(c.Fsst(coded[0], plain.encoding), offset_bits, coded[1])


def _compressed(
    values: Variable, validity: Bytes | None, compression: c.BufferCompression, *, sample: bool
) -> Variable | None:
    """Each value that is not null compressed; None where that does not make them smaller."""
    starts = values.offsets[:-1].astype(np.int64, copy=False)
    sizes = np.diff(values.offsets).astype(np.int64, copy=False)
    present = np.arange(values.count)
    if validity is not None:
        present = np.flatnonzero(np.unpackbits(validity, count=values.count, bitorder="little"))
    if sample and len(present) > 4 * _SAMPLE:
        few = present[:: len(present) // _SAMPLE]
        tried = general.compress_many(compression, Pieces(values.data, starts[few], sizes[few]))
        if tried.sizes.sum() > _HARDLY * sizes[few].sum():
            return None
    packed = general.compress_many(compression, Pieces(values.data, starts[present], sizes[present]))
    if packed.sizes.sum() >= sizes[present].sum():
        return None
    lengths = np.zeros(values.count, np.int64)
    lengths[present] = packed.sizes
    return Variable(values.count, _offsets(lengths), packed.data)


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def store_rows(rows: Packed, kind: pa.DataType, validity: Bytes | None, knobs: Knobs) -> StoredVariable:
    """Each struct as one byte string: its fields side by side, those of varying length after their lengths."""
    fields: list[c.PackedField] = []
    pieces: list[tuple[Bytes, Ints, Ints]] = []
    for at, child in enumerate(rows.children):
        variable = _store_field(child, kind.field(at).type, knobs)
        if variable is not None:
            bits = variable.offset_bits
            fields.append(c.PackedField(variable.encoding, bits_per_length=bits))
            offsets = variable.strings.offsets.astype(np.int64, copy=False)
            lengths = np.diff(offsets)
            pieces.append(_even(lengths.astype(f"<u{bits // 8}").view(np.uint8), bits // 8, rows.count))
            pieces.append((variable.strings.data, offsets[:-1], lengths))
            continue
        fixed = store_fixed(child)
        fields.append(c.PackedField(fixed.encoding, bits_per_value=8 * fixed.width))
        pieces.append(_even(fixed.data, fixed.width, rows.count))
    strings = _side_by_side(pieces, rows.count, validity)
    return StoredVariable(c.VariablePackedStruct(tuple(fields)), 32, strings)


def _store_field(values: Values, kind: pa.DataType, knobs: Knobs) -> StoredVariable | None:
    """A field of varying length in the form that suits it; None for one of fixed width."""
    match values:
        case Variable():
            text = pat.is_string(kind) or pat.is_large_string(kind)
            bits = 64 if pat.is_large_string(kind) or pat.is_large_binary(kind) else 32
            return store_variable(values, None, knobs, text=text, offset_bits=bits)
        case Packed():
            return store_rows(values, kind, None, knobs)
    return None


def _even(data: Bytes, width: int, count: int) -> tuple[Bytes, Ints, Ints]:
    return data, np.arange(count, dtype=np.int64) * width, np.full(count, width, np.int64)


def _side_by_side(pieces: list[tuple[Bytes, Ints, Ints]], count: int, validity: Bytes | None) -> Variable:
    """Row ``i`` is piece ``i`` of each part; null rows have no bytes."""
    if validity is not None:
        valid = np.unpackbits(validity, count=count, bitorder="little").astype(np.int64)
        pieces = [(data, starts, sizes * valid) for data, starts, sizes in pieces]
    offsets = _offsets(sum((sizes for _, _, sizes in pieces), np.zeros(count, np.int64)))
    if count and int(np.diff(offsets).max()) >= 1 << 32:
        raise InvalidInput("a packed struct takes 4 GiB or more, which its length cannot say")
    out = np.empty(int(offsets[-1]), np.uint8)
    places = offsets[:-1].copy()
    for data, starts, sizes in pieces:
        packed_rows.scatter_pieces(data, starts, sizes, out, places)
        places += sizes
    return Variable(count, offsets, out)
