"""Full-zip pages: large values, each stored right after its levels and, where lengths vary, its length.

    buffer 0: for each item   [control word] [value]              values of one width
                              [control word] [length] [value]     values of varying length
    buffer 1: for each row, and behind the last, where it begins in buffer 0; 1, 2, 4 or 8 bytes each

The control word holds both levels of the item, (repetition << bits_def) | definition, in 1, 2 or 4 bytes; there is none
where both have no bits. Buffer 1 exists where rows cannot be found by counting: with lists or varying lengths. Reading
a whole page does without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.encodings import memory
from lancelet.encodings.chunk_levels import Levels
from lancelet.encodings.chunks import Ints
from lancelet.encodings.full_zip_values import fixed_values, stored_bits, variable_values
from lancelet.encodings.nested import Leveled, build
from lancelet.encodings.shape import Shape
from lancelet.encodings.values import Bytes, Values, Variable
from lancelet.errors import Corrupt
from lancelet.format.columns import Range
from lancelet.format.layouts import FullZipLayout
from lancelet.kernels import gather, zipped
from lancelet.kernels.layers import Structure, structure
from lancelet.kernels.refuse_pages import control_width

__all__ = ["FullZipIndex", "index_ranges", "load_index", "read_rows", "stride_without_levels"]

# Reading this many bytes of the index that are not needed costs less than one more range.
_CHEAP = 4096


@dataclass(frozen=True, slots=True)
class FullZipIndex:
    """Where the wanted rows lie in buffer 0: one piece for neighbouring rows, else one for each row."""

    starts: Ints
    ends: Ints


def index_ranges(layout: FullZipLayout, buffers: Sequence[Range], rows: int, wanted: slice | Ints) -> list[Range]:
    """What of buffer 1 says where the ``wanted`` rows lie; ``rows`` are those of the page."""
    if not _has_index(layout) or _is_all(rows, wanted):
        return []
    if len(buffers) != 2:
        raise Corrupt(f"full-zip page has {len(buffers)} buffers, expected 2")
    start, size = buffers[1]
    width = _index_width(size, rows)
    return [(start + first * width, (last - first + 1) * width) for first, last in _index_pieces(width, wanted)]


def load_index(
    layout: FullZipLayout, buffers: Sequence[Range], rows: int, wanted: slice | Ints, loaded: Sequence[Bytes]
) -> FullZipIndex:
    """The places of the wanted rows; ``loaded`` are the bytes that :func:`index_ranges` named."""
    if len(buffers) not in (1, 2):
        raise Corrupt(f"full-zip page has {len(buffers)} buffers, expected 1 or 2")
    size = buffers[0][1]
    if not _has_index(layout):
        return _counted(_stride(layout), rows, size, wanted)
    if _is_all(rows, wanted):
        return FullZipIndex(np.zeros(1, np.int64), np.array([size], np.int64))
    width = _index_width(buffers[1][1], rows)
    entries = _entries(np.concatenate(loaded) if len(loaded) != 1 else loaded[0], width)
    if isinstance(wanted, slice):
        starts, ends = entries[:1], entries[-1:]
    elif len(loaded) == 1:
        numbers = wanted - wanted[:1]
        starts, ends = entries[numbers], entries[numbers + 1]
    else:
        starts, ends = entries[::2], entries[1::2]
    wrong = np.flatnonzero((starts < 0) | (starts > ends) | (ends > size))
    if len(wrong):
        at = int(wrong[0])
        raise Corrupt(f"index puts a row at bytes {int(starts[at]):,}..{int(ends[at]):,} of {size:,}")
    return FullZipIndex(starts, ends)


def read_rows(
    layout: FullZipLayout, path: Sequence[Shape], index: FullZipIndex, data: Bytes, wanted: slice | Ints, *, whole: bool
) -> pa.Array:
    """The skeleton array of the wanted rows.

    With ``whole``, ``data`` is buffer 0; otherwise it holds the pieces that the index names, side by side.
    """
    kind = path[-1].field.type
    count = wanted.stop - wanted.start if isinstance(wanted, slice) else len(wanted)
    if layout.bits_per_value is not None and not control_width(layout.bits_rep, layout.bits_def):
        values = fixed_values(layout.values, kind, _without_levels(layout, index, data, wanted, whole=whole), count)
        return build(path, Leveled(layout.layers, None, _definition(layout, None, count), count, values))
    pieces = _pieces(index, data, wanted, whole=whole)
    shape = structure(layout.layers)
    if layout.bits_per_value is not None:
        repetition, definition, values = _read_fixed(layout, shape, kind, pieces)
    else:
        repetition, definition, values = _read_variable(layout, shape, kind, pieces)
    begun = values.count if repetition is None else int(np.count_nonzero(repetition == shape.max_rep))
    if begun != count:
        raise Corrupt(f"full-zip page holds {begun:,} rows where {count:,} are expected")
    definition = _definition(layout, definition, values.count if repetition is None else len(repetition))
    return build(path, Leveled(layout.layers, repetition, definition, values.count, values))


def _without_levels(
    layout: FullZipLayout, index: FullZipIndex, data: Bytes, wanted: slice | Ints, *, whole: bool
) -> Bytes:
    """Values that stand side by side: a view of those of a range, a copy of single ones."""
    if not whole:
        return data
    if isinstance(wanted, slice):
        return data[int(index.starts[0]) : int(index.ends[0])]
    width = _stride(layout)
    out = memory.empty(len(wanted) * width)
    if width:
        gather.take_fixed(data, width, np.ascontiguousarray(wanted), out)
    return out


def _pieces(index: FullZipIndex, data: Bytes, wanted: slice | Ints, *, whole: bool) -> Bytes:
    """The items of the wanted rows, side by side."""
    if not whole:
        return data
    if isinstance(wanted, slice):
        return data[int(index.starts[0]) : int(index.ends[0])]
    sizes = index.ends - index.starts
    out = memory.empty(int(sizes.sum()))
    gather.copy_pieces(data, np.ascontiguousarray(index.starts), sizes, out)
    return out


def _read_fixed(
    layout: FullZipLayout, shape: Structure, kind: pa.DataType, data: Bytes
) -> tuple[Levels | None, Levels | None, Values]:
    width = _value_width(layout)
    repetition, definition, values = zipped.unzip_fixed(
        data, bits_rep=layout.bits_rep, bits_def=layout.bits_def, max_visible=shape.visible[0], value_bytes=width
    )
    count = len(values) // width if width else 0
    return repetition, definition, fixed_values(layout.values, kind, values, count)


def _read_variable(
    layout: FullZipLayout, shape: Structure, kind: pa.DataType, data: Bytes
) -> tuple[Levels | None, Levels | None, Values]:
    repetition, definition, offsets, values = zipped.unzip_variable(
        data,
        bits_rep=layout.bits_rep,
        bits_def=layout.bits_def,
        max_visible=shape.visible[0],
        length_bits=layout.bits_per_offset or 0,
        offset_bits=64,
    )
    return repetition, definition, variable_values(layout.values, kind, Variable(len(offsets) - 1, offsets, values))


def _definition(layout: FullZipLayout, found: Levels | None, count: int) -> Levels | None:
    """A page in which nothing is null or empty may leave its levels out, whatever its layers allow for."""
    if found is not None:
        return found
    return np.zeros(count, np.uint16) if any(layer.definition_levels for layer in layout.layers) else None


def _has_index(layout: FullZipLayout) -> bool:
    return layout.bits_rep > 0 or layout.bits_per_value is None


def _value_width(layout: FullZipLayout) -> int:
    """Bytes of a value of fixed width: what its encoding comes to and what the page says must agree."""
    stored = stored_bits(layout.values)
    if stored != layout.bits_per_value or stored % 8:
        raise Corrupt(f"full-zip page has values of {layout.bits_per_value} bits, its encoding makes {stored}")
    return stored // 8


def _stride(layout: FullZipLayout) -> int:
    return control_width(layout.bits_rep, layout.bits_def) + _value_width(layout)


def stride_without_levels(layout: FullZipLayout) -> int | None:
    """Bytes from one value to the next where values of one width lie side by side; None for any other page."""
    if layout.bits_per_value is None or control_width(layout.bits_rep, layout.bits_def):
        return None
    return _value_width(layout)


def _counted(stride: int, rows: int, size: int, wanted: slice | Ints) -> FullZipIndex:
    """Places of rows that all take ``stride`` bytes."""
    if rows * stride != size:
        raise Corrupt(f"full-zip page has {size:,} bytes, expected {rows * stride:,} for {rows:,} rows of {stride}")
    if isinstance(wanted, slice):
        return FullZipIndex(np.array([wanted.start * stride]), np.array([wanted.stop * stride]))
    return FullZipIndex(wanted * stride, (wanted + 1) * stride)


def _is_all(rows: int, wanted: slice | Ints) -> bool:
    return isinstance(wanted, slice) and wanted.start == 0 and wanted.stop == rows


def _index_width(size: int, rows: int) -> int:
    width, rest = divmod(size, rows + 1)
    if rest or width not in (1, 2, 4, 8):
        raise Corrupt(f"full-zip index has {size:,} bytes for {rows:,} rows, expected 1, 2, 4 or 8 for each")
    return width


def _index_pieces(width: int, wanted: slice | Ints) -> list[tuple[int, int]]:
    """First and last entry of each piece of the index that is to be read."""
    if isinstance(wanted, slice):
        near = (wanted.stop - wanted.start) * width <= _CHEAP
        return [(wanted.start, wanted.stop)] if near else [(wanted.start, wanted.start), (wanted.stop, wanted.stop)]
    if not len(wanted):
        return []
    first, last = int(wanted[0]), int(wanted[-1]) + 1
    if (last - first) * width <= _CHEAP * len(wanted):
        return [(first, last)]
    return [(row, row + 1) for row in wanted.tolist()]


def _entries(data: Bytes, width: int) -> Ints:
    entries = np.frombuffer(data.tobytes(), f"<u{width}")
    if width == 8 and len(entries) and entries.max() > np.iinfo(np.int64).max:
        raise Corrupt(f"full-zip index names byte {int(entries.max()):,}")
    return entries.astype(np.int64)
