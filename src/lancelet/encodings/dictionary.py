"""Dictionaries: columns of few distinct values become indices into these; when to do that, and the doing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.encodings import block
from lancelet.encodings.choose import (
    DictionaryLimits,
    dictionary_limits,
    fixed_statistics,
    index_bits,
    sample_bounds,
    sample_refuses,
)
from lancelet.encodings.knobs import Knobs
from lancelet.encodings.values import Bytes, Fixed, Values, Variable, from_arrow
from lancelet.format.compressions import BufferCompression, Compression, Scheme
from lancelet.kernels import runs

__all__ = ["Indexed", "StoredDictionary", "encode", "index"]

_SCHEMES = {"lz4": Scheme.LZ4, "zstd": Scheme.ZSTD}
# Indices of these widths can be looked up.
_INDEX_TYPES = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True, slots=True)
class Indexed:
    """Distinct values in the order in which they come first, and for each value its place among them."""

    indices: Fixed
    items: Values


@dataclass(frozen=True, slots=True)
class StoredDictionary:
    """A dictionary as a page holds it."""

    encoding: Compression
    data: Bytes
    count: int


def encode(items: Values, offset_bits: int, knobs: Knobs) -> StoredDictionary:
    """The distinct values in the smallest form."""
    scheme = _SCHEMES.get(knobs.dictionary_compression)
    compression = None if scheme is None else BufferCompression(scheme, knobs.dictionary_compression_level)
    return StoredDictionary(*block.encode(items, offset_bits, compression), items.count)


def index(values: Values, offset_bits: int, knobs: Knobs) -> Indexed | None:
    """The values as indices if that takes less room than any other form, else None.

    A sample speaks first: most columns that have no use for a dictionary are told by it.
    """
    array = _hashable(values)
    if array is None:
        return None
    raw = _raw_bytes(values, offset_bits)
    limits = dictionary_limits(values.count, raw, knobs)
    if limits is None:
        return None
    bounds = sample_bounds(values.count)
    seen = 1
    if bounds is not None:
        sample = pa.concat_arrays([array.slice(start, end - start) for start, end in bounds.tolist()])
        seen = len(sample.unique())
        if sample_refuses(seen, len(sample), values.count, limits):
            return None
    best = limits.total_bytes
    if isinstance(values, Fixed):
        best = min(best, _least_bytes(values))
        if _index_bytes(values, seen) >= best:
            return None
    return _build(array, values, offset_bits, limits, best)


def _build(array: pa.Array, values: Values, offset_bits: int, limits: DictionaryLimits, best: int) -> Indexed | None:
    encoded = array.dictionary_encode()
    items = from_arrow(encoded.dictionary)
    if isinstance(values, Fixed) and isinstance(items, Fixed):
        items = Fixed(values.bits, items.count, items.data)
    item_bytes = len(items.data) if isinstance(items, Variable) else 0
    if items.count > limits.items or (limits.item_bytes is not None and item_bytes > limits.item_bytes):
        return None
    positions = np.frombuffer(encoded.indices.buffers()[1], np.int32, values.count)
    kind = next(kind for kind in _INDEX_TYPES if items.count - 1 <= np.iinfo(kind).max)
    indices = Fixed(8 * np.dtype(kind).itemsize, values.count, positions.astype(kind).view(np.uint8))
    if _raw_bytes(items, offset_bits) + _index_bytes(indices, items.count) >= best:
        return None
    return Indexed(indices, items)


def _hashable(values: Values) -> pa.Array | None:
    """The values as an Arrow array that tells equal bytes, for those widths for which a dictionary may pay."""
    match values:
        case Fixed(64, count, data):
            return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(data)])
        case Fixed(128, count, data):
            return pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(data)])
        case Variable(count, offsets, data):
            kind = pa.binary() if offsets.itemsize == 4 else pa.large_binary()
            return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return None


def _raw_bytes(values: Values, offset_bits: int) -> int:
    match values:
        case Fixed(bits, count):
            return count * bits // 8
        case Variable(count, _, data):
            return len(data) + (count + 1) * offset_bits // 8
    return 0


def _least_bytes(values: Fixed) -> int:
    return fixed_statistics(values).least_bytes


def _index_bytes(values: Fixed, items: int) -> int:
    """About what indices take, packed or as runs; ``values`` has the same runs as they."""
    packed = values.count * index_bits(items) // 8
    width = 1 if items <= 1 << 8 else 2 if items <= 1 << 16 else 4
    if values.bits not in (8, 16, 32, 64, 128):
        return packed
    return min(packed, runs.count_runs(values.data, values.bits // 8) * (width + 1))
