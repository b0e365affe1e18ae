"""Values inside mini-blocks: walks the tree of encodings that the page names, over all its chunks at once."""

from __future__ import annotations

import numpy as np

from lancelet.encodings import bitpacking, byte_stream_split, flat, fsst, general, packed_struct, rle, variable
from lancelet.encodings.chunks import Chunks, Ints, join_bits
from lancelet.encodings.values import Fixed, FixedList, Values, Variable
from lancelet.errors import Corrupt, Unsupported
from lancelet.format import compressions as c

__all__ = ["decode", "decode_at", "has_direct_access"]


def decode(encoding: c.Compression, chunks: Chunks) -> Values:
    """All values of the chunks."""
    match encoding:
        case c.Flat(bits, None):
            return flat.decode(bits, chunks)
        case c.InlineBitpacking(bits, None):
            return bitpacking.decode_inline(bits, chunks)
        case c.Variable(c.Flat(bits), None):
            return variable.decode(bits, chunks)
        case c.Fsst(symbol_table, c.Variable(c.Flat(bits), None)):
            return fsst.decode_chunks(symbol_table, bits, chunks)
        case c.Rle(c.Flat(bits), c.Flat(8)):
            return rle.decode(bits, chunks)
        case c.ByteStreamSplit(c.Flat(bits)):
            return byte_stream_split.decode(bits, chunks)
        case c.General(compression, inner):
            return decode(inner, _decompressed(compression.scheme, chunks))
        case c.FixedSizeList(dimension, inner, has_validity):
            return _decode_list(dimension, inner, has_validity, chunks)
        case c.PackedStruct(bits_per_field, inner):
            return packed_struct.unpack(bits_per_field, _fixed(decode(inner, chunks)))
    raise Unsupported(f"encoding {type(encoding).__name__} in a mini-block")


def decode_at(encoding: c.Compression, chunks: Chunks, blocks: Ints, indices: Ints) -> Values:
    """Single values: ``indices[i]`` of chunk ``blocks[i]``. Only where :func:`has_direct_access`."""
    match encoding:
        case c.Flat(bits, None):
            return flat.decode_at(bits, chunks, blocks, indices)
        case c.InlineBitpacking(bits, None):
            return bitpacking.decode_inline_at(bits, chunks, blocks, indices)
        case c.Variable(c.Flat(bits), None):
            return variable.decode_at(bits, chunks, blocks, indices)
        case c.Fsst(symbol_table, strings):
            return fsst.decode(symbol_table, _strings(decode_at(strings, chunks, blocks, indices)))
        case c.Rle(c.Flat(bits), c.Flat(8)):
            return rle.decode_at(bits, chunks, blocks, indices)
        case c.FixedSizeList(dimension, c.Flat(bits, None), False) if bits > 1:
            rows = flat.decode_at(bits * dimension, chunks, blocks, indices)
            return FixedList(dimension, rows.count, Fixed(bits, rows.count * dimension, rows.data))
        case c.PackedStruct(bits_per_field, inner):
            return packed_struct.unpack(bits_per_field, _fixed(decode_at(inner, chunks, blocks, indices)))
    raise Unsupported(f"direct access to encoding {type(encoding).__name__}")


def has_direct_access(encoding: c.Compression) -> bool:
    """Whether single values can be had without decoding their neighbours."""
    match encoding:
        case c.Flat(_, None) | c.InlineBitpacking(_, None) | c.Variable(c.Flat(), None) | c.Rle():
            return True
        case c.Fsst(_, inner) | c.PackedStruct(_, inner):
            return has_direct_access(inner)
        case c.FixedSizeList(_, c.Flat(bits, None), False):
            return bits > 1
    return False


def _decompressed(scheme: c.Scheme, chunks: Chunks) -> Chunks:
    starts, sizes = chunks.buffer(0)
    data, new_starts, new_sizes = general.decompress_many(scheme, chunks.data, starts, sizes)
    return chunks.with_first(data, new_starts, new_sizes)


def _decode_list(dimension: int, inner: c.Compression, has_validity: bool, chunks: Chunks) -> FixedList:
    items = chunks.with_counts(chunks.counts * dimension)
    validity = None
    if has_validity:
        validity = join_bits(items, 0)
        items = items.without_first()
    return FixedList(dimension, chunks.total, decode(inner, items), validity)


def _strings(values: Values) -> Variable:
    if not isinstance(values, Variable):
        raise Corrupt(f"FSST over {type(values).__name__.lower()} values, expected strings")
    return values


def _fixed(values: Values) -> Fixed:
    if not isinstance(values, Fixed):
        raise Corrupt(f"packed struct over {type(values).__name__.lower()} values, expected fixed width")
    return Fixed(values.bits, values.count, np.ascontiguousarray(values.data))
