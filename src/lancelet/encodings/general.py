"""General compression: LZ4 or zstd over buffers that another encoding made, each prefixed with its size.

LZ4: u32 uncompressed size, then a raw block. zstd: u64 uncompressed size, then a frame.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lancelet.config import default_options
from lancelet.encodings import zstd
from lancelet.encodings.chunks import Ints
from lancelet.encodings.encoded import EncodedChunks, Pieces
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt
from lancelet.format.compressions import BufferCompression, General, Scheme
from lancelet.kernels import lz4
from lancelet.kernels.blocks import worst_lz4

__all__ = ["compress", "compress_many", "decompress", "decompress_many", "encode"]

_PREFIX = {Scheme.LZ4: 4, Scheme.ZSTD: 8}
# zstd's own level where none is asked for.
_ZSTD_LEVEL = 3
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
    bodies, body_sizes = starts + prefix, sizes - prefix
    if scheme is Scheme.ZSTD:
        return zstd.decompress_frames(data, bodies, body_sizes, lengths), out_starts, lengths
    out = np.empty(int(lengths.sum()), np.uint8)
    lz4.decompress_blocks(data, bodies, body_sizes, out, out_starts, lengths)
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


def encode(compression: BufferCompression, chunks: EncodedChunks) -> EncodedChunks:
    """The chunks with the first buffer of each compressed."""
    first, *others = chunks.buffers
    packed = compress_many(compression, first)
    return EncodedChunks(General(compression, chunks.encoding), chunks.counts, (packed, *others))


def compress(compression: BufferCompression, data: Bytes) -> Bytes:
    """One buffer, compressed, its size before it."""
    one = Pieces(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))
    return compress_many(compression, one).data


def compress_many(compression: BufferCompression, pieces: Pieces) -> Pieces:
    """Many buffers, each compressed by itself."""
    if compression.scheme is Scheme.ZSTD:
        return _compress_zstd(compression.level, pieces)
    count = len(pieces.sizes)
    room = sum(map(worst_lz4, pieces.sizes.tolist())) + _PREFIX[Scheme.LZ4] * count
    out, starts, sizes = np.empty(room, np.uint8), np.empty(count, np.int64), np.empty(count, np.int64)
    size = lz4.compress_blocks(pieces.data, pieces.starts, pieces.sizes, out, starts, sizes, True)
    return Pieces(out[:size], starts, sizes)


def _compress_zstd(level: int | None, pieces: Pieces) -> Pieces:
    wanted = _ZSTD_LEVEL if level is None else level
    lowest, highest = pa.Codec.minimum_compression_level("zstd"), pa.Codec.maximum_compression_level("zstd")
    # Level 0 is zstd's way to say: the usual one.
    codec = pa.Codec("zstd", compression_level=min(max(wanted or _ZSTD_LEVEL, lowest), highest))
    whole = pa.py_buffer(pieces.data)
    parts: list[bytes] = []
    sizes = np.empty(len(pieces.sizes), np.int64)
    for at, (start, size) in enumerate(zip(pieces.starts.tolist(), pieces.sizes.tolist(), strict=True)):
        frame = codec.compress(whole.slice(start, size), asbytes=True)
        parts += (size.to_bytes(_PREFIX[Scheme.ZSTD], "little"), frame)
        sizes[at] = _PREFIX[Scheme.ZSTD] + len(frame)
    return Pieces(np.frombuffer(b"".join(parts), np.uint8), np.cumsum(sizes) - sizes, sizes)
