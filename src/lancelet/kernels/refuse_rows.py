"""Words and checks that the kernels for rows of packed structs share with their twins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput

__all__ = ["bad_row", "check_widths"]


def bad_row(row: int) -> Corrupt:
    """Fields that do not fill their row."""
    return Corrupt(f"fields of row {row} of a packed struct do not come to the bytes of the row")


def check_widths(widths: NDArray[np.int64]) -> None:
    """Refuse widths that are neither those of a fixed field nor those of a length.

    >>> check_widths(np.array([3, -4, -8]))
    """
    for width in widths.tolist():
        if width <= 0 and width not in (-4, -8):
            raise InvalidInput(f"field of width {width}, expected a positive one, or -4 or -8 for a length")
