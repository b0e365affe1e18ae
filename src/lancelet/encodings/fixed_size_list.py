"""Fixed-size lists inside mini-blocks: their items side by side, before them a bitmap where items can be null."""

from __future__ import annotations

from lancelet.encodings.chunks import Chunks, Ints, join_bits
from lancelet.encodings.encoded import EncodedChunks, Pieces, bit_pieces, even_counts, even_pieces, values_per_chunk
from lancelet.encodings.values import Bytes, Fixed, FixedList, Values
from lancelet.errors import Unsupported
from lancelet.format.compressions import Compression, FixedSizeList, Flat

__all__ = ["encode", "row_bits", "split_validity"]


def split_validity(dimension: int, has_validity: bool, chunks: Chunks) -> tuple[Chunks, Bytes | None]:
    """The chunks as chunks of items, and the bitmap over these items."""
    items = chunks.with_counts(chunks.counts * dimension)
    if not has_validity:
        return items, None
    return items.without_first(), join_bits(items, 0)


def row_bits(values: Values) -> int:
    """Bits that one list takes, bitmaps of its items included."""
    match values:
        case FixedList(dimension, _, items, validity):
            return dimension * (row_bits(items) + (validity is not None))
        case Fixed(bits):
            return bits
    raise Unsupported(f"fixed-size lists of {type(values).__name__.lower()} values")


def encode(values: FixedList) -> EncodedChunks:
    """Whole lists in each chunk, whatever their size; never compressed."""
    counts = even_counts(values.count, values_per_chunk(row_bits(values)))
    encoding, buffers = _encode(values, counts)
    return EncodedChunks(encoding, counts, tuple(buffers))


def _encode(values: Values, counts: Ints) -> tuple[Compression, list[Pieces]]:
    match values:
        case Fixed(1, _, data):
            return Flat(1), [bit_pieces(data, counts)]
        case Fixed(bits, _, data):
            return Flat(bits), [even_pieces(data, counts, bits // 8)]
        case FixedList(dimension, _, items, validity):
            inner, buffers = _encode(items, counts * dimension)
            bitmaps = [] if validity is None else [bit_pieces(validity, counts * dimension)]
            return FixedSizeList(dimension, inner, validity is not None), [*bitmaps, *buffers]
    raise Unsupported(f"fixed-size lists of {type(values).__name__.lower()} values")
