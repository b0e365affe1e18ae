"""Powers of ten as 128-bit fractions, from which kernels make floating-point numbers out of digits and back."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIRST", "LAST", "powers_of_ten"]

#: Exponents in the table; outside of them a number of at most 19 digits is zero or infinite.
FIRST, LAST = -342, 324


@cache
def powers_of_ten(*, round_up: bool) -> NDArray[np.uint64]:
    """For each exponent the high and the low word of ``10**exponent``, scaled by a power of two into 2**127..2**128.

    Those without an exact form are rounded down, or up.

    >>> [f"{word:x}" for word in powers_of_ten(round_up=False)[1 - FIRST].tolist()]
    ['a000000000000000', '0']
    """
    words = np.empty((LAST - FIRST + 1, 2), np.uint64)
    for exponent in range(FIRST, LAST + 1):
        # 2**1280 leaves more than 128 bits below the smallest power.
        top, bottom = (10**exponent, 1) if exponent >= 0 else (1 << 1280, 10**-exponent)
        value, rest = divmod(top, bottom)
        excess = value.bit_length() - 128
        if excess > 0:
            rest |= value & ((1 << excess) - 1)
            value >>= excess
        else:
            value <<= -excess
        value += round_up and rest != 0
        words[exponent - FIRST] = value >> 64, value & (1 << 64) - 1
    return words
