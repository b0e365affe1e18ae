"""Array encodings of 2.0: a page as a tree of frozen dataclasses whose leaves name buffers, and column encodings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "AllNulls",
    "ArrayEncoding",
    "Binary",
    "Bitpacked",
    "BitpackedForNonNeg",
    "BlobColumn",
    "Buffer",
    "BufferHome",
    "ColumnEncoding",
    "Compression",
    "Dictionary",
    "FixedSizeBinary",
    "FixedSizeList",
    "Flat",
    "Fsst",
    "List",
    "NoNulls",
    "PackedStruct",
    "SimpleStruct",
    "SomeNulls",
    "ValuesColumn",
    "ZoneIndexColumn",
]


class BufferHome(IntEnum):
    """Whose list of buffers a number counts in."""

    PAGE = 0
    COLUMN = 1
    FILE = 2


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer, by its number."""

    index: int
    home: BufferHome = BufferHome.PAGE


@dataclass(frozen=True, slots=True)
class Compression:
    """A general compressor (``"zstd"``, ``"lz4"``) over one buffer."""

    scheme: str
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Flat:
    """Values of one width, side by side."""

    bits_per_value: int
    buffer: Buffer
    compression: Compression | None = None


@dataclass(frozen=True, slots=True)
class NoNulls:
    """Every value is there."""

    values: ArrayEncoding


@dataclass(frozen=True, slots=True)
class SomeNulls:
    """A bitmap says which values are there; absent ones take up room all the same."""

    validity: ArrayEncoding
    values: ArrayEncoding


@dataclass(frozen=True, slots=True)
class AllNulls:
    """No value is there; no buffer either."""


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Lists of one size: their items, one after another."""

    dimension: int
    items: ArrayEncoding
    has_validity: bool = False


@dataclass(frozen=True, slots=True)
class List:
    """The ends of lists whose items are the next column. The end of a null is raised by the adjustment."""

    offsets: ArrayEncoding
    null_offset_adjustment: int
    num_items: int


@dataclass(frozen=True, slots=True)
class SimpleStruct:
    """A struct whose children are the next columns; it has no data of its own."""


@dataclass(frozen=True, slots=True)
class Binary:
    """The ends of values within ``data``. The end of a null is raised by the adjustment."""

    indices: ArrayEncoding
    data: ArrayEncoding
    null_adjustment: int


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Indices into items."""

    indices: ArrayEncoding
    items: ArrayEncoding
    num_dictionary_items: int


@dataclass(frozen=True, slots=True)
class Fsst:
    """Binary values whose frequent pieces are replaced by symbols."""

    binary: ArrayEncoding
    symbol_table: bytes


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Rows of fixed-width children side by side in one buffer."""

    inner: tuple[ArrayEncoding, ...]
    buffer: Buffer


@dataclass(frozen=True, slots=True)
class Bitpacked:
    """Integers cut to fewer bits each; ``signed`` ones are extended by their highest bit."""

    compressed_bits_per_value: int
    uncompressed_bits_per_value: int
    buffer: Buffer
    signed: bool = False


@dataclass(frozen=True, slots=True)
class BitpackedForNonNeg:
    """Integers cut to fewer bits in FastLanes order, in blocks of 1,024."""

    compressed_bits_per_value: int
    uncompressed_bits_per_value: int
    buffer: Buffer


@dataclass(frozen=True, slots=True)
class FixedSizeBinary:
    """Values of a variable-width type that all have the same number of bytes, and so need no offsets."""

    data: ArrayEncoding
    byte_width: int


ArrayEncoding = (
    Flat
    | NoNulls
    | SomeNulls
    | AllNulls
    | FixedSizeList
    | List
    | SimpleStruct
    | Binary
    | Dictionary
    | Fsst
    | PackedStruct
    | Bitpacked
    | BitpackedForNonNeg
    | FixedSizeBinary
)


@dataclass(frozen=True, slots=True)
class ValuesColumn:
    """An ordinary column."""


@dataclass(frozen=True, slots=True)
class BlobColumn:
    """A 2.0 column whose pages hold positions and sizes of values that lie elsewhere in the file."""

    inner: ColumnEncoding


@dataclass(frozen=True, slots=True)
class ZoneIndexColumn:
    """A column with least and greatest values per zone of rows in one buffer."""

    rows_per_zone: int
    zone_map: Buffer
    inner: ColumnEncoding


ColumnEncoding = ValuesColumn | BlobColumn | ZoneIndexColumn
