"""Sorting values in memory: where each belongs in the order that index files have, at the speed of sorting numbers.

Strings and bytes are compared eight bytes at a time, as numbers, behind what all of them begin with. Where few values
are distinct only those are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.index.order import is_number, number_keys
from lancelet.kernels import gather, prefixes
from lancelet.rows.addresses import UInt64s
from lancelet.rows.ordering import order_of
from lancelet.rows.runs import Int64s

__all__ = ["changes", "equal_runs", "sort_places", "sort_together"]

#: So many values are looked at to guess how many are distinct.
_SAMPLE = 2**12
#: Rounds of comparing eight more bytes before the values that are still alike are compared whole.
_ROUNDS = 3
_WIDTH = 8
#: Values worked on at a time where memory would else be walked through once for each step.
_BLOCK = 2**15


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


def sort_together(values: Sequence[pa.Array], ids: Sequence[UInt64s]) -> tuple[pa.Array, UInt64s]:
    """Values that come in pieces, in order, and what goes with each.

    >>> names = [np.array([7, 8], np.uint64), np.array([9], np.uint64)]
    >>> values, ids = sort_together([pa.array([3, 1]), pa.array([2])], names)
    >>> values.to_pylist(), ids.tolist()
    ([1, 2, 3], [8, 9, 7])
    """
    together = np.concatenate(ids)
    kind = values[0].type
    if _is_whole(kind) and not any(part.null_count for part in values):
        packed = _packed([number_keys(part) for part in values])
        if packed is not None:
            found, places = packed
            return pa.Array.from_buffers(kind, len(found), [None, pa.py_buffer(found)]), together[places]
    whole = values[0] if len(values) == 1 else pa.concat_arrays(values)
    places = sort_places(whole)
    if bool(np.all(places[1:] > places[:-1])):
        return whole, together
    return whole.take(pa.array(places)), together[places]


def equal_runs(values: pa.Array) -> Int64s:
    """Where each run of equal values begins; nulls are alike, zeros of either sign are not.

    >>> equal_runs(pa.array([None, None, 1, 2, 2])).tolist()
    [0, 2, 3]
    """
    if not len(values):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], changes(values[:-1], values[1:]))))


def changes(one: pa.Array, other: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether the values of two arrays differ, place by place; as :func:`equal_runs` has it.

    >>> changes(pa.array([0.0, None]), pa.array([-0.0, None])).tolist()
    [True, False]
    """
    nulls = np.asarray(one.is_null()), np.asarray(other.is_null())
    if is_number(one.type):
        differ = number_keys(one, exact=True) != number_keys(other, exact=True)
    else:
        differ = np.asarray(pc.fill_null(pc.not_equal(one, other), True))
    found: npt.NDArray[np.bool_] = np.where(nulls[0] | nulls[1], nulls[0] != nulls[1], differ)
    return found


def _is_whole(kind: pa.DataType) -> bool:
    """Whether values are stored as whole numbers that are their own keys."""
    return is_number(kind) and not pat.is_floating(kind) and not pat.is_boolean(kind)


def _packed(parts: Sequence[npt.NDArray[np.integer]]) -> tuple[npt.NDArray[np.integer], Int64s] | None:
    """Whole numbers in order, and their places: value and place are sorted as one integer; None where that is too wide.

    The values come out of the sorted integers again, so that nothing is fetched from all over the memory.
    """
    count = sum(map(len, parts))
    filled = [part for part in parts if len(part)]
    bits = max(count - 1, 1).bit_length()
    low = min((int(part.min()) for part in filled), default=0)
    high = max((int(part.max()) for part in filled), default=0)
    if (high - low).bit_length() + bits > 64:
        return None
    packed = np.empty(count, np.uint64)
    base, shift = np.uint64(low & (2**64 - 1)), np.uint64(bits)
    done = 0
    for part in filled:
        for start in range(0, len(part), _BLOCK):
            # Differences of signed numbers come out right however the integers wrap around.
            block = part[start : start + _BLOCK].astype(np.int64 if part.dtype.kind == "i" else np.uint64)
            into = packed[done : done + len(block)]
            np.subtract(block.view(np.uint64), base, out=into)
            into <<= shift
            into |= np.arange(done, done + len(block), dtype=np.uint64)
            done += len(block)
    packed.sort()
    found = np.empty(count, filled[0].dtype if filled else parts[0].dtype)
    mask = np.uint64((1 << bits) - 1)
    for start in range(0, count, _BLOCK):
        block = packed[start : start + _BLOCK]
        found[start : start + len(block)] = ((block >> shift) + base).astype(found.dtype)
        block &= mask
    return found, packed.view(np.int64)


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
    keys = _prefixes(values, skip)
    order = order_of(keys)
    lengths = np.asarray(pc.binary_length(values))
    at, runs = _alike(np.arange(len(order)), keys[order], order, lengths, skip + _WIDTH)
    for _ in range(_ROUNDS):
        if not len(at):
            return order
        skip += _WIDTH
        places = order[at]
        keys = _prefixes_at(values, places, skip)
        mixed = _mixed(keys, runs)
        # By the next bytes first, then by what is known of those before: sorting keeps the order of equals.
        again = order_of(keys[mixed])
        again = mixed[again[order_of(runs[mixed][again])]]
        places[mixed], keys[mixed] = places[again], keys[again]
        order[at[mixed]] = places[mixed]
        at, runs = _alike(at, _numbered(runs, keys), places, lengths, skip + _WIDTH)
    if len(at):
        # Runs are in order among themselves: sorting all of them whole leaves each value in its run.
        places = order[at]
        order[at] = places[np.asarray(pc.array_sort_indices(values.take(pa.array(places))))]
    return order


def _mixed(keys: UInt64s, runs: UInt64s) -> Int64s:
    """The places of those runs, numbered in rising order, whose keys are not all alike: the others are in order."""
    begins = np.flatnonzero(np.concatenate(([True], runs[1:] != runs[:-1])))
    sizes = np.diff(np.append(begins, len(runs)))
    differ = np.logical_or.reduceat(keys != np.repeat(keys[begins], sizes), begins)
    return np.flatnonzero(np.repeat(differ, sizes))


def _alike(at: Int64s, keys: UInt64s, places: Int64s, lengths: Int64s, compared: int) -> tuple[Int64s, UInt64s]:
    """Which of the places ``at`` hold values that are not told apart yet, and a rising number for each run of them.

    ``keys`` rise, and are equal where the first ``compared`` bytes are; ``places`` are those of the values themselves,
    which have ``lengths``. Values of one length that end within what was compared are equal.
    """
    same = np.concatenate(([False], keys[1:] == keys[:-1], [False]))
    tied = np.flatnonzero(same[1:] | same[:-1])
    if not len(tied):
        return tied, np.empty(0, np.uint64)
    begins = np.flatnonzero(~same[tied])
    sizes = lengths[places[tied]]
    unsettled = np.maximum.reduceat(sizes, begins) > compared
    unsettled |= np.minimum.reduceat(sizes, begins) != np.maximum.reduceat(sizes, begins)
    numbers = np.repeat(np.where(unsettled, np.arange(len(begins)), -1), np.diff(np.append(begins, len(tied))))
    left = numbers >= 0
    return at[tied[left]], numbers[left].astype(np.uint64)


def _numbered(one: UInt64s, other: UInt64s) -> UInt64s:
    """A number for each pair of what rises together: equal where both are."""
    changed = (one[1:] != one[:-1]) | (other[1:] != other[:-1])
    return np.concatenate(([0], np.cumsum(changed))).astype(np.uint64)


def _prefixes(values: pa.Array, skip: int) -> UInt64s:
    offsets, data = _stored_bytes(values)
    found = np.empty(len(values), np.uint64)
    prefixes.prefixes(data, offsets, skip, found)
    return found


def _prefixes_at(values: pa.Array, places: Int64s, skip: int) -> UInt64s:
    """The same of the values at some places, of which no more than that is fetched."""
    offsets, data = _stored_bytes(values)
    ends = offsets[places + 1].astype(np.int64)
    starts = np.minimum(offsets[places].astype(np.int64) + skip, ends)
    sizes = np.minimum(ends - starts, _WIDTH)
    bounds = np.append(0, np.cumsum(sizes))
    fetched = np.empty(int(bounds[-1]), np.uint8)
    gather.copy_pieces(data, starts, sizes, fetched)
    found = np.empty(len(places), np.uint64)
    prefixes.prefixes(fetched, bounds, 0, found)
    return found


def _stored_bytes(values: pa.Array) -> tuple[npt.NDArray[np.signedinteger], npt.NDArray[np.uint8]]:
    """Where each value ends, the first behind the one before it, and the bytes of all."""
    large = pat.is_large_string(values.type) or pat.is_large_binary(values.type)
    _, stored, data = values.buffers()
    count = len(values) + 1 + values.offset
    offsets = np.frombuffer(stored, np.int64, count) if large else np.frombuffer(stored, np.int32, count)
    return offsets[values.offset :], np.frombuffer(data or b"", np.uint8)


def _as_bytes(value: pa.Scalar) -> bytes:
    found = value.as_py()
    return found if isinstance(found, bytes) else str(found).encode()


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes two values begin alike with."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
