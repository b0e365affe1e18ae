"""A column of strings as bytes and back, by lancelet's kernels: FSST for the text, bit packing for the lengths.

This is the demo's own arrangement, not the Lance file format, which builds on the same kernels:

    0 .. 2312            FSST symbol table
    .. +1 per block      how many bits the lengths of a block of 1024 strings take
    .. +128 * bits each  the lengths of the encoded strings, packed
    rest                 the encoded strings, one after the other
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.kernels import bitpack, fsst, fsst_encode

TABLE = 2312
BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Column:
    """What must be known of a packed column to read it."""

    start: int
    length: int
    rows: int
    text_bytes: int


def pack(strings: pa.LargeStringArray, start: int) -> tuple[Column, bytes]:
    """Encode; ``start`` is where the bytes will lie in their object."""
    rows = len(strings)
    _, offsets_buffer, data_buffer = strings.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[strings.offset : strings.offset + rows + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    table = fsst_encode.train(data, offsets)
    text_bytes = int(offsets[-1] - offsets[0])
    codes, ends = np.empty(2 * text_bytes, np.uint8), np.empty(rows + 1, np.int64)
    used = fsst_encode.encode(table, data, offsets, ends, codes)
    lengths = np.diff(ends).astype(np.uint32)
    widths = bitpack.block_widths(lengths)
    packed = np.empty(128 * int(widths.sum(dtype=np.int64)), np.uint8)
    bitpack.pack_blocks(lengths, widths, packed)
    body = b"".join([table, widths.tobytes(), packed.tobytes(), codes[:used].tobytes()])
    return Column(start, len(body), rows, text_bytes), body


def unpack(column: Column, body: memoryview) -> pa.LargeStringArray:
    """Decode what :func:`pack` made."""
    blocks = -(-column.rows // BLOCK)
    raw = np.frombuffer(body, np.uint8)
    widths = raw[TABLE : TABLE + blocks]
    # Where each packed block begins, and where the last one ends.
    starts = TABLE + blocks + np.concatenate([[0], np.cumsum(128 * widths.astype(np.int64))])
    counts = np.full(blocks, BLOCK)
    counts[-1:] = column.rows - BLOCK * (blocks - 1)
    lengths = np.empty(column.rows, np.uint32)
    bitpack.unpack_blocks(raw, starts[:-1], widths, counts, lengths)
    ends = np.zeros(column.rows + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    text, offsets = np.empty(column.text_bytes, np.uint8), np.empty(column.rows + 1, np.int64)
    fsst.decode(body[:TABLE], raw[starts[-1] :], ends, offsets, text)
    return pa.LargeStringArray.from_buffers(column.rows, pa.py_buffer(offsets), pa.py_buffer(text))
