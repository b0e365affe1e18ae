"""Pages of 2.0: some rows of a column as an Arrow array, whatever the encoding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.budget import check_budget, nulls, row_bits
from lancelet.encodings.v2_0 import binary, bitpacked, dictionary, fixed_size_list, flat
from lancelet.encodings.v2_0.buffers import Decoded, PageBuffers, Pending, Rows, count_of
from lancelet.encodings.v2_0.steps import Steps, both
from lancelet.encodings.values import Bytes, Fixed, from_arrow, to_arrow
from lancelet.errors import Corrupt
from lancelet.format.arrays import (
    AllNulls,
    ArrayEncoding,
    Binary,
    Bitpacked,
    BitpackedForNonNeg,
    Dictionary,
    FixedSizeBinary,
    FixedSizeList,
    Flat,
    Fsst,
    NoNulls,
    PackedStruct,
    SimpleStruct,
    SomeNulls,
)

__all__ = ["read_page", "read_values"]


def read_page(
    encoding: ArrayEncoding, kind: pa.DataType, source: PageBuffers, rows: Rows
) -> Steps[Callable[[], pa.Array]]:
    """Some rows of a page whose column is a field by itself."""
    count = count_of(rows)
    if isinstance(encoding, SimpleStruct) and pat.is_struct(kind) and not kind.num_fields:
        return lambda: pa.Array.from_buffers(kind, count, [None])
    if pat.is_null(kind):
        return lambda: nulls(count, kind)
    if pat.is_dictionary(kind):
        if not isinstance(encoding, Dictionary):
            raise Corrupt(f"page of encoding {type(encoding).__name__}, expected a dictionary for type {kind}")
        return (yield from dictionary.read_arrow(encoding, kind, source, rows, read_values))
    pending = yield from read_values(encoding, kind, source, rows)

    def finish() -> pa.Array:
        found = pending()
        return to_arrow(found.values, kind, found.validity, -1)

    return finish


def read_values(encoding: ArrayEncoding, kind: pa.DataType, source: PageBuffers, rows: Rows) -> Steps[Pending]:
    """Some rows of an encoding, whose values are of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    match encoding:
        case Flat():
            return (yield from flat.read(encoding, source, rows))
        case NoNulls(values):
            return (yield from read_values(values, kind, source, rows))
        case SomeNulls():
            return (yield from _read_nullable(encoding, kind, source, rows))
        case AllNulls():
            return _nothing(kind, count_of(rows))
        case Binary():
            return (yield from binary.read(encoding, source, rows, read_values))
        case Fsst():
            return (yield from binary.read_fsst(encoding, source, rows, read_values))
        case FixedSizeBinary():
            return (yield from binary.read_fixed_size(encoding, source, rows, read_values))
        case Dictionary():
            return (yield from dictionary.read_strings(encoding, kind, source, rows, read_values))
        case FixedSizeList():
            return (yield from fixed_size_list.read(encoding, kind, source, rows, read_values))
        case PackedStruct():
            return (yield from fixed_size_list.read_packed(encoding, kind, source, rows))
        case Bitpacked():
            return (yield from bitpacked.read(encoding, source, rows))
        case BitpackedForNonNeg():
            return (yield from bitpacked.read_blocks(encoding, source, rows))
    raise Corrupt(f"encoding {type(encoding).__name__} holds no values of type {kind}")


def _nothing(kind: pa.DataType, count: int) -> Pending:
    """Nulls alone; nothing in the file says that there is room for so many."""
    check_budget(count * row_bits(kind) // 8)

    def finish() -> Decoded:
        return Decoded(from_arrow(pa.nulls(count, kind)), np.zeros((count + 7) // 8, np.uint8))

    return finish


def _read_nullable(encoding: SomeNulls, kind: pa.DataType, source: PageBuffers, rows: Rows) -> Steps[Pending]:
    validity, values = yield from both(
        read_values(encoding.validity, pa.bool_(), source, rows), read_values(encoding.values, kind, source, rows)
    )

    def finish() -> Decoded:
        bits, found = validity().values, values()
        if not isinstance(bits, Fixed) or bits.bits != 1:
            raise Corrupt("validity is not stored as single bits")
        return Decoded(found.values, _and(bits.data, found.validity))

    return finish


def _and(one: Bytes, other: Bytes | None) -> Bytes:
    return one if other is None else one & other[: len(one)]
