"""Rows of packed structs: fields of fixed and of varying length side by side, found and filled field by field."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import check_offsets
from lancelet.kernels.refuse_rows import bad_row, check_widths

__all__ = ["field_places", "scatter_pieces"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


def field_places(data: Bytes, offsets: Places, widths: Places) -> tuple[Places, Places]:
    """Where each field of each row lies: starts and sizes, with a line for each field.

    Positive ``widths`` are bytes of a fixed field; negative ones are bytes (4 or 8) of the length that comes before
    the field. Rows of no bytes are null: their fields have none either.

    >>> starts, sizes = field_places(np.array([9, 1, 0, 0, 0, 5], np.uint8), np.array([0, 6]), np.array([1, -4]))
    >>> starts.tolist(), sizes.tolist()
    ([[0], [5]], [[1], [1]])
    """
    check_offsets(offsets, len(data))
    check_widths(widths)
    rows = len(offsets) - 1
    starts = np.zeros((len(widths), rows), np.int64)
    sizes = np.zeros((len(widths), rows), np.int64)
    for row in range(rows):
        at, end = int(offsets[row]), int(offsets[row + 1])
        if at == end:
            starts[:, row] = at
            continue
        for field, width in enumerate(widths.tolist()):
            size = width
            if width < 0:
                if -width > end - at:
                    raise bad_row(row)
                size = int.from_bytes(data[at : at - width].tobytes(), "little")
                at -= width
            if size > end - at:
                raise bad_row(row)
            starts[field, row], sizes[field, row] = at, size
            at += size
        if at != end:
            raise bad_row(row)
    return starts, sizes


def scatter_pieces(data: Bytes, starts: Places, sizes: Places, out: Bytes, places: Places) -> None:
    """Copy piece ``i``, the ``sizes[i]`` bytes from ``starts[i]`` on, to ``places[i]`` of ``out``.

    >>> out = np.zeros(4, np.uint8)
    >>> scatter_pieces(np.array([1, 2, 3], np.uint8), np.array([0, 2]), np.array([2, 1]), out, np.array([2, 0]))
    >>> out.tolist()
    [3, 0, 1, 2]
    """
    refuse.other_length("sizes", len(sizes), len(starts))
    refuse.other_length("places", len(places), len(starts))
    for i, (start, size, place) in enumerate(zip(starts.tolist(), sizes.tolist(), places.tolist(), strict=True)):
        if size < 0 or start < 0 or start > len(data) - size:
            raise refuse.range_outside("piece", i, start=start, size=size, have=len(data))
        if place < 0 or place > len(out) - size:
            raise refuse.range_outside("target", i, start=place, size=size, have=len(out))
        out[place : place + size] = data[start : start + size]
