"""Picking rows out of Arrow columns by number: several times as fast as Arrow's own filter where many are left."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings import memory
from lancelet.encodings.values import fixed_bits
from lancelet.kernels import gather

__all__ = ["pick"]

Ints = npt.NDArray[np.int64]


def pick(column: pa.Array | pa.ChunkedArray, rows: Ints) -> pa.Array | pa.ChunkedArray:
    """The values at some row numbers; for columns in chunks these must ascend.

    >>> pick(pa.chunked_array([["a", None], ["c", "d"]]), np.array([1, 3])).to_pylist()
    [None, 'd']
    """
    if isinstance(column, pa.Array):
        return _picked(column, rows)
    if column.num_chunks == 1:
        return pa.chunked_array([_picked(column.chunk(0), rows)], column.type)
    pieces, first = [], 0
    cuts = rows.searchsorted(np.cumsum([0, *(len(chunk) for chunk in column.chunks)])).tolist()
    for number, chunk in enumerate(column.chunks):
        if cuts[number] < cuts[number + 1]:
            pieces.append(_picked(chunk, rows[cuts[number] : cuts[number + 1]] - first))
        first += len(chunk)
    return pa.chunked_array(pieces, column.type)


def _picked(array: pa.Array, rows: Ints) -> pa.Array:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _picked(array.storage, rows))
    if pat.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            _picked(array.indices, rows), array.dictionary, ordered=kind.ordered, safe=False
        )
    buffers = _buffers(array, rows)
    if buffers is None:
        return array.take(pa.array(rows))
    validity, nulls = _validity(array, rows)
    return pa.Array.from_buffers(kind, len(rows), [validity, *buffers], nulls)


def _buffers(array: pa.Array, rows: Ints) -> list[pa.Buffer] | None:
    """The buffers of the values picked; None for types that are left to Arrow."""
    kind = array.type
    bits = fixed_bits(kind)
    if bits is not None and bits >= 8 and not pat.is_boolean(kind):
        return [_fixed(array, rows, bits // 8)]
    if pat.is_string(kind) or pat.is_binary(kind):
        return _variable(array, rows, np.dtype(np.int32))
    if pat.is_large_string(kind) or pat.is_large_binary(kind):
        return _variable(array, rows, np.dtype(np.int64))
    return None


def _fixed(array: pa.Array, rows: Ints, width: int) -> pa.Buffer:
    buffer = array.buffers()[1]
    out = memory.empty(len(rows) * width)
    if buffer is None or not len(rows):
        return pa.py_buffer(out)
    values = np.frombuffer(buffer, np.uint8, len(array) * width, array.offset * width)
    if width in (1, 2, 4, 8):
        words = values.view(f"u{width}")
        # All rows are within the array: to clip them changes nothing, and spares a copy.
        np.take(words, rows, out=out.view(words.dtype), mode="clip")
    else:
        gather.take_fixed(values, width, rows, out)
    return pa.py_buffer(out)


def _variable(array: pa.Array, rows: Ints, dtype: np.dtype[np.signedinteger]) -> list[pa.Buffer] | None:
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or not len(array):
        return None
    offsets = np.frombuffer(offset_buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    taken, chosen = gather.take_variable(offsets, data, rows)
    return [pa.py_buffer(taken), pa.py_buffer(chosen)]


def _validity(array: pa.Array, rows: Ints) -> tuple[pa.Buffer | None, int]:
    """The validity of the values picked, and how many of them are null."""
    if not array.null_count:
        return None, 0
    bits = np.frombuffer(array.buffers()[0], np.uint8)[array.offset // 8 : (array.offset + len(array) + 7) // 8]
    valid = np.unpackbits(bits, bitorder="little")[rows + array.offset % 8]
    return pa.py_buffer(np.packbits(valid, bitorder="little")), len(rows) - int(np.count_nonzero(valid))
