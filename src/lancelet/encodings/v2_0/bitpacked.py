"""Bit-packed integers, in the two ways of 2.0: one value behind the other, or FastLanes blocks of 1,024.

Writers of 2.0 store integers flat; what is here reads the files of those that once did otherwise.
"""

from __future__ import annotations

import numpy as np

from lancelet.encodings.budget import check_budget
from lancelet.encodings.v2_0.buffers import (
    Decoded,
    PageBuffers,
    Pending,
    Rows,
    aligned,
    count_of,
    read_bytes,
)
from lancelet.encodings.v2_0.steps import Steps
from lancelet.encodings.values import Bytes, Fixed
from lancelet.errors import Corrupt
from lancelet.format.arrays import Bitpacked, BitpackedForNonNeg
from lancelet.kernels import bitpack

__all__ = ["read", "read_blocks"]

_BLOCK = 1024


def _check_widths(encoding: Bitpacked | BitpackedForNonNeg, least: int) -> tuple[int, int]:
    width, word = encoding.compressed_bits_per_value, encoding.uncompressed_bits_per_value
    if word not in (8, 16, 32, 64) or not least <= width <= word:
        raise Corrupt(f"values of {word} bits are packed to {width}, expected 8, 16, 32 or 64 and no more than that")
    return width, word


def read(encoding: Bitpacked, source: PageBuffers, rows: Rows) -> Steps[Pending]:
    """Value ``i`` lies in bits ``i * width`` to ``(i + 1) * width``, least significant first."""
    width, word = _check_widths(encoding, 1)
    if isinstance(rows, slice):
        first = rows.start * width >> 3
        data = yield from read_bytes(source, encoding.buffer, 1, slice(first, (rows.stop * width + 7) >> 3))
        bits = np.arange(rows.start, rows.stop, dtype=np.int64) * width - 8 * first
    else:
        places = rows * width >> 3
        # Each value's bytes, of which there are at most nine, as far as the buffer goes.
        reach = (rows * width + width + 7) >> 3
        each = reach - places
        needed = np.unique(np.repeat(places - (np.cumsum(each) - each), each) + np.arange(int(each.sum())))
        data = yield from read_bytes(source, encoding.buffer, 1, needed)
        bits = np.searchsorted(needed, places) * 8 + (rows * width & 7)
    return lambda: Decoded(_unpack(data, bits, width, word, signed=encoding.signed))


def _unpack(data: Bytes, bits: np.ndarray, width: int, word: int, *, signed: bool) -> Fixed:
    """Values that begin at these bits."""
    padded = np.concatenate([data, np.zeros(9, np.uint8)])
    words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    place, shift = bits >> 3, (bits & 7).astype(np.uint64)
    values = words[place] >> shift
    if width > 57:
        # A ninth byte may hold the highest bits; shifting by 64 is not defined, hence in two steps.
        values |= (padded[place + 8].astype(np.uint64) << np.uint64(1)) << (np.uint64(63) - shift)
    spare = np.uint64(64 - width)
    values <<= spare
    values = (values.view(np.int64) >> np.int64(spare)).view(np.uint64) if signed else values >> spare
    out = values.astype(f"u{word // 8}")
    return Fixed(word, len(out), out.view(np.uint8))


def read_blocks(encoding: BitpackedForNonNeg, source: PageBuffers, rows: Rows) -> Steps[Pending]:
    """Blocks of one width one behind the other, the last one filled up with zeros."""
    width, word = _check_widths(encoding, 0)
    size = width * _BLOCK // 8
    check_budget(count_of(rows) * word // 8)
    picked = np.zeros(0, np.int64) if isinstance(rows, slice) else np.unique(rows // _BLOCK)
    blocks = slice(rows.start // _BLOCK, -(-rows.stop // _BLOCK)) if isinstance(rows, slice) else picked
    data = b"" if not size else (yield from read_bytes(source, encoding.buffer, size, blocks))
    packed = aligned(np.frombuffer(data, np.uint8), 8)

    def finish() -> Decoded:
        count = count_of(blocks)
        starts, widths = np.arange(count, dtype=np.int64) * size, np.full(count, width, np.uint8)
        if isinstance(rows, slice):
            out = np.empty(count * _BLOCK, f"u{word // 8}")
            bitpack.unpack_blocks(packed, starts, widths, np.full(count, _BLOCK, np.int64), out)
            first = rows.start % _BLOCK
            out = out[first : first + count_of(rows)]
        else:
            out = np.empty(len(rows), f"u{word // 8}")
            bitpack.unpack_at(packed, starts, widths, np.searchsorted(picked, rows // _BLOCK), rows % _BLOCK, out)
        return Decoded(Fixed(word, len(out), out.view(np.uint8)))

    return finish
