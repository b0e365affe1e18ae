"""Lists taken apart and put together: the places of their items, lists made of gathered items, truth per list."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.expr.vectors import from_numpy

__all__ = ["fixed_lists", "gathered", "item_places", "segments_all", "segments_any"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def item_places(starts: Int64s, lengths: Int64s) -> Int64s:
    """The places of all items of lists that begin at ``starts``.

    >>> item_places(np.array([4, 0]), np.array([2, 1])).tolist()
    [4, 5, 0]
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths))


def gathered(starts: Int64s, lengths: Int64s, items: pa.Array, kind: pa.DataType, nulls: Bools | None) -> pa.Array:
    """Lists of the items at some places; null where ``nulls`` says so.

    >>> gathered(np.array([1, 0]), np.array([2, 1]), pa.array([5, 6, 7]), pa.list_(pa.int64()), None).to_pylist()
    [[6, 7], [5]]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    in_order = bool(len(starts)) and bool(np.all(starts[1:] == starts[:-1] + lengths[:-1]))
    if in_order:
        picked = items.slice(int(starts[0]), int(offsets[-1]))
    else:
        picked = items.take(pa.array(item_places(starts, lengths)))
    bitmap = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    wide = np.int64 if pat.is_large_list(kind) else np.int32
    data = pa.py_buffer(offsets.astype(wide))
    return pa.Array.from_buffers(kind, len(lengths), [bitmap, data], children=[picked.cast(kind.value_type)])


def fixed_lists(starts: Int64s, lengths: Int64s, items: pa.Array, kind: pa.DataType, nulls: Bools | None) -> pa.Array:
    """Lists of one length; those of another length become null."""
    size = kind.list_size
    fits = lengths == size
    if nulls is not None:
        fits &= ~nulls
    places = np.repeat(np.where(fits, starts, 0), size) + np.tile(np.arange(size), len(starts))
    picked = items.take(from_numpy(places, pa.int64(), np.repeat(fits, size)))
    return pa.FixedSizeListArray.from_arrays(picked, type=kind, mask=pa.array(~fits))


def segments_any(values: Bools, lengths: Int64s) -> Bools:
    """Whether any value of a segment is true, for segments of these lengths one after another; of none, no.

    >>> segments_any(np.array([False, True, False]), np.array([2, 0, 1])).tolist()
    [True, False, False]
    """
    counted = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    ends = np.cumsum(lengths)
    return np.asarray(counted[ends] > counted[ends - lengths], bool)


def segments_all(values: Bools, lengths: Int64s) -> Bools:
    """Whether all values of a segment are true; of none, yes."""
    return ~segments_any(~values, lengths)
