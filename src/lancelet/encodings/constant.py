"""Constant pages: one value, or none, for every item; only the levels, if any, take space.

Buffers by their number: 0 the scalar is in the layout, or all is null; 1 the scalar; 2 repetition and definition
levels; 3 the scalar, repetition, definition. A scalar buffer: u32 count, that many u32 lengths, then the buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings import block
from lancelet.encodings.budget import check_budget, nulls
from lancelet.encodings.chunk_levels import Levels
from lancelet.encodings.nested import Leveled, build
from lancelet.encodings.shape import Leaf, Shape, skeleton_type
from lancelet.encodings.values import Bytes, Fixed, Values, Variable, fixed_bits
from lancelet.errors import Corrupt
from lancelet.format.compressions import Compression
from lancelet.format.layouts import ConstantLayout, Layer

__all__ = ["read_all", "without_levels"]


def without_levels(buffers: int) -> bool:
    """Whether any number of rows can be made up from the layout and the scalar alone."""
    return buffers in (0, 1)


def read_all(layout: ConstantLayout, path: Sequence[Shape], buffers: Sequence[Bytes], count: int) -> pa.Array:
    """The skeleton array: of ``count`` items where the page has no levels, else of the whole page."""
    if len(buffers) > 3:
        raise Corrupt(f"constant page has {len(buffers)} buffers, expected at most 3")
    scalar_buffer = buffers[0] if len(buffers) in (1, 3) else None
    if scalar_buffer is not None and layout.inline_value is not None:
        raise Corrupt("constant page has its value both in the layout and in a buffer")
    repetition = definition = None
    if len(buffers) >= 2:
        repetition = _levels(layout.repetition, buffers[-2], layout.num_rep_values)
        definition = _levels(layout.definition, buffers[-1], layout.num_def_values)
        count = _visible(layout, repetition, definition)
    all_null = scalar_buffer is None and layout.inline_value is None
    if all_null and repetition is None and definition is None:
        kind = path[-1].field.type
        if pat.is_struct(kind) and not kind.num_fields:
            # A struct without fields is written so although it is not null.
            return build(path, Leveled((Layer.ALL_VALID_ITEM,) * len(path), None, None, count, None))
        return nulls(count, skeleton_type(tuple(path)))
    values = None if all_null else _repeated(path[-1], layout.inline_value, scalar_buffer, count)
    return build(path, Leveled(layout.layers, repetition, definition, count, values))


def _levels(encoding: Compression | None, data: Bytes, count: int) -> Levels | None:
    if encoding is not None:
        decoded = block.decode(encoding, data, count)
        if not isinstance(decoded, Fixed) or decoded.bits != 16:
            raise Corrupt("levels of a constant page are not of 16 bits")
        return decoded.words()
    if not len(data):
        return None
    if len(data) % 2:
        raise Corrupt(f"level buffer has {len(data):,} bytes, expected an even number")
    return np.frombuffer(data.tobytes(), np.uint16)


def _visible(layout: ConstantLayout, repetition: Levels | None, definition: Levels | None) -> int:
    """Items that stand for values: those not swallowed by a null or empty list."""
    if definition is None:
        return 0 if repetition is None else len(repetition)
    highest = 0
    for layer in layout.layers:
        if layer.is_list:
            break
        highest += layer.definition_levels
    return int(np.count_nonzero(definition <= highest))


def _repeated(leaf: Shape, inline: bytes | None, buffer: Bytes | None, count: int) -> Values:
    if not isinstance(leaf, Leaf):
        raise Corrupt(f"column {leaf.field.name!r} is not a leaf")
    bits = fixed_bits(leaf.field.type)
    pieces = [np.frombuffer(inline, np.uint8)] if inline is not None else _scalar_buffers(buffer)
    check_budget(count * (sum(map(len, pieces)) if bits is not None else 8 + len(pieces[-1])))
    if bits is not None:
        if len(pieces) != 1 or len(pieces[0]) != (bits + 7) // 8:
            raise Corrupt(f"constant of {sum(map(len, pieces))} bytes, expected {(bits + 7) // 8}")
        if bits == 1:
            return Fixed(1, count, np.full((count + 7) // 8, 0xFF * (int(pieces[0][0]) & 1), np.uint8))
        return Fixed(bits, count, np.tile(pieces[0], count))
    if len(pieces) != 2 or len(pieces[0]) not in (8, 16):
        raise Corrupt(f"constant string has {len(pieces)} buffers, expected two offsets and bytes")
    offsets = np.frombuffer(pieces[0].tobytes(), f"i{len(pieces[0]) // 2}")
    length = len(pieces[1])
    if offsets[0] != 0 or offsets[1] != length:
        raise Corrupt(f"constant string of {length} bytes has offsets {offsets.tolist()}")
    return Variable(count, np.arange(count + 1, dtype=np.int64) * length, np.tile(pieces[1], count))


def _scalar_buffers(data: Bytes | None) -> list[Bytes]:
    if data is None or len(data) < 4:
        raise Corrupt("scalar buffer of a constant page is missing or cut short")
    count = int(data[:4].view(np.uint32)[0])
    head = 4 + 4 * count
    if count > 2 or len(data) < head:
        raise Corrupt(f"scalar buffer of {len(data)} bytes declares {count} buffers")
    lengths = np.frombuffer(data[4:head].tobytes(), np.uint32).astype(np.int64)
    if int(lengths.sum()) != len(data) - head:
        raise Corrupt(
            f"scalar buffer has {len(data) - head:,} bytes behind its lengths, expected {int(lengths.sum()):,}"
        )
    ends = head + np.cumsum(lengths)
    return [data[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
