"""Variable: byte strings and the offsets between them."""

from __future__ import annotations

import numpy as np

from lancelet.encodings.chunks import Chunks, Ints
from lancelet.encodings.values import Bytes, Variable
from lancelet.errors import Corrupt
from lancelet.kernels import gather

__all__ = ["decode", "decode_at", "decode_block"]


def decode(offset_bits: int, chunks: Chunks) -> Variable:
    """All strings of the chunks, their chunk-local offsets joined into one run.

    A chunk's buffer: count+1 offsets from the buffer's own start, then the bytes.
    """
    starts, sizes = chunks.buffer(0)
    counts = np.ascontiguousarray(chunks.counts)
    size = gather.variable_size(chunks.data, starts, sizes, counts, offset_bits)
    offsets = np.empty(chunks.total + 1, offset_type(size))
    data = np.empty(size, np.uint8)
    gather.variable_chunks(chunks.data, starts, sizes, counts, offset_bits, offsets, data)
    return Variable(chunks.total, offsets, data)


def decode_at(offset_bits: int, chunks: Chunks, blocks: Ints, indices: Ints) -> Variable:
    """Single strings."""
    starts, sizes = chunks.buffer(0)
    counts = np.ascontiguousarray(chunks.counts)
    offsets, data = gather.variable_at(chunks.data, starts, sizes, counts, offset_bits, blocks, indices)
    return Variable(len(indices), offsets, data)


def decode_block(data: Bytes, count: int) -> Variable:
    """One buffer of strings, as dictionaries hold them.

    u32 header: 32, where the bytes start, count+1 offsets into them; the same in u64 when offsets have 64 bits.
    """
    if len(data) < 8:
        raise Corrupt(f"string block has {len(data)} bytes, expected at least 8")
    bits = int(data[:4].view(np.uint32)[0])
    if bits not in (32, 64):
        raise Corrupt(f"string block declares offsets of {bits} bits, expected 32 or 64")
    word = bits // 8
    bytes_start = int.from_bytes(data[word : 2 * word].tobytes(), "little")
    expected = word * (2 + count + 1)
    if bytes_start != expected or bytes_start > len(data):
        raise Corrupt(f"string block puts its bytes at {bytes_start:,}, expected {expected:,} of {len(data):,}")
    offsets = np.frombuffer(data[2 * word : bytes_start].tobytes(), f"i{word}")
    body = data[bytes_start:]
    if offsets[0] != 0 or np.any(np.diff(offsets) < 0) or offsets[-1] > len(body):
        raise Corrupt(f"string block has offsets outside its {len(body):,} bytes")
    return Variable(count, offsets, body)


def offset_type(size: int) -> type[np.signedinteger]:
    """The narrowest Arrow offset that reaches ``size`` bytes."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64
