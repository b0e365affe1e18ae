"""How much a function may make of one batch of rows, and how many arguments it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lancelet.errors import InvalidInput, OverBudget
from lancelet.expr.tree import Expr

__all__ = ["MOST_MADE", "between", "exactly", "within_limits"]

#: As many items, or bytes of text, may come of one batch.
MOST_MADE = 2**28


def within_limits(name: str, sizes: npt.ArrayLike) -> None:
    """OverBudget where so many items, or bytes, are too many together.

    >>> within_limits("repeat", [3, 5])
    """
    total = float(np.sum(np.asarray(sizes, np.float64)))
    if total > MOST_MADE:
        raise OverBudget(f"{name} makes {total:.3g} items or bytes of one batch of rows, expected at most {MOST_MADE}")


def exactly(count: int, bind: Callable[[str, Sequence[Expr]], Expr]) -> Callable[[str, Sequence[Expr]], Expr]:
    """Binds so many arguments; InvalidInput for another number of them."""
    return between(count, count, bind)


def between(
    fewest: int, most: int, bind: Callable[[str, Sequence[Expr]], Expr]
) -> Callable[[str, Sequence[Expr]], Expr]:
    """Binds arguments of which there are not fewer and not more."""

    def bound(name: str, arguments: Sequence[Expr]) -> Expr:
        if not fewest <= len(arguments) <= most:
            wanted = f"{most} argument{'s' * (most != 1)}" if fewest == most else f"{fewest} to {most} arguments"
            raise InvalidInput(f"{name} takes {wanted}, found {len(arguments)}")
        return bind(name, arguments)

    return bound
