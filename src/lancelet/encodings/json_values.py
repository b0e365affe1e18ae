"""Values found in JSON documents as Arrow arrays: text, numbers, truth values, or documents of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.encodings.json import json_to_text
from lancelet.encodings.json_paths import Found
from lancelet.encodings.values import Bytes
from lancelet.kernels import gather
from lancelet.kernels.jsonb_layout import FLOAT, INTEGER, SCALAR, UNSIGNED
from lancelet.rows.runs import Int64s

__all__ = [
    "CONTAINER",
    "FALSE",
    "NULL",
    "NUMBER",
    "STRING",
    "TRUE",
    "documents_of",
    "numbers_of",
    "shown",
    "strings_of",
]

NULL, STRING, NUMBER, FALSE, TRUE, CONTAINER = range(6)
_Bools = npt.NDArray[np.bool_]


def strings_of(found: Found, rows: Int64s) -> pa.Array:
    """The bytes of the strings at some rows, as text."""
    ends, data = _copied(found, rows)
    kind = pa.large_string()
    return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(ends), pa.py_buffer(data)]).cast(pa.string())


def documents_of(found: Found) -> pa.Array:
    """Each value as a document; null where there is none."""
    there = found.kinds >= 0
    whole = found.kinds == CONTAINER
    heads = np.where(whole | ~there, 0, 8)
    ends = np.append(0, np.cumsum(heads + np.where(there, found.sizes, 0)))
    data = np.empty(int(ends[-1]), np.uint8)
    rows = np.flatnonzero(there & ~whole)
    words = np.empty((len(rows), 2), ">u4")
    words[:, 0] = SCALAR
    words[:, 1] = found.kinds[rows].astype(np.uint32) << 28 | found.sizes[rows].astype(np.uint32)
    _place(data, ends[rows], words.view(np.uint8).reshape(len(rows), 8))
    _fill(data, ends[:-1] + heads, found, np.flatnonzero(there & (found.sizes > 0)))
    validity = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.large_binary(), len(there), [validity, pa.py_buffer(ends), pa.py_buffer(data)])


def shown(found: Found) -> pa.Array:
    """Each value as JSON text; null where there is none."""
    return json_to_text(documents_of(found))


def numbers_of(found: Found, rows: Int64s) -> Iterator[tuple[Int64s, npt.NDArray[np.generic]]]:
    """The numbers at some rows, those that are stored alike together: which of the rows, and the values."""
    if not len(rows):
        return
    classes = found.data[found.starts[rows]] & 0x70
    sizes = found.sizes[rows]
    for number, size in np.unique(np.stack([classes, sizes]), axis=1).T.tolist():
        which = np.flatnonzero((classes == number) & (sizes == size))
        letter = {INTEGER: "i", UNSIGNED: "u", FLOAT: "f"}.get(number)
        if letter is None or size - 1 not in (1, 2, 4, 8):
            # Zero; and NaN and the infinities, which JSON does not have, are stored without a value.
            yield which, np.zeros(len(which), np.int64) if number == 0 else np.full(len(which), np.nan)
            continue
        stored = np.empty(len(which) * (size - 1), np.uint8)
        starts = found.starts[rows[which]] + 1
        gather.copy_pieces(found.data, starts, np.full(len(which), size - 1), stored)
        yield which, stored.view(f">{letter}{size - 1}").astype(f"{letter}8")


def _copied(found: Found, rows: Int64s) -> tuple[Int64s, Bytes]:
    sizes = found.sizes[rows]
    ends = np.append(0, np.cumsum(sizes))
    data = np.empty(int(ends[-1]), np.uint8)
    gather.copy_pieces(found.data, found.starts[rows], sizes, data)
    return ends, data


def _fill(out: Bytes, at: Int64s, found: Found, rows: Int64s) -> None:
    """Put the bytes of values where they belong."""
    ends, data = _copied(found, rows)
    places = np.repeat(at[rows] - ends[:-1], found.sizes[rows]) + np.arange(len(data))
    out[places] = data


def _place(out: Bytes, at: Int64s, pieces: npt.NDArray[np.uint8]) -> None:
    out[at[:, None] + np.arange(pieces.shape[1])] = pieces
