"""Full-zip pages: levels and values of one item after the other in a single buffer.

    fixed width     [control word] [value]
    variable width  [control word] [u32 or u64 length] [bytes]

The control word is ``rep << bits_def | def`` in 1, 2 or 4 bytes, and absent when there are neither levels. An item whose
definition level is above ``max_visible`` is an empty or null list: it has the control word only. A null value of fixed
width has its slot all the same; one of variable width has the control word only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels.refuse_pages import (
    bad_item,
    check_control,
    check_zip,
    control_width,
    needs_bits,
    too_large,
    wrong_values,
)

__all__ = ["unzip_fixed", "unzip_variable", "zip_fixed", "zip_variable"]

Bytes = NDArray[np.uint8]
Levels = NDArray[np.uint16]
Places = NDArray[np.int64]
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
    rep, definition, values = [], [], []
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
    dtype = np.int32 if _bytes_of(offset_bits, "offsets") == 4 else np.int64
    rep, definition, pieces, offsets = [], [], [], [0]
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
    return _levels(rep, bits_rep), _levels(definition, bits_def), np.array(offsets, dtype=dtype), joined


def zip_fixed(
    rep: Levels | None,
    definition: Levels | None,
    values: Bytes,
    *,
    bits_rep: int,
    bits_def: int,
    max_rep: int,
    max_visible: int,
    value_bytes: int,
) -> tuple[Bytes, Places]:
    """The page's buffer, and where each row starts in it followed by its size, which is what a repetition index holds."""
    control = control_width(bits_rep, bits_def)
    items = check_zip(rep, definition, bits_rep, bits_def, len(values) // value_bytes if value_bytes else 0)
    check_control(control, value_bytes)
    words, visible, starts = _control_words(rep, definition, items, bits_def, max_rep, max_visible)
    if int(visible.sum()) * value_bytes != len(values):
        raise wrong_values(f"{int(visible.sum())} visible items of {value_bytes} bytes, {len(values)} bytes of values")
    parts, places, at, value = [], [], 0, 0
    for word, seen, new in zip(words, visible.tolist(), starts.tolist(), strict=True):
        if new:
            places.append(at)
        part = word.to_bytes(control, "little")
        if seen:
            part += values[value : value + value_bytes].tobytes()
            value += value_bytes
        parts.append(part)
        at += len(part)
    return np.frombuffer(b"".join(parts), np.uint8), np.array([*places, at], dtype=np.int64)


def zip_variable(
    rep: Levels | None,
    definition: Levels | None,
    offsets: Offsets,
    values: Bytes,
    *,
    bits_rep: int,
    bits_def: int,
    max_rep: int,
    max_visible: int,
    length_bits: int,
) -> tuple[Bytes, Places]:
    """As :func:`zip_fixed`; ``offsets`` has an entry for each visible item, null ones included, and one more."""
    control = control_width(bits_rep, bits_def)
    width = _bytes_of(length_bits, "lengths")
    items = check_zip(rep, definition, bits_rep, bits_def, len(offsets) - 1)
    words, visible, starts = _control_words(rep, definition, items, bits_def, max_rep, max_visible)
    if int(visible.sum()) != len(offsets) - 1:
        raise wrong_values(f"{int(visible.sum())} visible items, {len(offsets) - 1} values")
    levels = np.zeros(items, dtype=np.uint16) if definition is None else definition
    parts, places, at, value = [], [], 0, 0
    for word, d, seen, new in zip(words, levels.tolist(), visible.tolist(), starts.tolist(), strict=True):
        if new:
            places.append(at)
        part = word.to_bytes(control, "little")
        if seen:
            first, end = int(offsets[value]), int(offsets[value + 1])
            if not 0 <= first <= end <= len(values):
                raise wrong_values(f"value {value} has offsets {first} and {end} in {len(values)} bytes")
            if d == 0:
                if end - first >= 1 << length_bits:
                    raise too_large(end - first)
                part += (end - first).to_bytes(width, "little") + values[first:end].tobytes()
            value += 1
        parts.append(part)
        at += len(part)
    return np.frombuffer(b"".join(parts), np.uint8), np.array([*places, at], dtype=np.int64)


def _control(data: Bytes, at: int, control: int, bits_def: int, item: int) -> tuple[int, int, int]:
    """The place after a control word, and its two levels."""
    if at > len(data) - control:
        raise bad_item(item, at, control, len(data))
    word = int.from_bytes(data[at : at + control].tobytes(), "little")
    return at + control, word >> bits_def & 0xFFFF, word & ((1 << bits_def) - 1)


def _control_words(
    rep: Levels | None, definition: Levels | None, items: int, bits_def: int, max_rep: int, max_visible: int
) -> tuple[list[int], NDArray[np.bool_], NDArray[np.bool_]]:
    """Control words of all items, which of them have a value, and which start a row."""
    high = np.zeros(items, dtype=np.int64) if rep is None else rep.astype(np.int64)
    low = np.zeros(items, dtype=np.int64) if definition is None else definition.astype(np.int64)
    return (high << bits_def | low).tolist(), low <= max_visible, (high == max_rep) | (rep is None)


def _levels(levels: list[int], bits: int) -> Levels | None:
    return np.array(levels, dtype=np.uint16) if bits else None


def _bytes_of(bits: int, what: str) -> int:
    if bits not in (32, 64):
        raise needs_bits(what, bits, "32 or 64")
    return bits // 8
