"""Boxes around geometries: of GeoArrow's own layouts at any depth, and of points as well-known binary.

point        struct<x, y>, or fixed-size list of 2 to 4 numbers
line ...     lists of points, lists of those, and so on
box          struct<xmin, ymin, xmax, ymax>
wkb          u8 byte order | u32 1 | f64 x | f64 y
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import Unsupported
from lancelet.rows.addresses import UInt64s
from lancelet.rows.runs import Int64s

__all__ = ["SIDES", "Boxes", "boxes_of", "is_geometry", "packed", "unpacked"]

SIDES = ("xmin", "ymin", "xmax", "ymax")
_Floats = npt.NDArray[np.float64]
#: Bytes of a point as well-known binary, and its number among geometries.
_POINT_BYTES, _POINT = 21, 1


@dataclass(frozen=True, slots=True)
class Boxes:
    """A box for each row that has one: four numbers a row, in the order of SIDES."""

    #: Which of the rows.
    rows: Int64s
    sides: _Floats


def is_geometry(kind: pa.DataType) -> bool:
    """Whether a type may hold geometries.

    >>> is_geometry(pa.list_(pa.struct({"x": pa.float64(), "y": pa.float64()}))), is_geometry(pa.string())
    (True, False)
    """
    while pat.is_list(kind) or pat.is_large_list(kind):
        kind = kind.value_type
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return True
    if pat.is_fixed_size_list(kind):
        return 2 <= kind.list_size <= 4 and bool(pat.is_float64(kind.value_type))
    if not pat.is_struct(kind):
        return False
    names = {field.name for field in kind if pat.is_float64(field.type)}
    return names >= {"x", "y"} or names >= set(SIDES)


def boxes_of(geometries: pa.Array) -> Boxes:
    """The boxes of geometries; nulls, and geometries of no point, have none."""
    kind = geometries.type
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return _of_points(_wkb(geometries), np.flatnonzero(geometries.is_valid()))
    rows = np.flatnonzero(geometries.is_valid())
    if pat.is_struct(kind) and kind.get_field_index("xmin") >= 0:
        sides = np.stack([np.asarray(geometries.field(name).cast(pa.float64())) for name in SIDES], axis=1)[rows]
        whole = ~np.isnan(sides).any(axis=1)
        return Boxes(rows[whole], sides[whole])
    present = geometries.drop_null() if geometries.null_count else geometries
    starts, ends = np.arange(len(present)), np.arange(1, len(present) + 1)
    while pat.is_list(present.type) or pat.is_large_list(present.type):
        # Offsets of a list lead to its values; of these the places within all points come in the end.
        offsets = np.asarray(present.offsets).astype(np.int64)
        starts, ends, present = offsets[starts], offsets[ends], present.values
    points = _coordinates(present)
    filled = np.flatnonzero(ends > starts)
    return _around(points, starts[filled], ends[filled], rows[filled])


def _coordinates(points: pa.Array) -> _Floats:
    """x and y of points."""
    if pat.is_fixed_size_list(points.type):
        size = points.type.list_size
        flat = np.asarray(points.values.slice(points.offset * size, len(points) * size))
        return flat.reshape(-1, size)[:, :2]
    return np.stack([np.asarray(points.field(name)) for name in ("x", "y")], axis=1)


def _around(points: _Floats, starts: Int64s, ends: Int64s, rows: Int64s) -> Boxes:
    if not len(rows):
        return Boxes(rows, np.empty((0, 4)))
    if bool((ends - starts == 1).all()):
        return _of_points(points[starts], rows)
    # Every second piece is what lies between two geometries, if anything does.
    cuts = np.stack([starts, ends], axis=1).ravel()
    padded = np.concatenate([points, np.full((1, 2), np.nan)])
    low = np.fmin.reduceat(padded, cuts, axis=0)[::2]
    high = np.fmax.reduceat(padded, cuts, axis=0)[::2]
    sides = np.concatenate([low, high], axis=1)
    whole = ~np.isnan(sides).any(axis=1)
    return Boxes(rows[whole], sides[whole])


def _of_points(points: _Floats, rows: Int64s) -> Boxes:
    whole = ~np.isnan(points).any(axis=1)
    return Boxes(rows[whole], np.concatenate([points, points], axis=1)[whole])


def _wkb(values: pa.Array) -> _Floats:
    """x and y of the values that are not null; Unsupported where one is no point."""
    present = values.drop_null().cast(pa.large_binary())
    _, stored, data = present.buffers()
    offsets = np.frombuffer(stored, np.int64, len(present) + 1 + present.offset)[present.offset :] if stored else None
    if offsets is None or not len(present):
        return np.empty((0, 2))
    found = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    if not bool((np.diff(offsets) == _POINT_BYTES).all()):
        raise Unsupported(
            "an RTREE index over well-known binary is over points alone",
            hint="store lines and areas in GeoArrow's own layouts",
        )
    points = found.reshape(-1, _POINT_BYTES)
    little = points[:, 0] == 1
    made = np.empty((len(points), 2))
    for order, which in (("<", little), (">", ~little)):
        kinds = np.ascontiguousarray(points[which, 1:5]).view(f"{order}u4").ravel()
        if bool((kinds != _POINT).any()):
            raise Unsupported(f"geometry {int(kinds[kinds != _POINT][0])} as well-known binary is not indexed")
        made[which] = np.ascontiguousarray(points[which, 5:]).view(f"{order}f8").reshape(-1, 2)
    return made


def packed(sides: _Floats) -> pa.Array:
    """Boxes as bytes whose order keeps neighbours together: a number for the middle of each, then the box itself."""
    keys = _interleaved(_rank(sides[:, 0] / 2 + sides[:, 2] / 2), _rank(sides[:, 1] / 2 + sides[:, 3] / 2))
    stored = np.empty((len(sides), 40), np.uint8)
    stored[:, :8] = keys.astype(">u8").view(np.uint8).reshape(-1, 8)
    stored[:, 8:] = np.ascontiguousarray(sides).view(np.uint8).reshape(-1, 32)
    return pa.Array.from_buffers(pa.binary(40), len(sides), [None, pa.py_buffer(stored)])


def unpacked(values: pa.Array) -> _Floats:
    """The boxes that :func:`packed` put away.

    >>> unpacked(packed(np.array([[1.0, 2.0, 3.0, 4.0]]))).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    """
    stored = np.frombuffer(values.buffers()[1], np.uint8, 40 * len(values), 40 * values.offset)
    return np.ascontiguousarray(stored.reshape(-1, 40)[:, 8:]).view(np.float64).reshape(-1, 4)


def _rank(numbers: _Floats) -> UInt64s:
    """32 bits that are in the order of numbers."""
    bits = numbers.astype(np.float32).view(np.uint32)
    ranks = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return ranks.astype(np.uint64)


def _interleaved(x: UInt64s, y: UInt64s) -> UInt64s:
    return _spread(x) | _spread(y) << np.uint64(1)


def _spread(numbers: UInt64s) -> UInt64s:
    """Each bit followed by one that is 0."""
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ):
        numbers = (numbers | numbers << np.uint64(shift)) & np.uint64(mask)
    return numbers
