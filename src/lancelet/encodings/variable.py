"""Variable: byte strings and the offsets between them."""

from __future__ import annotations

import numpy as np

from lancelet.encodings import memory
from lancelet.encodings.chunks import Chunks, Ints
from lancelet.encodings.encoded import EncodedChunks, Pieces
from lancelet.encodings.values import Bytes, Variable
from lancelet.errors import Corrupt
from lancelet.format import compressions as c
from lancelet.kernels import chunking
from lancelet.kernels import variable as kernel

__all__ = ["decode", "decode_at", "decode_block", "encode", "encode_block", "offset_type"]


def decode(offset_bits: int, chunks: Chunks) -> Variable:
    """All strings of the chunks, their chunk-local offsets joined into one run.

    A chunk's buffer: count+1 offsets from the buffer's own start, then the bytes.
    """
    starts, sizes = chunks.buffer(0)
    counts = np.ascontiguousarray(chunks.counts)
    size = int(kernel.variable_sizes(chunks.data, starts, sizes, counts, offset_bits).sum())
    offsets = np.empty(chunks.total + 1, offset_type(size))
    data = memory.empty(size)
    kernel.variable_chunks(chunks.data, starts, sizes, counts, offset_bits, offsets, data)
    return Variable(chunks.total, offsets, data)


def decode_at(offset_bits: int, chunks: Chunks, blocks: Ints, indices: Ints) -> Variable:
    """Single strings."""
    starts, sizes = chunks.buffer(0)
    counts = np.ascontiguousarray(chunks.counts)
    offsets, data = kernel.variable_at(chunks.data, starts, sizes, counts, offset_bits, blocks, indices)
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


def encode(values: Variable, offset_bits: int, target_bytes: int) -> EncodedChunks:
    """Chunks of about ``target_bytes``; longer strings make shorter chunks."""
    counts = chunking.variable_chunks(values.offsets, target_bytes, offset_bits // 8)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    pieces = Pieces(*kernel.split_variable(values.offsets, values.data, bounds, offset_bits))
    return EncodedChunks(c.Variable(c.Flat(offset_bits)), counts, (pieces,))


def encode_block(values: Variable, offset_bits: int) -> Bytes:
    """One buffer of strings, as :func:`decode_block` reads it."""
    word = np.dtype(f"u{offset_bits // 8}")
    offsets = values.offsets.astype(word)
    head = np.array([offset_bits, word.itemsize * (2 + len(offsets))], word)
    return np.concatenate([head.view(np.uint8), offsets.view(np.uint8), values.data[: int(offsets[-1])]])


def offset_type(size: int) -> type[np.signedinteger]:
    """The narrowest Arrow offset that reaches ``size`` bytes."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64
