"""LZ4 blocks by way of pyarrow: raw blocks, without frame, checksum or size.

The library behind pyarrow lets a match at distance 0 pass, which the format forbids; the compiled kernel refuses it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lancelet.kernels.blocks import bad_lz4, check_blocks, check_compression
from lancelet.kernels.refuse import other_length

__all__ = ["compress_blocks", "decompress_blocks"]


def decompress_blocks(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    out: NDArray[np.uint8],
    out_starts: NDArray[np.int64],
    out_sizes: NDArray[np.int64],
) -> None:
    """Decompress the blocks ``data[starts[i]:][:sizes[i]]`` to ``out[out_starts[i]:][:out_sizes[i]]``.

    A block that gives any other number of bytes is refused. Nothing is written outside the places named.
    """
    check_blocks("LZ4", starts, sizes, data.size)
    check_blocks("decompressed", out_starts, out_sizes, out.size, like=starts.size)
    codec = pa.Codec("lz4_raw")
    each = zip(starts.tolist(), sizes.tolist(), out_starts.tolist(), out_sizes.tolist(), strict=True)
    for block, (start, size, out_start, out_size) in enumerate(each):
        raw = data[start : start + size].tobytes()
        if not _fits(codec, raw, out_size) or _fits(codec, raw, out_size - 1):
            raise bad_lz4(block, size, out_size)
        if out_size:
            plain = codec.decompress(raw, decompressed_size=out_size, asbytes=True)
            out[out_start : out_start + out_size] = np.frombuffer(plain, np.uint8)


def compress_blocks(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    out: NDArray[np.uint8],
    out_starts: NDArray[np.int64],
    out_sizes: NDArray[np.int64],
    prefix: bool = False,
) -> int:
    """Compress each of the blocks ``data[starts[i]:][:sizes[i]]``, and write them to ``out`` one after the other.

    ``out_starts`` and ``out_sizes`` receive where they are. With ``prefix`` each begins with the number of its
    uncompressed bytes, four bytes, little-endian. ``out`` must have room for the worst case, ``worst_lz4(size)`` bytes
    for each block and those of the prefix. Returns how many bytes were written.
    """
    check_compression(starts, sizes, data.size, out.size, out_starts.size, prefix)
    other_length("sizes of compressed blocks", out_sizes.size, out_starts.size)
    codec = pa.Codec("lz4_raw")
    at = 0
    for block, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        raw = data[start : start + size].tobytes()
        packed = (size.to_bytes(4, "little") if prefix else b"") + codec.compress(raw, asbytes=True)
        out[at : at + len(packed)] = np.frombuffer(packed, np.uint8)
        out_starts[block], out_sizes[block] = at, len(packed)
        at += len(packed)
    return at


def _fits(codec: pa.Codec, raw: bytes, size: int) -> bool:
    """Whether a valid block decompresses to at most ``size`` bytes; the codec does not tell how many they are."""
    if size <= 0:
        return size == 0 and raw == b"\0"
    try:
        codec.decompress(raw, decompressed_size=size, asbytes=True)
    except OSError:
        return False
    return True
