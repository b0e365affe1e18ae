"""Key filters: which primary keys a merge has put in, in few bits, so that merges at the same time notice one another.

A split block Bloom filter of 32 KiB, whatever the number of keys, since only filters of one size can be compared:
each key is hashed by XXH64, the upper half of the hash chooses a block of eight 32-bit words, the lower half a bit of
each word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.format.operations import BloomKeys, KeyFilter
from lancelet.kernels import hashing
from lancelet.ops.join.codes import codes_of, is_exact, plain, present
from lancelet.rows.addresses import UInt64s

__all__ = ["KeyFilterBuilder"]

#: The size follows from these, which transactions state.
_ITEMS, _PROBABILITY = 8192, 0.00057
_BYTES = 32 * 2**10
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


class KeyFilterBuilder:
    """Takes keys in, and tells the filter that holds them.

    >>> builder = KeyFilterBuilder((0,))
    >>> builder.add([pa.array([1, 2, 3])])
    >>> found = builder.build()
    >>> found.keys.num_bits, sum(byte.bit_count() for byte in found.keys.bitmap)
    (262144, 24)
    """

    def __init__(self, field_ids: Sequence[int]) -> None:
        self._field_ids = tuple(field_ids)
        self._bits = np.zeros(_BYTES * 8, np.bool_)

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Take the keys of some rows in; those with a null are no keys."""
        there = present(columns)
        if there is not None:
            columns = [column.filter(pa.array(there)) for column in columns]
        hashes = _hashes([plain(column) for column in columns])
        blocks = ((hashes >> np.uint64(32)) * np.uint64(_BYTES // 32)) >> np.uint64(32)
        lower = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        for word, salt in enumerate(_SALT):
            bit = (lower * salt) >> np.uint32(27)
            self._bits[blocks.astype(np.int64) * 256 + word * 32 + bit] = True

    def build(self) -> KeyFilter:
        """The filter."""
        bitmap = np.packbits(self._bits, bitorder="little").tobytes()
        return KeyFilter(self._field_ids, BloomKeys(bitmap, _BYTES * 8, _ITEMS, _PROBABILITY))


def _hashes(columns: Sequence[pa.Array]) -> UInt64s:
    """Hashes of keys: of their bytes, of several columns each followed by a zero."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    if len(columns) == 1 and is_exact([columns[0].type]):
        hashing.hash_words(codes_of(columns), hashes)
        return hashes
    parts = [_bytes(column) for column in columns]
    if len(parts) > 1:
        nothing = pa.scalar(b"", pa.large_binary())
        joined = pc.binary_join_element_wise(*parts, nothing, pa.scalar(b"\0", pa.large_binary()))
    else:
        joined = parts[0]
    offsets = np.frombuffer(joined.buffers()[1], np.int64, len(joined) + 1, joined.offset * 8)
    data = joined.buffers()[2]
    hashing.hash_bytes(offsets, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), hashes)
    return hashes


def _bytes(column: pa.Array) -> pa.Array:
    kind = column.type
    if pat.is_string(kind) or pat.is_large_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind):
        return column.cast(pa.large_binary())
    words = codes_of([column])
    whole = pa.Array.from_buffers(pa.binary(8), len(words), [None, pa.py_buffer(words)])
    return whole.cast(pa.binary()).cast(pa.large_binary())
