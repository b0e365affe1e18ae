"""Prefixes of byte strings as integers, in NumPy: comparing eight bytes at a time is comparing numbers.

value    s k i p p e d a b c d e f g h i j
prefix                 61 62 63 64 65 66 67 68      big-endian; behind the end of the value: zeros
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_some_offsets, range_of_value

__all__ = ["prefixes"]

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int32] | NDArray[np.int64]

_WIDTH = 8


def prefixes(data: Bytes, offsets: Offsets, skip: int, out: NDArray[np.uint64]) -> None:
    """Of value i, the bytes from ``offsets[i]`` to ``offsets[i + 1]``, eight behind the first ``skip``, as a number.

    >>> out = np.zeros(2, np.uint64)
    >>> prefixes(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3]), 0, out)
    >>> [hex(one) for one in out.tolist()]
    ['0x6100000000000000', '0x6263000000000000']
    """
    check_some_offsets(offsets)
    refuse.other_length("out", len(out), len(offsets) - 1)
    refuse.negative("skip", skip)
    places = offsets.astype(np.int64)
    starts, ends = places[:-1], places[1:]
    bad = np.flatnonzero((starts < 0) | (ends < starts) | (ends > len(data)))
    if len(bad):
        at = int(bad[0])
        raise range_of_value(at, int(starts[at]), int(ends[at]), len(data))
    out[:] = 0
    for byte in range(_WIDTH):
        wanted = starts + skip + byte
        inside = np.flatnonzero(wanted < ends)
        out[inside] |= data[wanted[inside]].astype(np.uint64) << np.uint64(8 * (_WIDTH - 1 - byte))
