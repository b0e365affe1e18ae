"""Dictionaries: columns of few distinct values become indices into these; when to do that, and the doing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.encodings import block
from lancelet.encodings.bitpacking import BLOCK
from lancelet.encodings.choose import (
    SMALL_SAMPLE,
    DictionaryLimits,
    FixedStatistics,
    dictionary_limits,
    index_bytes,
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
# Runs of at least this many values, on the average, are hashed once each.
_WORTH_RUNS = 4
# Reading through a dictionary takes longer, so that it must save a little at least: a part, and some bytes.
_CLEARLY_LESS, _LEAST_SAVED = 0.95, 64


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


def index(values: Values, offset_bits: int, knobs: Knobs, statistics: FixedStatistics | None) -> Indexed | None:
    """The values as indices if that takes less room than any other form, else None.

    A sample speaks first: most columns that have no use for a dictionary are told by it. ``statistics`` belong to
    values of fixed width.
    """
    array = _hashable(values)
    if array is None:
        return None
    limits = dictionary_limits(values.count, _raw_bytes(values, offset_bits), knobs)
    if limits is None:
        return None
    bounds = sample_bounds(values.count)
    sample = array.slice(0, SMALL_SAMPLE)
    if bounds is not None:
        sample = pa.concat_arrays([array.slice(start, end - start) for start, end in bounds.tolist()])
    seen = len(sample.unique())
    if sample_refuses(seen, len(sample), values.count, limits):
        return None
    best: float = limits.total_bytes
    if statistics is not None:
        plain = knobs.compression == "none" or knobs.structure == "fullzip"
        otherwise = statistics.plain_bytes if plain else statistics.least_bytes
        best = min(best, _CLEARLY_LESS * otherwise, otherwise - _LEAST_SAVED)
        if index_bytes(values.count, statistics.runs, seen) + seen >= best:
            return None
    return _build(array, values, offset_bits, limits, best, statistics)


def _build(
    array: pa.Array,
    values: Values,
    offset_bits: int,
    limits: DictionaryLimits,
    best: float,
    statistics: FixedStatistics | None,
) -> Indexed | None:
    positions, items = _distinct(array, values, statistics)
    item_bytes = len(items.data) if isinstance(items, Variable) else 0
    if items.count > limits.items or (limits.item_bytes is not None and item_bytes > limits.item_bytes):
        return None
    kind = next(kind for kind in _INDEX_TYPES if items.count - 1 <= np.iinfo(kind).max)
    indices = Fixed(8 * np.dtype(kind).itemsize, values.count, positions.astype(kind).view(np.uint8))
    found = statistics.runs if statistics is not None else runs.count_runs(indices.data, indices.bits // 8)
    if _item_bytes(items, offset_bits) + index_bytes(values.count, found, items.count) >= best:
        return None
    return Indexed(indices, items)


def _distinct(array: pa.Array, values: Values, statistics: FixedStatistics | None) -> tuple[np.ndarray, Values]:
    """Each value's place among the distinct ones, and these. Where values repeat in runs, one of each run is hashed."""
    if not isinstance(values, Fixed) or statistics is None:
        encoded = array.dictionary_encode()
        return np.frombuffer(encoded.indices.buffers()[1], np.int32, values.count), from_arrow(encoded.dictionary)
    width, lengths = values.bits // 8, None
    if statistics.runs * _WORTH_RUNS <= values.count:
        heads, lengths, _ = runs.find_runs(values.data, width, np.array([0, values.count]))
        array = pa.Array.from_buffers(array.type, len(lengths), [None, pa.py_buffer(heads)])
    encoded = array.dictionary_encode()
    positions = np.frombuffer(encoded.indices.buffers()[1], np.int32, len(array))
    items = np.frombuffer(encoded.dictionary.buffers()[1], np.uint8, len(encoded.dictionary) * width)
    if lengths is not None:
        positions = np.repeat(positions, lengths)
    return positions, Fixed(values.bits, len(encoded.dictionary), items)


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


def _item_bytes(items: Values, offset_bits: int) -> int:
    """About what the dictionary itself takes: integers are packed there too."""
    raw = _raw_bytes(items, offset_bits)
    if isinstance(items, Fixed) and items.bits == 64 and items.count:
        # In whole blocks.
        return min(raw, -(-items.count // BLOCK) * BLOCK * int(items.words().max()).bit_length() // 8)
    return raw
