"""Codes of keys: 64 bits for each row, alike where the keys are; and whether keys that share a code are alike indeed.

Two values are alike where SQL says that they are equal, but for this: NaN is like NaN. A row whose key has a null in
any of its columns is like no row; a null inside a list or struct is like another null there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.kernels import hashing
from lancelet.rows.addresses import UInt64s

__all__ = ["Mask", "alike", "codes_of", "is_exact", "plain", "present", "spread"]

Mask = npt.NDArray[np.bool_]

#: What stands for a null inside a list or struct.
_NULL = np.uint64(0x9AE16A3B2F90404F)
_INTEGER_OF = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}


def is_exact(kinds: Sequence[pa.DataType]) -> bool:
    """Whether codes of such a key are the key itself: keys that share one need not be compared.

    >>> is_exact([pa.int32()]), is_exact([pa.string()]), is_exact([pa.int8(), pa.int8()])
    (True, False, False)
    """
    return len(kinds) == 1 and _is_word(_storage(kinds[0]))


def present(columns: Sequence[pa.Array]) -> Mask | None:
    """The rows whose keys have no null; None where all are such."""
    found: Mask | None = None
    for column in columns:
        if column.null_count:
            valid = np.asarray(column.is_valid())
            found = valid if found is None else found & valid
    return found


def codes_of(columns: Sequence[pa.Array]) -> UInt64s:
    """A code for each row; what it is for rows that are not :func:`present` means nothing.

    >>> codes_of([pa.array([7, 0, 7])]).tolist()
    [7, 0, 7]
    """
    held = [plain(column) for column in columns]
    if is_exact([column.type for column in held]):
        return _words(held[0])
    seeds = np.zeros(len(held[0]), np.uint64)
    for column in held:
        _hash(column, seeds)
    return seeds


def spread(codes: UInt64s) -> UInt64s:
    """Codes whose bits all depend on all bits of the given ones: for dividing rows evenly."""
    mixed = np.zeros(len(codes), np.uint64)
    hashing.hash_words(codes, mixed)
    return mixed


def alike(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Mask:
    """Whether the keys of two sides are alike, row by row; a null is like a null.

    >>> alike([pa.array(["a", "b"])], [pa.array(["a", "c"])]).tolist()
    [True, False]
    """
    found = np.ones(len(left[0]), np.bool_)
    for one, other in zip(left, right, strict=True):
        found &= _alike(plain(one), plain(other))
    return found


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def plain(array: pa.Array) -> pa.Array:
    """The same values in one of few forms: no extension, no dictionary, no view.

    >>> plain(pa.array(["a"], pa.string_view())).type
    DataType(large_string)
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pat.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if pat.is_string_view(kind):
        return array.cast(pa.large_string())
    if pat.is_binary_view(kind):
        return array.cast(pa.large_binary())
    return array


def _is_word(kind: pa.DataType) -> bool:
    """Whether a value of a type is at most eight bytes that are compared as they are."""
    return bool(pat.is_primitive(kind)) and not pat.is_interval(kind)


def _words(array: pa.Array) -> UInt64s:
    """Fixed-width values of up to eight bytes as words; floats in a form in which like ones are the same."""
    kind = array.type
    if pat.is_boolean(kind):
        array, kind = array.cast(pa.uint8()), pa.uint8()
    if pat.is_floating(kind):
        return _float_words(array)
    if not pat.is_integer(kind):
        array = array.view(_INTEGER_OF[kind.bit_width // 8])
    if array.null_count:
        array = array.fill_null(0)
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype != np.uint64:
        values = values.astype(np.int64, copy=False).view(np.uint64)
    return np.ascontiguousarray(values)


def _float_words(array: pa.Array) -> UInt64s:
    values = np.asarray(array.fill_null(0) if array.null_count else array)
    # Adding zero makes -0.0 of neither sign; all NaNs become one.
    clean = np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0))
    words: UInt64s = clean.view(f"u{clean.itemsize}").astype(np.uint64)
    return words


def _hash(array: pa.Array, seeds: UInt64s) -> None:
    """Mix the values of a column into seeds."""
    array = plain(array)
    kind = array.type
    missing = np.asarray(array.is_null()) if array.null_count else None
    before = seeds.copy() if missing is not None else None
    if pat.is_null(kind):
        hashing.hash_words(np.full(len(array), _NULL), seeds)
    elif _is_word(kind):
        hashing.hash_words(_words(array), seeds)
    elif pat.is_struct(kind):
        for place in range(kind.num_fields):
            _hash(array.field(place), seeds)
    elif pat.is_nested(kind):
        hashing.hash_words(_list_words(array), seeds)
    else:
        hashing.hash_bytes(*_bytes(array), seeds)
    if missing is not None and before is not None:
        hashing.hash_words(np.full(len(array), _NULL), before)
        seeds[missing] = before[missing]


def _bytes(array: pa.Array) -> tuple[npt.NDArray[np.int64] | npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Offsets and bytes of values that are bytes, be they of fixed width."""
    kind = array.type
    buffers = array.buffers()
    data = np.zeros(0, np.uint8) if buffers[-1] is None else np.frombuffer(buffers[-1], np.uint8)
    if not (pat.is_string(kind) or pat.is_binary(kind) or pat.is_large_string(kind) or pat.is_large_binary(kind)):
        width = kind.bit_width // 8
        return (np.arange(len(array) + 1, dtype=np.int64) + array.offset) * width, data
    dtype = np.dtype(np.int64 if pat.is_large_string(kind) or pat.is_large_binary(kind) else np.int32)
    if not len(array):
        return np.zeros(1, dtype), data
    return np.frombuffer(buffers[1], dtype, len(array) + 1, array.offset * dtype.itemsize), data


def _list_words(array: pa.Array) -> UInt64s:
    """A word for each list, from the words of its items and their places."""
    items, lengths = _items(array)
    hashes = np.zeros(len(items), np.uint64)
    _hash(items, hashes)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    places = (np.arange(len(items)) - np.repeat(starts, lengths)).astype(np.uint64)
    hashing.hash_words(hashes, places)
    sums = np.zeros(len(items) + 1, np.uint64)
    np.cumsum(places, out=sums[1:])
    words = lengths.astype(np.uint64)
    hashing.hash_words(sums[ends] - sums[starts], words)
    return words


def _items(array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """What lists hold, and how many items each has; none for nulls."""
    kind = array.type
    if pat.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
        array = pa.ListArray.from_arrays(pa.array(array.offsets.to_numpy()), entries, mask=_mask(array))
    if pat.is_fixed_size_list(kind):
        lengths = np.where(np.asarray(array.is_valid()), kind.list_size, 0).astype(np.int64)
    else:
        lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
    return array.flatten(), lengths


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _alike(left: pa.Array, right: pa.Array) -> Mask:
    kind = left.type
    here, there = np.asarray(left.is_valid()), np.asarray(right.is_valid())
    both = here & there
    if pat.is_null(kind):
        return np.ones(len(left), np.bool_)
    if _is_word(kind):
        same = _words(left) == _words(right)
    elif pat.is_struct(kind):
        same = np.ones(len(left), np.bool_)
        for place in range(kind.num_fields):
            same &= _alike(plain(left.field(place)), plain(right.field(place)))
    elif pat.is_nested(kind):
        same = _lists_alike(left, right)
    else:
        same = np.asarray(pc.equal(left, right).fill_null(False))
    found: Mask = (both & same) | ~(here | there)
    return found


def _lists_alike(left: pa.Array, right: pa.Array) -> Mask:
    (items, lengths), (others, other_lengths) = _items(left), _items(right)
    same = lengths == other_lengths
    mine = plain(items.filter(pa.array(np.repeat(same, lengths))))
    theirs = plain(others.filter(pa.array(np.repeat(same, other_lengths))))
    differ = np.zeros(len(mine) + 1, np.int64)
    np.cumsum(~_alike(mine, theirs), out=differ[1:])
    compared = np.where(same, lengths, 0)
    ends = np.cumsum(compared)
    found: Mask = same & (differ[ends] == differ[ends - compared])
    return found
