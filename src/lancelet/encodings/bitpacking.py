"""Bit packing: integers without their leading zeros, 1,024 a block, in FastLanes order.

Inline: each mini-block is one block, its first word the bit width.
Out of line: blocks of one width given by the page, then either a padded block or the raw values that are left over.
"""

from __future__ import annotations

import numpy as np

from lancelet.encodings import memory
from lancelet.encodings.chunks import Chunks, Ints
from lancelet.encodings.encoded import EncodedChunks, Pieces, even_counts
from lancelet.encodings.values import Bytes, Fixed
from lancelet.errors import Corrupt
from lancelet.format.compressions import InlineBitpacking
from lancelet.kernels import bitpack, gather

__all__ = [
    "BLOCK",
    "decode_inline",
    "decode_inline_at",
    "decode_inline_block",
    "encode_inline",
    "pack_out_of_line",
    "packed_sizes",
    "unpack_out_of_line",
]

BLOCK = 1024


def decode_inline(bits: int, chunks: Chunks) -> Fixed:
    """All values of the chunks."""
    starts, sizes = chunks.buffer(0)
    out = memory.empty(chunks.total * (bits // 8)).view(f"u{bits // 8}")
    bitpack.unpack_inline(chunks.data, starts, sizes, np.ascontiguousarray(chunks.counts), out)
    return Fixed(bits, len(out), out.view(np.uint8))


def decode_inline_at(bits: int, chunks: Chunks, blocks: Ints, indices: Ints) -> Fixed:
    """Single values, each from its own bits."""
    starts, sizes = chunks.buffer(0)
    out = np.empty(len(indices), f"u{bits // 8}")
    bitpack.unpack_inline_at(chunks.data, starts, sizes, blocks, indices, out)
    return Fixed(bits, len(out), out.view(np.uint8))


def decode_inline_block(bits: int, data: Bytes, count: int) -> Fixed:
    """A buffer of inline blocks one behind the other, as dictionaries hold them."""
    word = bits // 8
    starts: list[int] = []
    sizes: list[int] = []
    at = 0
    for _ in range(-(-count // BLOCK)):
        if at + word > len(data):
            raise Corrupt(f"bit-packed buffer ends after {len(data):,} bytes, in front of block {len(starts)}")
        width = int.from_bytes(data[at : at + word].tobytes(), "little")
        if width > bits:
            raise Corrupt(f"block {len(starts)} is {width} bits wide, expected at most {bits}")
        starts.append(at)
        sizes.append(word + width * BLOCK // 8)
        at += sizes[-1]
    counts = np.full(len(starts), BLOCK, np.int64)
    if len(starts):
        counts[-1] = count - BLOCK * (len(starts) - 1)
    out = np.empty(count, f"u{word}")
    bitpack.unpack_inline(data, np.array(starts, np.int64), np.array(sizes, np.int64), counts, out)
    return Fixed(bits, count, out.view(np.uint8))


def unpack_out_of_line(data: Bytes, starts: Ints, sizes: Ints, counts: Ints, *, width: int, word: int) -> np.ndarray:
    """Values of several buffers, each of ``counts[i]`` values packed to ``width`` bits; words have ``word`` bits.

    A buffer holds whole blocks, then its remaining values either as one padded block or raw: its size tells which.
    """
    whole, left = counts // BLOCK, counts % BLOCK
    packed = width * BLOCK // 8
    padded = (whole + (left > 0)) * packed
    raw = whole * packed + left * (word // 8)
    # Where both sizes agree the tail is raw: that is how the reference implementation writes and reads it.
    has_raw_tail = (left > 0) & (sizes == raw)
    wrong = np.flatnonzero(~has_raw_tail & (sizes != padded))
    if len(wrong):
        at = int(wrong[0])
        raise Corrupt(f"packed buffer {at} has {sizes[at]:,} bytes, expected {padded[at]:,} or {raw[at]:,}")
    blocks = whole + ((left > 0) & ~has_raw_tail)
    owner = np.repeat(np.arange(len(counts)), blocks)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    block_counts = np.minimum(counts[owner] - within * BLOCK, BLOCK)
    out = np.empty(int(block_counts.sum()), f"u{word // 8}")
    widths = np.full(len(owner), width, np.uint8)
    bitpack.unpack_blocks(data, starts[owner] + within * packed, widths, np.ascontiguousarray(block_counts), out)
    if not has_raw_tail.any():
        return out
    return _with_tails(out, data, starts + whole * packed, counts, np.where(has_raw_tail, left, 0), word)


def encode_inline(values: Fixed) -> EncodedChunks:
    """One block a chunk, each at the least width its values allow."""
    words = values.words()
    counts = even_counts(len(words), BLOCK)
    bounds = np.empty(len(counts) + 1, np.int64)
    out = np.empty(len(counts) * (BLOCK + 1) * words.itemsize, np.uint8)
    bounds[-1] = size = bitpack.pack_inline(words, out, bounds[:-1])
    pieces = Pieces(out[:size], bounds[:-1], bounds[1:] - bounds[:-1])
    return EncodedChunks(InlineBitpacking(values.bits), counts, (pieces,))


def packed_sizes(counts: Ints, width: int, word: int) -> tuple[Ints, Ints]:
    """Bytes of each buffer that :func:`pack_out_of_line` makes, and how many values of each stay raw at its end."""
    left = counts % BLOCK
    packed = width * BLOCK // 8
    raw = np.where(packed >= left * (word // 8), left, 0)
    blocks = counts // BLOCK + ((left > 0) & (raw == 0))
    return blocks * packed + raw * (word // 8), raw


def pack_out_of_line(words: np.ndarray, counts: Ints, width: int) -> Pieces:
    """Pack buffers of ``counts[i]`` values to one width; what is left behind whole blocks stays raw if that is less.

    All buffers are packed by one call: each is filled up with zeros to whole blocks first.
    """
    item = words.itemsize
    sizes, raw = packed_sizes(counts, width, 8 * item)
    whole = counts - raw
    source = np.concatenate([words.view(np.uint8), np.zeros(BLOCK * item, np.uint8)])
    starts = (np.cumsum(counts) - counts) * item
    filler = -whole % BLOCK
    aligned = words
    if filler.any() or raw.any():
        aligned = np.empty(int((whole + filler).sum()), words.dtype)
        _interleave(source, starts, whole * item, len(words) * item, filler * item, aligned.view(np.uint8))
    packed = np.empty(len(aligned) // BLOCK * width * BLOCK // 8, np.uint8)
    bitpack.pack_blocks(aligned, np.full(len(aligned) // BLOCK, width, np.uint8), packed)
    out_starts = np.cumsum(sizes) - sizes
    if not raw.any():
        return Pieces(packed, out_starts, sizes)
    packed_bytes = sizes - raw * item
    both = np.concatenate([packed, words.view(np.uint8)])
    out = np.empty(int(sizes.sum()), np.uint8)
    tails = len(packed) + starts + whole * item
    _interleave(both, np.cumsum(packed_bytes) - packed_bytes, packed_bytes, tails, raw * item, out)
    return Pieces(out, out_starts, sizes)


def _interleave(data: Bytes, starts: Ints, sizes: Ints, next_starts: Ints | int, next_sizes: Ints, out: Bytes) -> None:
    """Copy the first piece of either kind, then the second of either, and so on."""
    all_starts = np.empty((len(starts), 2), np.int64)
    all_sizes = np.empty((len(starts), 2), np.int64)
    all_starts[:, 0], all_starts[:, 1] = starts, next_starts
    all_sizes[:, 0], all_sizes[:, 1] = sizes, next_sizes
    gather.copy_pieces(data, all_starts.reshape(-1), all_sizes.reshape(-1), out)


def _with_tails(packed: np.ndarray, data: Bytes, starts: Ints, counts: Ints, tails: Ints, word: int) -> np.ndarray:
    """Put each buffer's raw values behind its unpacked ones."""
    width = word // 8
    if np.any(starts + tails * width > len(data)):
        raise Corrupt("packed buffer ends inside its raw values")
    ends = np.cumsum(counts)
    out = np.empty(int(ends[-1]), packed.dtype)
    is_tail = np.zeros(len(out), bool)
    position = np.repeat(ends - tails, tails) + _ramp(tails)
    is_tail[position] = True
    out[~is_tail] = packed
    source = np.repeat(starts, tails) + _ramp(tails) * width
    out[position] = data[source[:, None] + np.arange(width)].reshape(-1).view(packed.dtype)
    return out


def _ramp(lengths: Ints) -> Ints:
    """0, 1, … up to each length in turn."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
