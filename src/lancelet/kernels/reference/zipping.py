"""Full-zip pages written: the inverse of ``zipped``, which draws the layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lancelet.kernels.refuse_pages import check_control, check_zip, control_width, needs_bits, too_large, wrong_values

__all__ = ["zip_fixed", "zip_variable"]

Bytes = NDArray[np.uint8]
Levels = NDArray[np.uint16]
Places = NDArray[np.int64]
Offsets = NDArray[np.int32] | NDArray[np.int64]


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
    """The page's buffer, and where each row starts in it followed by its size: what a repetition index holds.

    >>> definition, values = np.array([0, 1, 2], np.uint16), np.array([10, 11, 20, 21], np.uint8)
    >>> kinds = {"bits_rep": 0, "bits_def": 2, "max_rep": 0, "max_visible": 1, "value_bytes": 2}
    >>> zip_fixed(None, definition, values, **kinds)[0].tolist()
    [0, 10, 11, 1, 20, 21, 2]
    """
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
    if length_bits not in (32, 64):
        raise needs_bits("lengths", length_bits, "32 or 64")
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
                part += (end - first).to_bytes(length_bits // 8, "little") + values[first:end].tobytes()
            value += 1
        parts.append(part)
        at += len(part)
    return np.frombuffer(b"".join(parts), np.uint8), np.array([*places, at], dtype=np.int64)


def _control_words(
    rep: Levels | None, definition: Levels | None, items: int, bits_def: int, max_rep: int, max_visible: int
) -> tuple[list[int], NDArray[np.bool_], NDArray[np.bool_]]:
    """Control words of all items, which of them have a value, and which start a row."""
    high = np.zeros(items, dtype=np.int64) if rep is None else rep.astype(np.int64)
    low = np.zeros(items, dtype=np.int64) if definition is None else definition.astype(np.int64)
    return (high << bits_def | low).tolist(), low <= max_visible, (high == max_rep) | (rep is None)
