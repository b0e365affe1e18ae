"""Bloom filters over values: how they are hashed, how large a filter must be, and which filters may hold a value.

A value is hashed by XXH64 as the bytes that Arrow stores it in: numbers in their own width, strings as UTF-8.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.kernels import bloom, hashing
from lancelet.rows.addresses import UInt64s

__all__ = ["filter_bytes", "hash_values", "hashable", "may_hold", "new_filter"]

_SMALLEST, _LARGEST = 5, 27
_WORDS, _WORD_BITS, _BLOCK_BITS = 8, 32, 256
#: Terms of the sum that matter.
_TERMS = 750


def hashable(kind: pa.DataType) -> bool:
    """Whether values of a type are hashed by these filters.

    >>> hashable(pa.int8()), hashable(pa.bool_()), hashable(pa.float16())
    (True, False, False)
    """
    if pat.is_floating(kind):
        return not pat.is_float16(kind)
    if pat.is_fixed_size_binary(kind) or pat.is_duration(kind):
        return False
    text = pat.is_string(kind) or pat.is_large_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind)
    return bool(text or pat.is_integer(kind) or pat.is_temporal(kind))


def hash_values(values: pa.Array) -> UInt64s:
    """The hash of each value, none of which is null.

    >>> hex(int(hash_values(pa.array(["abc"]))[0]))
    '0x44bc2cf5ad770999'
    """
    hashes = np.zeros(len(values), np.uint64)
    _, *buffers = values.buffers()
    start, count = values.offset, len(values)
    if len(buffers) == 2:
        large = pat.is_large_string(values.type) or pat.is_large_binary(values.type)
        offsets = np.frombuffer(buffers[0], np.int64 if large else np.int32, start + count + 1)[start:]
        hashing.hash_bytes(offsets.astype(np.int64), _bytes(buffers[1]), hashes)
        return hashes
    width = values.type.bit_width // 8
    data = _bytes(buffers[0])[start * width : (start + count) * width]
    if width == 8:
        hashing.hash_words(data.view(np.uint64), hashes)
    else:
        hashing.hash_bytes(np.arange(count + 1, dtype=np.int64) * width, data, hashes)
    return hashes


def _bytes(buffer: pa.Buffer | None) -> npt.NDArray[np.uint8]:
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)[:0]


def filter_bytes(items: int, probability: float) -> int:
    """The bytes of a filter that takes so many different values for ones it holds, at most, with a probability.

    >>> filter_bytes(8192, 0.00057), filter_bytes(1, 0.5)
    (32768, 32)
    """
    low, high = 0, 64
    while high > low + 1:
        middle = (high + low) // 2
        if _false_positives(items, middle) <= probability:
            high = middle
        else:
            low = middle
    return int(1 << min(max(high, _SMALLEST), _LARGEST))


def _false_positives(items: int, log_bytes: int) -> float:
    """How often a value is taken for one that is there: the values of a block are Poisson-distributed."""
    bits = 8.0 * 2.0**log_bytes
    if items / bits > 2:
        return 1.0
    mean = _BLOCK_BITS * items / bits
    total = 0.0
    # From the rare cases to the frequent ones, which loses the least.
    for count in reversed(range(_TERMS)):
        likelihood = count * math.log(mean) - mean - math.lgamma(count + 1)
        clash = 1.0 - (1.0 - 1.0 / _WORD_BITS) ** count
        if clash > 0:
            total += math.exp(likelihood + _WORDS * math.log(clash))
    return min(total, 1.0)


def new_filter(values: pa.Array, size: int) -> bytes:
    """A filter of so many bytes over values; nulls are passed over."""
    words = np.zeros(size // 4, np.uint32)
    bloom.add_hashes(hash_values(values.drop_null() if values.null_count else values), words)
    return words.tobytes()


def may_hold(filters: npt.NDArray[np.uint32], hashes: UInt64s) -> npt.NDArray[np.bool_]:
    """Which of some filters, a row of words for each, may hold any of the hashes."""
    blocks = filters.reshape(len(filters), -1, _WORDS)
    found = np.zeros(len(filters), np.bool_)
    numbers, bits = bloom.block_of(hashes, blocks.shape[1]), bloom.bits_of(hashes)
    for number, mask in zip(numbers.tolist(), bits, strict=True):
        found |= ((blocks[:, number] & mask) == mask).all(axis=1)
    return found
