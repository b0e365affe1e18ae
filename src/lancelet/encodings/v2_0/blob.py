"""Blobs of the first kind: rows of (position, size) in the file; (1, 0) is null, (0, 0) is empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.budget import check_budget
from lancelet.encodings.v2_0.buffers import PageBuffers, Rows
from lancelet.encodings.v2_0.page import read_page, read_values
from lancelet.encodings.v2_0.steps import Steps, fetch
from lancelet.encodings.values import Bytes, Fixed, Packed
from lancelet.errors import Corrupt
from lancelet.format.arrays import ArrayEncoding
from lancelet.format.columns import Range

__all__ = ["DESCRIPTION", "describe", "read_blobs"]

#: The type of the rows that stand for blobs.
DESCRIPTION = pa.struct([pa.field("position", pa.uint64(), False), pa.field("size", pa.uint64(), False)])
_NULL = (1, 0)


def read_blobs(
    encoding: ArrayEncoding, kind: pa.DataType, source: PageBuffers, rows: Rows, file_size: int
) -> Steps[Callable[[], pa.Array]]:
    """The bytes of some blobs; asked for as structs, where they lie."""
    if pat.is_struct(kind):
        return (yield from read_page(encoding, kind, source, rows))
    if not pat.is_large_binary(kind):
        raise Corrupt(f"column of blobs has type {kind}, expected large_binary")
    described = (yield from read_values(encoding, DESCRIPTION, source, rows))().values
    if not isinstance(described, Packed):
        raise Corrupt("descriptions of blobs are not packed structs")
    positions, sizes = (_words(child) for child in described.children)
    filled = np.flatnonzero(sizes)
    limit = np.uint64(file_size)
    outside = sizes[filled] > limit - np.minimum(positions[filled], limit)
    if outside.any():
        at = filled[int(outside.argmax())]
        raise Corrupt(f"blob at {positions[at]}, {sizes[at]} bytes long, ends past the file's {file_size:,} bytes")
    total = float(sizes.astype(np.float64).sum())
    if total > file_size:
        check_budget(int(total))
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes.astype(np.int64))])
    pieces = yield from fetch(list(zip(positions[filled].tolist(), sizes[filled].tolist(), strict=True)))
    valid = (positions != _NULL[0]) | (sizes != 0)

    def finish() -> pa.Array:
        data = np.concatenate([np.zeros(0, np.uint8), *pieces])
        mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        nulls = 0 if mask is None else -1
        return pa.Array.from_buffers(kind, len(sizes), [mask, pa.py_buffer(ends), pa.py_buffer(data)], nulls)

    return finish


def _words(values: object) -> np.ndarray:
    if not isinstance(values, Fixed) or values.bits != 64:
        raise Corrupt("descriptions of blobs are not made of 64-bit numbers")
    return values.words()


def describe(array: pa.Array, place: Callable[[Bytes], Range]) -> pa.Array:
    """The rows that stand for the blobs of an array, each of which ``place`` writes into the file."""
    positions, sizes = np.zeros(len(array), np.uint64), np.zeros(len(array), np.uint64)
    for at, blob in _payloads(array):
        if blob is None:
            positions[at], sizes[at] = _NULL
        elif len(blob):
            positions[at], sizes[at] = place(blob)
    columns = [pa.array(positions), pa.array(sizes)]
    return pa.StructArray.from_arrays(columns, fields=list(DESCRIPTION))


def _payloads(array: pa.Array) -> Iterable[tuple[int, Bytes | None]]:
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(array) + 1, 8 * array.offset).tolist()
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    there = np.asarray(array.is_valid()).tolist()
    for at in range(len(array)):
        yield at, data[offsets[at] : offsets[at + 1]] if there[at] else None
