"""Blocks: values in one opaque buffer that is always read whole, as dictionaries are."""

from __future__ import annotations

import numpy as np

from lancelet.encodings import bitpacking, flat, general, variable
from lancelet.encodings.values import Bytes, Fixed, Values, Variable
from lancelet.errors import Corrupt, Unsupported
from lancelet.format import compressions as c
from lancelet.kernels import runs

__all__ = ["decode", "encode"]


def decode(encoding: c.Compression, data: Bytes, count: int) -> Values:
    """``count`` values."""
    match encoding:
        case c.Flat(bits, compression):
            body = data if compression is None else general.decompress(compression.scheme, data)
            return flat.decode_block(bits, body, count)
        case c.Variable(_, compression):
            return variable.decode_block(
                data if compression is None else general.decompress(compression.scheme, data), count
            )
        case c.InlineBitpacking(bits, None):
            return bitpacking.decode_inline_block(bits, data, count)
        case c.OutOfLineBitpacking(word, c.Flat(width)):
            # A value takes at least one bit, save in the last block, which is always whole.
            if count > 8 * len(data):
                raise Corrupt(f"packed block of {len(data):,} bytes cannot hold {count:,} values")
            one = np.array([len(data)], np.int64)
            values = bitpacking.unpack_out_of_line(
                data, np.zeros(1, np.int64), one, np.array([count], np.int64), width=width, word=word
            )
            return Fixed(word, count, values.view(np.uint8))
        case c.Rle(c.Flat(bits), c.Flat(8)):
            return _decode_runs(bits, data, count)
        case c.General(compression, inner):
            return decode(inner, general.decompress(compression.scheme, data), count)
    raise Unsupported(f"encoding {type(encoding).__name__} of a block")


def _decode_runs(bits: int, data: Bytes, count: int) -> Fixed:
    """u64 size of the run values, the values, then a byte for the length of each run."""
    if len(data) < 8:
        raise Corrupt(f"block of runs has {len(data)} bytes, expected at least 8")
    size = int(data[:8].view(np.uint64)[0])
    if size > len(data) - 8:
        raise Corrupt(f"block of {len(data):,} bytes declares {size:,} bytes of run values")
    if count > 255 * len(data):
        raise Corrupt(f"block of {len(data):,} bytes cannot hold {count:,} values")
    places = np.array([[8, size], [8 + size, len(data) - 8 - size]], np.int64)
    out = np.empty(count * (bits // 8), np.uint8)
    (value_start, value_size), (length_start, length_size) = places[:, :, None]
    runs.expand_runs(
        data, value_start, value_size, length_start, length_size, np.array([count], np.int64), bits // 8, out
    )
    return Fixed(bits, count, out)


def encode(values: Values, offset_bits: int, compression: c.BufferCompression | None) -> tuple[c.Compression, Bytes]:
    """The smallest form of some values: plain, packed, or compressed as ``compression`` says."""
    match values:
        case Fixed(bits, count, data):
            plain: tuple[c.Compression, Bytes] = (c.Flat(bits), data[: (count * bits + 7) // 8])
        case Variable():
            plain = (c.Variable(c.Flat(offset_bits)), variable.encode_block(values, offset_bits))
        case _:
            raise Unsupported(f"a dictionary of {type(values).__name__.lower()} values")
    forms = [plain]
    if isinstance(values, Fixed) and values.bits in (8, 16, 32, 64) and values.count:
        forms.append(_packed(values))
    if compression is not None:
        forms.append((c.General(compression, plain[0]), general.compress(compression, plain[1])))
    return min(forms, key=lambda form: len(form[1]))


def _packed(values: Fixed) -> tuple[c.Compression, Bytes]:
    words = values.words()
    if values.count <= bitpacking.BLOCK:
        chunks = bitpacking.encode_inline(values)
        return chunks.encoding, chunks.buffers[0].data
    width = max(1, int(words.max()).bit_length())
    if width == values.bits:
        return c.Flat(values.bits), values.data
    pieces = bitpacking.pack_out_of_line(words, np.array([values.count], np.int64), width)
    return c.OutOfLineBitpacking(values.bits, c.Flat(width)), pieces.data
