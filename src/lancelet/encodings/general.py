"""General compression: LZ4 or zstd over buffers that another encoding made, each prefixed with its size.

LZ4: u32 uncompressed size, then a raw block. zstd: u64 uncompressed size, then a frame.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lancelet.config import default_options
from lancelet.encodings.chunks import Ints
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt
from lancelet.format.compressions import Scheme
from lancelet.kernels import lz4

__all__ = ["decompress", "decompress_many"]

_PREFIX = {Scheme.LZ4: 4, Scheme.ZSTD: 8}
# No LZ4 block grows by more than this; a larger declared size is a lie and would only waste memory.
_LARGEST_LZ4_RATIO = 255


def decompress(scheme: Scheme, data: Bytes) -> Bytes:
    """One buffer, decompressed."""
    whole, _, _ = decompress_many(scheme, data, np.zeros(1, np.int64), np.array([len(data)], np.int64))
    return whole


def decompress_many(scheme: Scheme, data: Bytes, starts: Ints, sizes: Ints) -> tuple[Bytes, Ints, Ints]:
    """Many buffers: their bytes side by side, where each starts and how long it is."""
    prefix = _PREFIX[scheme]
    wrong = np.flatnonzero((sizes < prefix) | (starts < 0) | (starts + sizes > len(data)))
    if len(wrong):
        at = int(wrong[0])
        raise Corrupt(f"compressed buffer {at} has {int(sizes[at]):,} bytes, expected more than its size prefix")
    lengths = _prefixes(data, starts, prefix)
    _refuse_bombs(scheme, lengths, sizes)
    out_starts = np.cumsum(lengths) - lengths
    out = np.empty(int(lengths.sum()), np.uint8)
    bodies, body_sizes = starts + prefix, sizes - prefix
    if scheme is Scheme.LZ4:
        lz4.decompress_blocks(data, bodies, body_sizes, out, out_starts, lengths)
    else:
        _decompress_zstd(data, bodies, body_sizes, out, out_starts, lengths)
    return out, out_starts, lengths


def _prefixes(data: Bytes, starts: Ints, width: int) -> Ints:
    raw = data[starts[:, None] + np.arange(width)]
    sizes = np.ascontiguousarray(raw).view(f"u{width}").reshape(-1)
    if len(sizes) and sizes.max() > np.iinfo(np.int64).max // 2:
        raise Corrupt(f"compressed buffer declares {int(sizes.max()):,} bytes")
    return sizes.astype(np.int64)


def _refuse_bombs(scheme: Scheme, lengths: Ints, sizes: Ints) -> None:
    if scheme is Scheme.LZ4:
        wrong = np.flatnonzero(lengths > sizes * _LARGEST_LZ4_RATIO)
        if len(wrong):
            at = int(wrong[0])
            raise Corrupt(f"compressed buffer {at} declares {int(lengths[at]):,} bytes but has {int(sizes[at]):,}")
    budget = default_options().memory_budget
    total = float(lengths.astype(np.float64).sum())
    if total > budget:
        raise Corrupt(
            f"compressed buffers declare {total:,.0f} bytes, more than the memory budget of {budget:,}",
            hint="raise LANCELET_MEMORY_BUDGET if the data really is that large",
        )


def _decompress_zstd(data: Bytes, starts: Ints, sizes: Ints, out: Bytes, out_starts: Ints, lengths: Ints) -> None:
    codec = pa.Codec("zstd")
    whole = pa.py_buffer(data)
    for at, (start, size, target, length) in enumerate(
        zip(starts.tolist(), sizes.tolist(), out_starts.tolist(), lengths.tolist(), strict=True)
    ):
        try:
            piece = codec.decompress(whole.slice(start, size), length)
        except (OSError, ValueError) as error:
            raise Corrupt(f"compressed buffer {at} is not a zstd frame of {length:,} bytes: {error}") from None
        if len(piece) != length:
            raise Corrupt(f"compressed buffer {at} holds {len(piece):,} bytes, expected {length:,}")
        out[target : target + length] = np.frombuffer(piece, np.uint8)
