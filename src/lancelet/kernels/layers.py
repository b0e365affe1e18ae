"""The layers of a column's structure: their codes, what each definition level means, and the arrays they stand for.

A leaf column passes through items (values, structs) and lists. Layers are named innermost first, as in page metadata.
Definition level 0 is a valid item; each layer then takes the next levels, innermost first::

    code  meaning                         levels taken, with b the number taken by layers inside
    1     items, none null                -
    2     lists, none null or empty       -
    3     items, some null                b+1 null
    4     lists, some null                b+1 null
    5     lists, some empty               b+1 empty
    6     lists, some null, some empty    b+1 null, b+2 empty

A level tells of the outermost layer that is null or empty; everything inside it is hidden. Repetition level 0 goes on
with the innermost list, r starts a new list at the r-th list layer counted from inside, the highest starts a new row.
An entry whose level belongs to a list layer, or to anything outside one, has no value stored for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput

__all__ = [
    "ALL_VALID_ITEM",
    "ALL_VALID_LIST",
    "EMPTYABLE_LIST",
    "NULLABLE_ITEM",
    "NULLABLE_LIST",
    "NULL_AND_EMPTY_LIST",
    "Items",
    "Lists",
    "Structure",
    "bad_levels",
    "bad_lists",
    "check_visible",
    "layer_code",
    "levels_given",
    "structure",
    "wrong_length",
]

ALL_VALID_ITEM = 1
ALL_VALID_LIST = 2
NULLABLE_ITEM = 3
NULLABLE_LIST = 4
EMPTYABLE_LIST = 5
NULL_AND_EMPTY_LIST = 6

_LISTS = (ALL_VALID_LIST, NULLABLE_LIST, EMPTYABLE_LIST, NULL_AND_EMPTY_LIST)
_LEVELS = {1: 0, 2: 0, 3: 1, 4: 1, 5: 1, 6: 2}
# Far above any schema, and low enough for a definition level to stay below 2**15.
_MOST_LAYERS = 1024


@dataclass(frozen=True, slots=True)
class Items:
    """A layer of values or structs. Bit ``bit_offset + i`` of ``validity`` tells of item ``i``, lowest bit first.

    ``validity`` is None when no item is null. ``null_count`` may be -1 (unknown) where it is an input.
    """

    length: int
    validity: NDArray[np.uint8] | None = None
    null_count: int = -1
    bit_offset: int = 0


@dataclass(frozen=True, slots=True)
class Lists:
    """A layer of lists: list ``i`` has the entries ``offsets[i]`` to ``offsets[i + 1]`` of the layer inside it."""

    offsets: NDArray[np.int64] | NDArray[np.int32]
    validity: NDArray[np.uint8] | None = None
    null_count: int = -1
    bit_offset: int = 0

    @property
    def length(self) -> int:
        """The number of lists."""
        return max(len(self.offsets) - 1, 0)


@dataclass(frozen=True, slots=True)
class Structure:
    """What the codes of a page's layers imply.

    ``below[k]`` is the number of definition levels that the layers inside layer ``k`` take, and ``depth[k]`` the number
    of lists inside it. Among the entries of depth ``d``, levels above ``visible[d]`` tell of something further out that
    is null or empty; ``visible[0]`` is the highest level for which a value is stored.
    """

    codes: tuple[int, ...]
    below: tuple[int, ...]
    depth: tuple[int, ...]
    visible: tuple[int, ...]

    @property
    def max_rep(self) -> int:
        """The repetition level that starts a new row; 0 without lists."""
        return len(self.visible) - 1

    @property
    def max_def(self) -> int:
        """The highest definition level; 0 when nothing is null or empty."""
        return self.visible[-1]


def structure(codes: Sequence[int]) -> Structure:
    """Work out the levels of layers given by their codes, innermost first.

    >>> structure([3, 6, 3]).visible  # a list of nullable items, itself null or empty, in a nullable struct
    (1, 4)
    >>> structure([3, 6, 3]).below
    (0, 1, 3)
    """
    if not codes or len(codes) > _MOST_LAYERS:
        raise Corrupt(f"page has {len(codes)} layers, expected 1 to {_MOST_LAYERS}")
    below, depth, visible = [], [], []
    taken = 0
    for code in codes:
        if code not in _LEVELS:
            raise Corrupt(f"layer code is {code}, expected 1 to 6")
        if code in _LISTS:
            visible.append(taken)
        below.append(taken)
        depth.append(len(visible) - (code in _LISTS))
        taken += _LEVELS[code]
    return Structure(tuple(codes), tuple(below), tuple(depth), (*visible, taken))


def levels_given(
    shape: Structure,
    rep: NDArray[np.uint16] | None,
    definition: NDArray[np.uint16] | None,
    num_items: int | None,
) -> int:
    """The number of levels, after checking that the arrays of levels which the layers call for are there."""
    if rep is None and definition is None:
        if num_items is None:
            raise InvalidInput("a page without levels, and num_items is not given")
        if num_items and shape.max_rep + shape.max_def:
            raise Corrupt(f"page of {num_items} items has no levels, expected some for layers {list(shape.codes)}")
        return num_items
    if (rep is not None) != (shape.max_rep > 0):
        raise Corrupt(f"repetition levels given: {rep is not None}, expected otherwise for layers {list(shape.codes)}")
    if rep is not None and definition is not None and len(rep) != len(definition):
        raise Corrupt(f"page has {len(rep)} repetition levels and {len(definition)} definition levels")
    if definition is None and rep is not None and len(rep) and shape.max_def:
        raise Corrupt(f"page has no definition levels, expected some for layers {list(shape.codes)}")
    if rep is not None and len(rep) and rep[0] != shape.max_rep:
        raise Corrupt(f"first repetition level is {rep[0]}, expected {shape.max_rep}, the start of a row")
    given = rep if rep is not None else definition
    return 0 if given is None else len(given)


def bad_levels(shape: Structure) -> Corrupt:
    """Levels that no column with these layers can have."""
    return Corrupt(
        f"levels do not fit layers {list(shape.codes)}: a level above {shape.max_rep} (repetition) or {shape.max_def} "
        "(definition), or a null or empty list where no list starts"
    )


def check_visible(found: int, expected: int | None) -> None:
    """Refuse a page whose levels speak of more or fewer stored values than the page says it has."""
    if expected is not None and found != expected:
        raise Corrupt(f"levels tell of {found} stored values, page has {expected}")


def layer_code(*, lists: bool, null: bool, empty: bool) -> int:
    """The code of a layer in which something is null or empty.

    >>> layer_code(lists=True, null=False, empty=True)
    5
    """
    if not lists:
        return NULLABLE_ITEM if null else ALL_VALID_ITEM
    if null:
        return NULL_AND_EMPTY_LIST if empty else NULLABLE_LIST
    return EMPTYABLE_LIST if empty else ALL_VALID_LIST


def wrong_length(found: int, expected: int) -> InvalidInput:
    """A layer that does not fit the one around it."""
    return InvalidInput(f"layer has {found} entries, the layer around it has room for {expected}")


def bad_lists() -> InvalidInput:
    """Offsets that no normalised lists have."""
    return InvalidInput("offsets do not start at 0 and rise, or a null list (or one in a null struct) is not empty")
