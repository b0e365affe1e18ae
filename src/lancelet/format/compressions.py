"""Compressive encodings of 2.1 and 2.2: how the values of a page become buffers, as a tree of frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "BufferCompression",
    "ByteStreamSplit",
    "Compression",
    "Constant",
    "Dictionary",
    "FixedSizeList",
    "Flat",
    "Fsst",
    "General",
    "InlineBitpacking",
    "OutOfLineBitpacking",
    "PackedField",
    "PackedStruct",
    "Rle",
    "Scheme",
    "Variable",
    "VariablePackedStruct",
]


class Scheme(IntEnum):
    """A general compressor. Its output is prefixed by the size of its input: u32 for LZ4, u64 for zstd."""

    LZ4 = 1
    ZSTD = 2


@dataclass(frozen=True, slots=True)
class BufferCompression:
    """A general compressor over one whole buffer; ``level`` is informative."""

    scheme: Scheme
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Flat:
    """Values of one width, side by side."""

    bits_per_value: int
    data: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """Values of varying length: offsets, then bytes."""

    offsets: Compression
    values: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """One value, held here."""

    value: bytes | None = None


@dataclass(frozen=True, slots=True)
class OutOfLineBitpacking:
    """Values packed to one width for the whole buffer; the width is that of ``values``, which is Flat."""

    uncompressed_bits_per_value: int
    values: Compression


@dataclass(frozen=True, slots=True)
class InlineBitpacking:
    """Blocks of 1,024 values, each preceded by the width it is packed to."""

    uncompressed_bits_per_value: int
    values: BufferCompression | None = None


@dataclass(frozen=True, slots=True)
class Fsst:
    """Strings whose frequent pieces are replaced by the symbols of one table."""

    symbol_table: bytes
    values: Compression


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Indices into items. Pages name their dictionary in the layout instead; this form is not written."""

    indices: Compression
    items: Compression
    num_dictionary_items: int


@dataclass(frozen=True, slots=True)
class Rle:
    """Values and how often each is repeated."""

    values: Compression
    run_lengths: Compression


@dataclass(frozen=True, slots=True)
class ByteStreamSplit:
    """First bytes of all values, then second bytes, and so on."""

    values: Compression


@dataclass(frozen=True, slots=True)
class General:
    """A general compressor over what ``values`` yields."""

    compression: BufferCompression
    values: Compression


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Lists of one size, flattened; ``has_validity`` adds a bitmap over the items before the values."""

    items_per_value: int
    values: Compression
    has_validity: bool = False


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Rows of fixed-width children, side by side."""

    bits_per_value: tuple[int, ...]
    values: Compression


@dataclass(frozen=True, slots=True)
class PackedField:
    """One child of a variable packed struct: exactly one of the two widths is set."""

    value: Compression
    bits_per_value: int | None = None
    bits_per_length: int | None = None


@dataclass(frozen=True, slots=True)
class VariablePackedStruct:
    """Rows of children that are compressed one by one, some of varying length."""

    fields: tuple[PackedField, ...]


Compression = (
    Flat
    | Variable
    | Constant
    | OutOfLineBitpacking
    | InlineBitpacking
    | Fsst
    | Dictionary
    | Rle
    | ByteStreamSplit
    | General
    | FixedSizeList
    | PackedStruct
    | VariablePackedStruct
)
