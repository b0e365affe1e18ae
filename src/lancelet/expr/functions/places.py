"""Places within texts: from bytes to letters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

__all__ = ["letters_before", "text_spans"]

_Int64s = npt.NDArray[np.int64]


def text_spans(texts: pa.Array) -> tuple[_Int64s, _Int64s, npt.NDArray[np.uint8]]:
    """Where each text begins and ends among the bytes of all.

    >>> starts, ends, data = text_spans(pa.array(["ab", "c"]))
    >>> starts.tolist(), ends.tolist(), data.tobytes()
    ([0, 2], [2, 3], b'abc')
    """
    wide = np.dtype(np.int64 if pat.is_large_string(texts.type) or pat.is_large_binary(texts.type) else np.int32)
    _, offsets, data = texts.buffers()
    if offsets is None or not len(texts):
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64), np.zeros(0, np.uint8)
    found = np.frombuffer(offsets, wide, len(texts) + 1, texts.offset * wide.itemsize).astype(np.int64)
    low, high = int(found[0]), int(found[-1])
    view = np.frombuffer(data, np.uint8)[low:high] if data is not None else np.zeros(0, np.uint8)
    return found[:-1] - low, found[1:] - low, view


def letters_before(texts: pa.Array, offsets: _Int64s) -> _Int64s:
    """How many letters stand before a byte of each text.

    >>> letters_before(pa.array(["héé"]), np.array([3])).tolist()
    [2]
    """
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return offsets
    starts, ends, data = text_spans(texts)
    # A letter begins at every byte that does not continue one.
    begins = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80, dtype=np.int64)])
    places = np.minimum(starts + offsets, ends)
    return np.asarray(begins[places] - begins[starts])
