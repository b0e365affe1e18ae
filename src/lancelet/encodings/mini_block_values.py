"""Values inside mini-blocks: walks the tree of encodings that the page names, over all its chunks at once."""

from __future__ import annotations

import numpy as np

from lancelet.encodings import (
    bitpacking,
    byte_stream_split,
    fixed_size_list,
    flat,
    fsst,
    general,
    packed_struct,
    rle,
    variable,
)
from lancelet.encodings.choose import Codec, FixedStatistics, best_codec, fixed_statistics, wants_split, wants_symbols
from lancelet.encodings.chunks import Chunks, Ints
from lancelet.encodings.encoded import EncodedChunks
from lancelet.encodings.knobs import Knobs
from lancelet.encodings.values import Fixed, FixedList, Indexed, Packed, Values, Variable
from lancelet.errors import Corrupt, Unsupported
from lancelet.format import compressions as c

__all__ = ["decode", "decode_at", "encode", "has_direct_access"]


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
            items, validity = fixed_size_list.split_validity(dimension, has_validity, chunks)
            return FixedList(dimension, chunks.total, decode(inner, items), validity)
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


def _strings(values: Values) -> Variable:
    if not isinstance(values, Variable):
        raise Corrupt(f"FSST over {type(values).__name__.lower()} values, expected strings")
    return values


def _fixed(values: Values) -> Fixed:
    if not isinstance(values, Fixed):
        raise Corrupt(f"packed struct over {type(values).__name__.lower()} values, expected fixed width")
    return Fixed(values.bits, values.count, np.ascontiguousarray(values.data))


def encode(
    values: Values,
    knobs: Knobs,
    *,
    text: bool = False,
    offset_bits: int = 32,
    statistics: FixedStatistics | None = None,
) -> EncodedChunks:
    """The values cut into chunks, in the form that suits them and the user.

    ``text`` says that strings are words; ``statistics`` may be given where they are known already.
    """
    match values:
        case Fixed():
            return _encode_fixed(values, knobs, statistics)
        case Variable():
            return _encode_variable(values, knobs, text, offset_bits)
        case FixedList():
            return fixed_size_list.encode(values)
        case Packed():
            bits_per_field, rows = packed_struct.pack(values)
            chunks = flat.encode(rows)
            return chunks.with_encoding(c.PackedStruct(bits_per_field, chunks.encoding))
        case Indexed(keys, _):
            return _encode_fixed(keys, knobs, statistics)


def _encode_fixed(values: Fixed, knobs: Knobs, statistics: FixedStatistics | None) -> EncodedChunks:
    if knobs.compression == "none":
        return flat.encode(values)
    match best_codec(statistics or fixed_statistics(values), knobs):
        case Codec.RUNS:
            chunks = rle.encode(values)
        case Codec.PACKED:
            chunks = bitpacking.encode_inline(values)
        case _:
            chunks = flat.encode(values)
    compression = _compression(knobs)
    if compression is None:
        return chunks
    forms = [chunks, general.encode(compression, chunks)]
    if wants_split(values, knobs):
        forms.append(general.encode(compression, byte_stream_split.encode(values)))
    return min(forms, key=_size)


def _encode_variable(values: Variable, knobs: Knobs, text: bool, offset_bits: int) -> EncodedChunks:
    if wants_symbols(values, text=text, offset_bits=offset_bits, knobs=knobs):
        coded = fsst.encode(values)
        plain_bytes = len(values.data)
        if coded is not None and len(coded[1].data) + len(coded[0]) < plain_bytes:
            chunks = variable.encode(coded[1], offset_bits, knobs.chunk_bytes)
            return chunks.with_encoding(c.Fsst(coded[0], chunks.encoding))
    chunks = variable.encode(values, offset_bits, knobs.chunk_bytes)
    compression = _compression(knobs)
    if compression is None:
        return chunks
    return min(chunks, general.encode(compression, chunks), key=_size)


def _size(chunks: EncodedChunks) -> int:
    return chunks.padded_size


def _compression(knobs: Knobs) -> c.BufferCompression | None:
    scheme = {"lz4": c.Scheme.LZ4, "zstd": c.Scheme.ZSTD}.get(knobs.compression or "")
    return None if scheme is None else c.BufferCompression(scheme, knobs.compression_level)
