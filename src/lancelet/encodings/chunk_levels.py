"""Levels inside mini-blocks: every chunk carries its own piece of the repetition and definition levels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lancelet.encodings import bitpacking
from lancelet.encodings.chunks import Ints, require
from lancelet.encodings.values import Bytes
from lancelet.errors import Unsupported
from lancelet.format import compressions as c
from lancelet.kernels import bitpack, gather, level_runs

__all__ = ["Levels", "decode"]

Levels = npt.NDArray[np.uint16]


def decode(encoding: c.Compression, data: Bytes, starts: Ints, sizes: Ints, counts: Ints) -> Levels:
    """The levels of all chunks, joined; buffer ``i`` holds ``counts[i]`` of them."""
    match encoding:
        case c.Flat(16, None):
            require(sizes, counts * 2, "the level buffer")
            out = np.empty(int(counts.sum()), np.uint16)
            gather.copy_pieces(data, starts, counts * 2, out.view(np.uint8))
            return out
        case c.InlineBitpacking(16, None):
            out = np.empty(int(counts.sum()), np.uint16)
            bitpack.unpack_inline(data, starts, sizes, counts, out)
            return out
        case c.OutOfLineBitpacking(16, c.Flat(width, None)):
            return bitpacking.unpack_out_of_line(data, starts, sizes, counts, width=width, word=16)
        case c.Rle(c.Flat(16), c.Flat(8)):
            out = np.empty(int(counts.sum()), np.uint16)
            level_runs.decode_rle_levels(data, starts, sizes, counts, out)
            return out
    raise Unsupported(f"encoding {type(encoding).__name__} of levels")
