"""Sorting values in memory: where each belongs in the order that index files have, at the speed of sorting numbers.

Strings and bytes are compared eight bytes at a time, as numbers, behind what all of them begin with. Where few values
are distinct only those are sorted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.index.order import is_number, number_keys
from lancelet.kernels import prefixes
from lancelet.rows.addresses import UInt64s
from lancelet.rows.ordering import order_of
from lancelet.rows.runs import Int64s

__all__ = ["sort_places"]

#: So many values are looked at to guess how many are distinct.
_SAMPLE = 2**12
#: Rounds of comparing eight more bytes before the values that are still alike are compared whole.
_ROUNDS = 3
_WIDTH = 8


def sort_places(values: pa.Array) -> Int64s:
    """The places of values in the order of index files, nulls first; equal ones as they come.

    Numbers are in total order here: of the zeros the negative one is first.

    >>> sort_places(pa.array([2, None, 1])).tolist(), sort_places(pa.array(["b", "a", "b"])).tolist()
    ([1, 2, 0], [1, 0, 2])
    """
    if not values.null_count:
        return _order(values)
    missing = np.asarray(values.is_null())
    present = np.flatnonzero(~missing)
    return np.concatenate([np.flatnonzero(missing), present[_order(values.drop_null())]])


def _order(values: pa.Array) -> Int64s:
    """The places of values none of which is null."""
    if is_number(values.type):
        return order_of(_unsigned(number_keys(values, exact=True)))
    if not _has_offsets(values.type):
        return np.asarray(pc.array_sort_indices(values)).astype(np.int64)
    if _few_distinct(values):
        coded = pc.dictionary_encode(values)
        ranks = np.empty(len(coded.dictionary), np.uint64)
        ranks[_order_of_bytes(coded.dictionary)] = np.arange(len(ranks), dtype=np.uint64)
        return order_of(ranks[np.asarray(coded.indices)])
    return _order_of_bytes(values)


def _unsigned(keys: npt.NDArray[np.integer]) -> UInt64s:
    """Keys of any width as unsigned ones in the same order."""
    if keys.dtype.kind == "u":
        return keys.astype(np.uint64, copy=False)
    found: UInt64s = keys.astype(np.int64, copy=False).view(np.uint64) ^ np.uint64(1 << 63)
    return found


def _has_offsets(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_binary(kind) or pat.is_large_string(kind) or pat.is_large_binary(kind))


def _few_distinct(values: pa.Array) -> bool:
    """Whether a sample from all over the values repeats itself."""
    if len(values) < 4 * _SAMPLE:
        return False
    picked = values.take(pa.array(np.linspace(0, len(values) - 1, _SAMPLE).astype(np.int64)))
    return int(pc.count_distinct(picked).as_py()) < _SAMPLE // 2


def _order_of_bytes(values: pa.Array) -> Int64s:
    """The order of strings or bytes, none of them null."""
    if not len(values):
        return np.empty(0, np.int64)
    bounds = pc.min_max(values)
    skip = _shared(_as_bytes(bounds["min"]), _as_bytes(bounds["max"]))
    lengths = np.asarray(pc.binary_length(values))
    keys = _prefixes(values, skip)
    order = order_of(keys)
    at, runs = _alike(np.arange(len(order)), keys[order], lengths[order], skip + _WIDTH)
    for _ in range(_ROUNDS):
        if not len(at):
            return order
        skip += _WIDTH
        places = order[at]
        keys = _prefixes(values.take(pa.array(places)), skip)
        # By the next bytes first, then by what is known of those before: sorting keeps the order of equals.
        again = order_of(keys)
        again = again[order_of(runs[again])]
        order[at] = places[again]
        same = _numbered(runs[again], keys[again])
        at, runs = _alike(at, same, lengths[order[at]], skip + _WIDTH)
    if len(at):
        # Runs are in order among themselves: sorting all of them whole leaves each value in its run.
        places = order[at]
        order[at] = places[np.asarray(pc.array_sort_indices(values.take(pa.array(places))))]
    return order


def _alike(at: Int64s, keys: UInt64s, lengths: Int64s, compared: int) -> tuple[Int64s, UInt64s]:
    """Which of the places ``at`` hold values that are not told apart yet, and a rising number for each run of them.

    ``keys`` rise, and are equal where the first ``compared`` bytes are. Values of one length that end there are equal.
    """
    begins = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    shortest, longest = np.minimum.reduceat(lengths, begins), np.maximum.reduceat(lengths, begins)
    counts = np.diff(np.append(begins, len(keys)))
    open_runs = (counts > 1) & ((shortest != longest) | (longest > compared))
    numbers = np.repeat(np.where(open_runs, np.arange(len(begins)), -1), counts)
    left = numbers >= 0
    return at[left], numbers[left].astype(np.uint64)


def _numbered(one: UInt64s, other: UInt64s) -> UInt64s:
    """A number for each pair of what rises together: equal where both are."""
    changed = (one[1:] != one[:-1]) | (other[1:] != other[:-1])
    return np.concatenate(([0], np.cumsum(changed))).astype(np.uint64)


def _prefixes(values: pa.Array, skip: int) -> UInt64s:
    large = pat.is_large_string(values.type) or pat.is_large_binary(values.type)
    _, stored, data = values.buffers()
    count = len(values) + 1 + values.offset
    offsets = np.frombuffer(stored, np.int64, count) if large else np.frombuffer(stored, np.int32, count)
    offsets = offsets[values.offset :]
    found = np.empty(len(values), np.uint64)
    prefixes.prefixes(np.frombuffer(data or b"", np.uint8), offsets, skip, found)
    return found


def _as_bytes(value: pa.Scalar) -> bytes:
    found = value.as_py()
    return found if isinstance(found, bytes) else str(found).encode()


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes two values begin alike with."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
