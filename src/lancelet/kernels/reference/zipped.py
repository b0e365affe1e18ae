"""Full-zip pages read: levels and values of one item after the other in a single buffer.

    fixed width     [control word] [value]
    variable width  [control word] [u32 or u64 length] [bytes]

The control word is ``rep << bits_def | def`` in 1, 2 or 4 bytes, absent when there are no levels. An item whose
definition level is above ``max_visible`` is an empty or null list: it has the control word only. A null value of
fixed width has its slot all the same; one of variable width has the control word only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels.refuse_pages import bad_item, check_control, control_width, needs_bits, too_large

__all__ = ["unzip_fixed", "unzip_variable"]

Bytes = NDArray[np.uint8]
Levels = NDArray[np.uint16]
Offsets = NDArray[np.int32] | NDArray[np.int64]


def unzip_fixed(
    data: Bytes, *, bits_rep: int, bits_def: int, max_visible: int, value_bytes: int
) -> tuple[Levels | None, Levels | None, Bytes]:
    """Repetition levels, definition levels (each None if the page has none) and the bytes of all visible values.

    >>> data = np.array([0, 10, 11, 1, 20, 21, 2], np.uint8)  # lists: [value, null], null
    >>> _, definition, values = unzip_fixed(data, bits_rep=0, bits_def=2, max_visible=1, value_bytes=2)
    >>> definition.tolist(), values.tolist()
    ([0, 1, 2], [10, 11, 20, 21])
    """
    control = control_width(bits_rep, bits_def)
    check_control(control, value_bytes)
    rep: list[int] = []
    definition: list[int] = []
    values: list[Bytes] = []
    at, have = 0, len(data)
    while at < have:
        at, r, d = _control(data, at, control, bits_def, len(rep))
        rep.append(r)
        definition.append(d)
        if d <= max_visible:
            if at > have - value_bytes:
                raise bad_item(len(rep) - 1, at, value_bytes, have)
            values.append(data[at : at + value_bytes])
            at += value_bytes
    joined = np.concatenate(values) if values else np.empty(0, dtype=np.uint8)
    return _levels(rep, bits_rep), _levels(definition, bits_def), joined


def unzip_variable(
    data: Bytes, *, bits_rep: int, bits_def: int, max_visible: int, length_bits: int, offset_bits: int
) -> tuple[Levels | None, Levels | None, Offsets, Bytes]:
    """Repetition levels, definition levels, and offsets (of ``offset_bits`` bits) and bytes of all visible values.

    >>> data = np.array([0, 2, 0, 0, 0, 97, 98, 1], np.uint8)  # "ab", null
    >>> _, definition, offsets, values = unzip_variable(
    ...     data, bits_rep=0, bits_def=1, max_visible=1, length_bits=32, offset_bits=32
    ... )
    >>> definition.tolist(), offsets.tolist(), values.tobytes()
    ([0, 1], [0, 2, 2], b'ab')
    """
    control = control_width(bits_rep, bits_def)
    width = _bytes_of(length_bits, "lengths")
    _bytes_of(offset_bits, "offsets")
    rep: list[int] = []
    definition: list[int] = []
    pieces: list[Bytes] = []
    offsets = [0]
    at, have = 0, len(data)
    while at < have:
        at, r, d = _control(data, at, control, bits_def, len(rep))
        rep.append(r)
        definition.append(d)
        length = 0
        if d == 0:
            if at > have - width:
                raise bad_item(len(rep) - 1, at, width, have)
            length = int.from_bytes(data[at : at + width].tobytes(), "little")
            at += width
            if length > have - at:
                raise bad_item(len(rep) - 1, at, length, have)
            pieces.append(data[at : at + length])
            at += length
        if d <= max_visible:
            offsets.append(offsets[-1] + length)
    if offset_bits == 32 and offsets[-1] > np.iinfo(np.int32).max:
        raise too_large(offsets[-1])
    joined = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8)
    ends: Offsets = np.array(offsets, np.int64) if offset_bits == 64 else np.array(offsets, np.int32)
    return _levels(rep, bits_rep), _levels(definition, bits_def), ends, joined


def _control(data: Bytes, at: int, control: int, bits_def: int, item: int) -> tuple[int, int, int]:
    """The place after a control word, and its two levels."""
    if at > len(data) - control:
        raise bad_item(item, at, control, len(data))
    word = int.from_bytes(data[at : at + control].tobytes(), "little")
    return at + control, word >> bits_def & 0xFFFF, word & ((1 << bits_def) - 1)


def _levels(levels: list[int], bits: int) -> Levels | None:
    return np.array(levels, dtype=np.uint16) if bits else None


def _bytes_of(bits: int, what: str) -> int:
    if bits not in (32, 64):
        raise needs_bits(what, bits, "32 or 64")
    return bits // 8
