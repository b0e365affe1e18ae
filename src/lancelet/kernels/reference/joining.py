"""Rows that have one code: a table of the codes of some rows, and the pairs that other rows make with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import InvalidInput

__all__ = ["MOST_ROWS", "build", "probe"]

Words = NDArray[np.uint64]
Rows = NDArray[np.int64]
Table = tuple[NDArray[np.int32] | NDArray[np.uint8], ...]

#: Rows are kept in 32 bits.
MOST_ROWS = 2**31 - 2


def build(codes: Words) -> Table:
    """A table of codes, for :func:`probe` of the same variant: what is in it is the variant's own affair."""
    if len(codes) > MOST_ROWS:
        raise InvalidInput(f"{len(codes)} rows in one table, expected at most {MOST_ROWS}")
    return (np.argsort(codes, kind="stable").astype(np.int32),)


def probe(codes: Words, table: Table, asked: Words) -> tuple[Rows, Rows]:
    """The pairs of rows with one code: places in ``asked``, ascending, and for each those in ``codes``, ascending.

    >>> codes = np.array([7, 9, 7], np.uint64)
    >>> [rows.tolist() for rows in probe(codes, build(codes), np.array([8, 7, 9], np.uint64))]
    [[1, 1, 2], [0, 2, 1]]
    """
    order = table[0]
    if len(order) != len(codes):
        raise InvalidInput(f"the table is one of {len(order)} rows, {len(codes)} codes were given")
    ordered = codes[order]
    first = np.searchsorted(ordered, asked, "left")
    counts = np.searchsorted(ordered, asked, "right") - first
    places = np.repeat(np.arange(len(asked)), counts)
    within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places, order[np.repeat(first, counts) + within].astype(np.int64)
