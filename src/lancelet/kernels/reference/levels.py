"""Repetition and definition levels to structure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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

__all__ = ["unravel"]

Levels = NDArray[np.uint16]


def unravel(
    rep: Levels | None, definition: Levels | None, codes: Sequence[int], *, num_items: int | None = None
) -> list[Items | Lists]:
    """Turn the levels of whole rows into one :class:`Items` or :class:`Lists` per layer, innermost first.

    The innermost layer has an entry for each stored value: null values have one, null and empty lists do not.
    ``num_items``, the number of stored values, is needed where there are no levels and checked where there are.
    An item inside a null struct is null where its layer can be; a list inside a null struct is null, or else empty.

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
