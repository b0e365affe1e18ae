"""Values: what an encoding holds once types and nulls are set aside, and their way to and from Arrow.

Arrow's types fall into few physical shapes. An encoding sees only the shape; a column's logical type, its nulls and
its lists are put back around it afterwards (``nested.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.config import default_options
from lancelet.encodings.budget import check_budget
from lancelet.errors import Corrupt, Unsupported
from lancelet.kernels import gather, utf8

__all__ = [
    "Bytes",
    "Fixed",
    "FixedList",
    "Indexed",
    "Packed",
    "Values",
    "Variable",
    "fixed_bits",
    "from_arrow",
    "take",
    "to_arrow",
]

Bytes = npt.NDArray[np.uint8]
# Values of up to this many bytes together are taken without counting.
_FEW_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class Fixed:
    """``count`` values of ``bits`` each: whole bytes back to back, or single bits, least significant first."""

    bits: int
    count: int
    data: Bytes

    def words(self) -> npt.NDArray[np.unsignedinteger]:
        """The values as unsigned integers; only for 8, 16, 32 and 64 bits."""
        return self.data.view(f"u{self.bits // 8}")[: self.count]


@dataclass(frozen=True, slots=True)
class Variable:
    """Byte strings: ``count + 1`` offsets (int32 or int64) into ``data``."""

    count: int
    offsets: npt.NDArray[np.signedinteger]
    data: Bytes


@dataclass(frozen=True, slots=True)
class FixedList:
    """``count`` lists of ``dimension`` items each; nulls of the lists are levels, nulls of the items stand here."""

    dimension: int
    count: int
    items: Values
    #: One bit an item, least significant first; None when no item can be null.
    validity: Bytes | None = None


@dataclass(frozen=True, slots=True)
class Packed:
    """``count`` structs stored as one value each; their fields never null."""

    count: int
    children: tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class Indexed:
    """``keys`` into ``items``: what an Arrow dictionary column is."""

    keys: Fixed
    items: Values

    @property
    def count(self) -> int:
        """Values, each a key."""
        return self.keys.count


Values = Fixed | Variable | FixedList | Packed | Indexed


def fixed_bits(kind: pa.DataType) -> int | None:
    """Bits of one value of a fixed-width type, or None for any other type.

    >>> fixed_bits(pa.bool_()), fixed_bits(pa.decimal128(10, 2)), fixed_bits(pa.string())
    (1, 128, None)
    """
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pat.is_nested(kind) or pat.is_dictionary(kind) or pat.is_null(kind):
        return None
    try:
        return int(kind.bit_width)
    except ValueError:
        return None


def to_arrow(values: Values, kind: pa.DataType, validity: Bytes | None = None, null_count: int = 0) -> pa.Array:
    """An Arrow array over the same memory; copies only where offsets must change width."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, to_arrow(values, kind.storage_type, validity, null_count))
    mask = None if validity is None or not null_count else pa.py_buffer(validity)
    if pat.is_dictionary(kind):
        return _dictionary(values, kind, validity, null_count)
    match values:
        case Fixed(bits, count, data):
            expected = fixed_bits(kind)
            if expected != bits:
                raise Corrupt(f"page holds values of {bits} bits, expected {expected} for type {kind}")
            return pa.Array.from_buffers(kind, count, [mask, pa.py_buffer(data)], null_count)
        case Variable(count, offsets, data):
            buffers = [mask, pa.py_buffer(_offsets_for(kind, offsets)), pa.py_buffer(data)]
            array = pa.Array.from_buffers(kind, count, buffers, null_count)
            if (pat.is_string(kind) or pat.is_large_string(kind)) and utf8.find_invalid(data, offsets) >= 0:
                _check_text(array)
            return array
        case FixedList(dimension, count, items, item_validity):
            if not pat.is_fixed_size_list(kind) or kind.list_size != dimension:
                raise Corrupt(f"page holds lists of {dimension} items, expected type {kind}")
            nulls = 0 if item_validity is None else _null_count(item_validity, count * dimension)
            child = to_arrow(items, kind.value_type, item_validity, nulls)
            return pa.Array.from_buffers(kind, count, [mask], null_count, children=[child])
        case Packed(count, children):
            if not pat.is_struct(kind) or kind.num_fields != len(children):
                raise Corrupt(f"page holds structs of {len(children)} fields, expected type {kind}")
            arrays = [to_arrow(child, kind.field(at).type) for at, child in enumerate(children)]
            return pa.Array.from_buffers(kind, count, [mask], null_count, children=arrays)


def _check_text(array: pa.Array) -> None:
    """Corrupt where a value that is not null is not UTF-8, which whoever reads Arrow strings takes for granted."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Corrupt(f"page holds strings that are not text: {error}") from None


def _dictionary(values: Values, kind: pa.DictionaryType, validity: Bytes | None, null_count: int) -> pa.Array:
    if not isinstance(values, Indexed):
        return to_arrow(values, kind.value_type, validity, null_count).dictionary_encode().cast(kind)
    _check_indices(values.keys.words(), values.items.count)
    keys = to_arrow(values.keys, _KEY_TYPES[values.keys.bits], validity, null_count)
    try:
        return pa.DictionaryArray.from_arrays(
            keys.cast(kind.index_type), to_arrow(values.items, kind.value_type), ordered=kind.ordered, safe=False
        )
    except pa.ArrowInvalid as error:
        raise Corrupt(f"dictionary keys do not fit type {kind}: {error}") from None


_KEY_TYPES = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


def _check_indices(indices: npt.NDArray[np.integer], count: int) -> None:
    if len(indices) and (int(indices.max()) >= count or int(indices.min()) < 0):
        raise Corrupt(f"index {int(indices.max()):,} into {count:,} values")


def _offsets_for(kind: pa.DataType, offsets: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    if pat.is_string(kind) or pat.is_binary(kind):
        if offsets.dtype == np.int64:
            if len(offsets) and offsets[-1] > np.iinfo(np.int32).max:
                raise Unsupported(
                    f"{offsets[-1]:,} bytes in one batch exceed what type {kind} can address",
                    hint="read fewer rows at a time, or store the column as large_string / large_binary",
                )
            return offsets.astype(np.int32)
        return offsets
    if pat.is_large_string(kind) or pat.is_large_binary(kind):
        return offsets.astype(np.int64, copy=False)
    raise Corrupt(f"page holds values of variable width, expected type {kind}")


def _null_count(validity: Bytes, count: int) -> int:
    return int(pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(validity)]).false_count)


def from_arrow(array: pa.Array) -> Values:
    """The physical values of an array, with no regard to its own nulls; copies only what a slice makes uneven."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind, count = array.type, len(array)
    bits = fixed_bits(kind)
    if bits is not None:
        return Fixed(bits, count, _fixed_bytes(array, bits))
    if pat.is_fixed_size_list(kind):
        items = array.values.slice(array.offset * kind.list_size, count * kind.list_size)
        validity = _bitmap(items) if items.null_count else None
        return FixedList(kind.list_size, count, from_arrow(items), validity)
    if pat.is_struct(kind):
        return Packed(count, tuple(from_arrow(array.field(at)) for at in range(kind.num_fields)))
    if pat.is_string(kind) or pat.is_binary(kind):
        return _variable(array, np.dtype(np.int32))
    if pat.is_large_string(kind) or pat.is_large_binary(kind):
        return _variable(array, np.dtype(np.int64))
    raise Unsupported(f"type {kind} has no physical form of its own")


def _fixed_bytes(array: pa.Array, bits: int) -> Bytes:
    buffer, count = array.buffers()[1], len(array)
    if buffer is None or not count:
        return np.zeros(0, np.uint8)
    if bits == 1:
        return _realigned(buffer, array.offset, count)
    width = bits // 8
    return np.frombuffer(buffer, np.uint8, count * width, array.offset * width)


def _realigned(buffer: pa.Buffer, offset: int, count: int) -> Bytes:
    """``count`` bits from bit ``offset`` on, moved to start at bit 0, with the bits behind the last one zero."""
    data = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + count + 7) // 8]
    if offset % 8 == 0 and count % 8 == 0:
        return data
    bits = np.unpackbits(data, bitorder="little")[offset % 8 : offset % 8 + count]
    return np.packbits(bits, bitorder="little")


def _bitmap(array: pa.Array) -> Bytes:
    return _realigned(array.buffers()[0], array.offset, len(array))


def _variable(array: pa.Array, dtype: np.dtype[np.signedinteger]) -> Variable:
    _, offset_buffer, data_buffer = array.buffers()
    count = len(array)
    if not count:
        return Variable(0, np.zeros(1, dtype), np.zeros(0, np.uint8))
    offsets = np.frombuffer(offset_buffer, dtype, count + 1, array.offset * dtype.itemsize)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)[first:last]
    return Variable(count, offsets - dtype.type(first) if first else offsets, data)


def take(values: Values, indices: npt.NDArray[np.integer]) -> Values:
    """The values at ``indices``, which are checked against the count."""
    _check_indices(indices, values.count)
    match values:
        case Indexed(keys, items):
            taken = take(keys, indices)
            return Indexed(taken, items) if isinstance(taken, Fixed) else taken
        case Fixed(1, count, data):
            return Fixed(1, len(indices), _take_bits(data, count, indices))
        case Fixed(bits, count, data):
            if bits in (8, 16, 32, 64):
                return Fixed(bits, len(indices), values.words()[indices].view(np.uint8))
            out = np.empty(len(indices) * (bits // 8), np.uint8)
            gather.take_fixed(data[: count * (bits // 8)], bits // 8, indices.astype(np.int64, copy=False), out)
            return Fixed(bits, len(indices), out)
        case FixedList(dimension, _, items, validity):
            below = (indices[:, None] * dimension + np.arange(dimension)).reshape(-1)
            chosen = None if validity is None else _take_bits(validity, items.count, below)
            return FixedList(dimension, len(indices), take(items, below), chosen)
        case Packed(_, children):
            return Packed(len(indices), tuple(take(child, indices) for child in children))
        case Variable(_, offsets, data):
            offsets = _wide_enough(offsets, indices)
            offsets, data = gather.take_variable(offsets, data, indices.astype(np.int64, copy=False))
            return Variable(len(indices), offsets, data)


def _wide_enough(
    offsets: npt.NDArray[np.signedinteger], indices: npt.NDArray[np.integer]
) -> npt.NDArray[np.signedinteger]:
    """Offsets that reach as far as the values taken do: a few long items may be asked for any number of times."""
    lengths = np.diff(offsets)
    if len(indices) * int(lengths.max(initial=0)) <= min(_FEW_BYTES, default_options().memory_budget):
        return offsets
    total = int(lengths[indices].sum(dtype=np.int64))
    check_budget(total)
    return offsets if total <= np.iinfo(np.int32).max else offsets.astype(np.int64, copy=False)


def _take_bits(bits: Bytes, count: int, indices: npt.NDArray[np.integer]) -> Bytes:
    return np.packbits(np.unpackbits(bits, count=count, bitorder="little")[indices], bitorder="little")
