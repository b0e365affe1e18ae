"""Repetition and definition levels to structure, and where rows lie among levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import InvalidInput
from lancelet.kernels.layers import (
    ALL_VALID_ITEM,
    NULL_AND_EMPTY_LIST,
    NULLABLE_ITEM,
    NULLABLE_LIST,
    Items,
    Lists,
    Structure,
    bad_levels,
    check_visible,
    levels_given,
    structure,
)

__all__ = ["level_bounds", "repetition_index", "row_starts", "unravel"]

Levels = NDArray[np.uint16]


def unravel(
    rep: Levels | None, definition: Levels | None, codes: Sequence[int], *, num_items: int | None = None
) -> list[Items | Lists]:
    """Turn the levels of whole rows into one :class:`Items` or :class:`Lists` per layer, innermost first.

    The innermost layer has an entry for each stored value: null values have one, null and empty lists do not.
    ``num_items``, the number of stored values, is needed where there are no levels and checked where there are.
    An item inside a null struct is null where its layer can be; a list inside a null struct is a null list or an empty one.

    >>> rep, definition = np.array([1, 0, 1, 1], np.uint16), np.array([0, 1, 2, 3], np.uint16)
    >>> values, lists = unravel(rep, definition, [3, 6])  # [[x, null], null, []]
    >>> values.length, values.null_count, lists.offsets.tolist(), lists.validity.tolist()
    (2, 1, [0, 2, 2, 2], [5])
    """
    shape = structure(codes)
    count = levels_given(shape, rep, definition, num_items)
    if rep is None:
        rep = np.zeros(count if shape.max_rep == 0 else 0, dtype=np.uint16)
    if definition is None:
        definition = np.zeros(len(rep), dtype=np.uint16)
    if shape.max_rep == 0:
        rep = np.zeros(len(definition), dtype=np.uint16)
    _check(rep, definition, shape)
    check_visible(int(np.count_nonzero(definition <= shape.visible[0])), num_items)
    result: list[Items | Lists] = []
    for code, below, depth in zip(shape.codes, shape.below, shape.depth, strict=True):
        if code in (ALL_VALID_ITEM, NULLABLE_ITEM):
            shown = definition[definition <= shape.visible[depth]]
            result.append(Items(len(shown), *_validity(shown, below, code)))
        else:
            starts = rep > depth
            shown = definition[starts & (definition <= shape.visible[depth + 1])]
            # The entries inside that come before each list: what is visible there is counted along the way.
            inside = np.zeros(len(rep) + 1, dtype=np.int64)
            np.cumsum(definition <= shape.visible[depth], out=inside[1:])
            offsets = np.append(inside[:-1][starts & (definition <= shape.visible[depth + 1])], inside[-1])
            result.append(Lists(offsets, *_validity(shown, below, code)))
            rep, definition = rep[starts], definition[starts]
    return result


def _check(rep: Levels, definition: Levels, shape: Structure) -> None:
    """Refuse levels that are too high, or hidden by a list that would have to start at the same place and does not."""
    good = (rep <= shape.max_rep).all() and (definition <= shape.max_def).all()
    if not good or (definition > np.array(shape.visible, dtype=np.uint16)[rep]).any():
        raise bad_levels(shape)


def _validity(shown: Levels, below: int, code: int) -> tuple[NDArray[np.uint8] | None, int]:
    if code not in (NULLABLE_ITEM, NULLABLE_LIST, NULL_AND_EMPTY_LIST):
        return None, 0
    valid = shown <= below
    if code == NULL_AND_EMPTY_LIST:
        valid |= shown == below + 2
    nulls = len(valid) - int(np.count_nonzero(valid))
    return (np.packbits(valid, bitorder="little") if nulls else None), nulls


def row_starts(rep: Levels, max_rep: int) -> NDArray[np.int64]:
    """The places among the levels at which a row starts.

    >>> row_starts(np.array([2, 0, 1, 2], np.uint16), 2).tolist()
    [0, 3]
    """
    return np.flatnonzero(rep >= max_rep).astype(np.int64)


def level_bounds(definition: Levels | None, max_visible: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut the levels of a page where its chunks of stored values end: ``counts[i]`` values make chunk ``i``.

    A chunk ends with its last value; levels without a value go with the next one, after the last with that.

    >>> level_bounds(np.array([0, 2, 0, 2, 2, 0, 2], np.uint16), 1, np.array([2, 1])).tolist()
    [0, 3, 7]
    """
    bounds = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=bounds[1:])
    if definition is None:
        return bounds
    ends = np.flatnonzero(definition <= max_visible) + 1
    if len(ends) != bounds[-1] or (len(counts) == 0 and len(definition)):
        raise InvalidInput(f"chunks hold {bounds[-1]} values, which is not what the levels tell of")
    bounds[1:] = np.append(0, ends)[bounds[1:]]
    if len(counts):
        bounds[-1] = len(definition)
    return bounds


def repetition_index(rep: Levels, bounds: NDArray[np.int64], max_rep: int) -> NDArray[np.uint64]:
    """For each chunk of levels: the rows that end in it, and the levels of a row that goes on in the next chunk.

    >>> repetition_index(np.array([1, 0, 1, 0, 0, 1], np.uint16), np.array([0, 4, 6]), 1).tolist()
    [[1, 2], [2, 0]]
    """
    chunks = max(len(bounds) - 1, 0)
    if chunks and (bounds[0] != 0 or bounds[-1] != len(rep) or (np.diff(bounds) < 1).any()):
        raise InvalidInput(f"bounds do not cut {len(rep)} levels into chunks of at least one")
    starts = np.append(np.flatnonzero(rep == max_rep), len(rep))
    index = np.zeros((chunks, 2), dtype=np.uint64)
    for i in range(chunks):
        first, end = bounds[i], bounds[i + 1]
        index[i, 0] = np.count_nonzero((starts > first) & (starts <= end))
        if end not in starts:
            index[i, 1] = end - max(first, starts[starts < end].max(initial=0))
    return index
