"""Levels inside mini-blocks: every chunk carries its own piece of the repetition and definition levels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lancelet.encodings import bitpacking, memory
from lancelet.encodings.chunks import Ints, require
from lancelet.encodings.encoded import Pieces
from lancelet.encodings.values import Bytes
from lancelet.errors import Unsupported
from lancelet.format import compressions as c
from lancelet.kernels import bitpack, chunk_rows, gather, level_runs, packed_levels, runs

__all__ = ["Levels", "decode", "decode_at", "encode", "has_direct_access"]

Levels = npt.NDArray[np.uint16]


def decode(encoding: c.Compression, data: Bytes, starts: Ints, sizes: Ints, counts: Ints) -> Levels:
    """The levels of all chunks, joined; buffer ``i`` holds ``counts[i]`` of them."""
    match encoding:
        case c.Flat(16, None):
            require(sizes, counts * 2, "the level buffer")
            out = memory.empty(2 * int(counts.sum())).view(np.uint16)
            gather.copy_pieces(data, starts, counts * 2, out.view(np.uint8))
            return out
        case c.InlineBitpacking(16, None):
            out = memory.empty(2 * int(counts.sum())).view(np.uint16)
            bitpack.unpack_inline(data, starts, sizes, counts, out)
            return out
        case c.OutOfLineBitpacking(16, c.Flat(width, None)):
            out = memory.empty(2 * int(counts.sum())).view(np.uint16)
            packed_levels.unpack(data, starts, sizes, counts, width, out)
            return out
        case c.Rle(c.Flat(16), c.Flat(8)):
            out = memory.empty(2 * int(counts.sum())).view(np.uint16)
            level_runs.decode_rle_levels(data, starts, sizes, counts, out)
            return out
    raise Unsupported(f"encoding {type(encoding).__name__} of levels")


def has_direct_access(encoding: c.Compression) -> bool:
    """Whether single levels can be had without decoding their neighbours."""
    match encoding:
        case c.Flat(16, None) | c.InlineBitpacking(16, None) | c.OutOfLineBitpacking(16, c.Flat(_, None)):
            return True
    return False


def decode_at(encoding: c.Compression, data: Bytes, starts: Ints, sizes: Ints, counts: Ints, indices: Ints) -> Levels:
    """Level ``indices[i]`` of buffer ``i``, which holds ``counts[i]``. Only where :func:`has_direct_access`."""
    out = np.empty(len(indices), np.uint16)
    match encoding:
        case c.OutOfLineBitpacking(16, c.Flat(width, None)):
            chunk_rows.levels_at(data, starts, sizes, counts, width, indices, out)
        case c.Flat(16, None):
            chunk_rows.values_at(data, starts, sizes, 2, np.arange(len(indices)), indices, out.view(np.uint8))
        case c.InlineBitpacking(16, None):
            bitpack.unpack_inline_at(data, starts, sizes, np.arange(len(indices)), indices, out)
        case _:
            raise Unsupported(f"direct access to levels of encoding {type(encoding).__name__}")
    return out


def encode(levels: Levels, bounds: Ints) -> tuple[c.Compression, Pieces]:
    """The levels between each two neighbouring bounds, all in the form that takes least: plain, packed, or runs."""
    counts = np.diff(bounds)
    width = max(1, int(levels.max()).bit_length())
    plain = Pieces(levels.view(np.uint8), bounds[:-1] * 2, counts * 2)
    packed_bytes = int(bitpacking.packed_sizes(counts, width, 16)[0].sum())
    if 8 * len(counts) + 3 * runs.count_runs(plain.data, 2) < packed_bytes:
        coded = Pieces(*level_runs.encode_rle_levels(levels, bounds))
        if int(coded.sizes.sum()) < packed_bytes:
            return c.Rle(c.Flat(16), c.Flat(8)), coded
    if packed_bytes >= 2 * len(levels) or width == 16:
        return c.Flat(16), plain
    return c.OutOfLineBitpacking(16, c.Flat(width)), bitpacking.pack_out_of_line(levels, counts, width)
