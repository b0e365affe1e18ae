"""zstd frames, many at once: a codec is costly to set up, and one call takes any number of frames that touch.

A frame begins: u32 magic, a byte of flags, [a byte for the window, unless it is a single segment], [dictionary id],
[size of the content]; bits 6-7 of the flags give the bytes of the content's size, bit 5 says single segment, bits 0-1
give the bytes of the dictionary id.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lancelet.encodings.chunks import Ints
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt
from lancelet.kernels import gather

__all__ = ["decompress_frames"]

_MAGIC = 0xFD2FB528
_LONGEST_HEADER = 18
_CONTENT_BYTES = np.array([0, 2, 4, 8])
_DICTIONARY_BYTES = np.array([0, 1, 2, 4])


def decompress_frames(data: Bytes, starts: Ints, sizes: Ints, lengths: Ints) -> Bytes:
    """The contents side by side of frames that must hold ``lengths[i]`` bytes each."""
    total = int(sizes.sum())
    # Room behind the last frame, so that every header can be looked at in full length.
    joined = np.zeros(total + _LONGEST_HEADER, np.uint8)
    gather.copy_pieces(data, starts, sizes, joined[:total])
    begins = np.cumsum(sizes) - sizes
    if len(sizes) > 1 and _say_their_lengths(joined[begins[:, None] + np.arange(_LONGEST_HEADER)], lengths):
        try:
            return _decompress(joined[:total], int(lengths.sum()))
        except (OSError, ValueError):
            # Some frame is broken: one by one they tell which.
            pass
    out = np.empty(int(lengths.sum()), np.uint8)
    target = 0
    for at, (begin, size, length) in enumerate(zip(begins.tolist(), sizes.tolist(), lengths.tolist(), strict=True)):
        try:
            out[target : target + length] = _decompress(joined[begin : begin + size], length)
        except (OSError, ValueError) as error:
            raise Corrupt(f"compressed buffer {at} is not a zstd frame of {length:,} bytes: {error}") from None
        target += length
    return out


def _decompress(frames: Bytes, length: int) -> Bytes:
    plain = pa.Codec("zstd").decompress(pa.py_buffer(frames), length)
    if len(plain) != length:
        raise ValueError(f"it holds {len(plain):,}")
    return np.frombuffer(plain, np.uint8)


def _say_their_lengths(heads: Bytes, lengths: Ints) -> bool:
    """Whether each frame says of itself that it holds as many bytes as it should."""
    if np.any(heads[:, :4].copy().view("<u4") != _MAGIC):
        return False
    flags = heads[:, 4]
    single = (flags >> 5 & 1).astype(np.int64)
    kind = flags >> 6
    width = _CONTENT_BYTES[kind] + single * (kind == 0)
    at = 6 - single + _DICTIONARY_BYTES[flags & 3]
    columns = np.minimum(at[:, None] + np.arange(8), _LONGEST_HEADER - 1)
    words = np.where(np.arange(8) < width[:, None], np.take_along_axis(heads, columns, axis=1), 0)
    # Two bytes count from 256 on.
    content = words.astype(np.uint8).view("<u8").reshape(-1) + np.where(width == 2, np.uint64(256), np.uint64(0))
    return bool(np.all((width > 0) & (content == lengths.astype(np.uint64))))
