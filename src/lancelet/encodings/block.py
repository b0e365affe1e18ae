"""Blocks: values in one opaque buffer that is always read whole, as dictionaries are."""

from __future__ import annotations

import numpy as np

from lancelet.encodings import bitpacking, flat, general, variable
from lancelet.encodings.values import Bytes, Fixed, Values
from lancelet.errors import Unsupported
from lancelet.format import compressions as c

__all__ = ["decode"]


def decode(encoding: c.Compression, data: Bytes, count: int) -> Values:
    """``count`` values."""
    match encoding:
        case c.Flat(bits, compression):
            body = data if compression is None else general.decompress(compression.scheme, data)
            return flat.decode_block(bits, body, count)
        case c.Variable(_, compression):
            return variable.decode_block(data if compression is None else general.decompress(compression.scheme, data), count)
        case c.InlineBitpacking(bits, None):
            return bitpacking.decode_inline_block(bits, data, count)
        case c.OutOfLineBitpacking(word, c.Flat(width)):
            one = np.array([len(data)], np.int64)
            values = bitpacking.unpack_out_of_line(
                data, np.zeros(1, np.int64), one, np.array([count], np.int64), width=width, word=word
            )
            return Fixed(word, count, values.view(np.uint8))
        case c.General(compression, inner):
            return decode(inner, general.decompress(compression.scheme, data), count)
    raise Unsupported(f"encoding {type(encoding).__name__} of a block")
