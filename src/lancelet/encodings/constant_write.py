"""Writing constant pages: all items null, none there at all, or (since 2.2) all of them equal."""

from __future__ import annotations

import numpy as np
import pyarrow.types as pat

from lancelet.encodings import chunk_levels
from lancelet.encodings.chunk_levels import Levels
from lancelet.encodings.leaf_page import EncodedPage, LeafPage
from lancelet.encodings.values import Bytes, Fixed, Variable
from lancelet.errors import Unsupported
from lancelet.format import compressions as c
from lancelet.format.layouts import ConstantLayout, Layer
from lancelet.format.versions import FileVersion

__all__ = ["encode"]

# The longest value that the layout itself can hold.
_LONGEST_INLINE = 32
_SAMPLE = 64
# From this many values on, other pages use dictionaries.
_FEWEST_FOR_DICTIONARY = 100
_PREFIX = "lance-encoding:"


def encode(page: LeafPage) -> EncodedPage | None:
    """The page as a constant one; None where its values differ, or are stored smaller otherwise."""
    if pat.is_struct(page.kind) and page.values is None:
        return _empty_structs(page)
    valid = None
    if page.validity is not None:
        valid = np.unpackbits(page.validity, count=page.num_items, bitorder="little").astype(bool)
    if page.values is None or not page.num_items or (valid is not None and not valid.any()):
        return _without_value(page)
    if page.version < FileVersion.V2_2 or page.dictionary is not None:
        return None
    scalar = _scalar(page, valid)
    if scalar is None or not _is_smallest(page, scalar, valid):
        return None
    return _with_scalar(page, scalar)


def _empty_structs(page: LeafPage) -> EncodedPage:
    """Structs without fields: that there are some is all there is to say."""
    if page.layers != (Layer.ALL_VALID_ITEM,):
        raise Unsupported("empty structs that are null, or inside lists or other structs")
    return EncodedPage(ConstantLayout((Layer.NULLABLE_ITEM,)), (), page.num_rows)


def _without_value(page: LeafPage) -> EncodedPage:
    if page.layers == (Layer.NULLABLE_ITEM,):
        return EncodedPage(ConstantLayout(page.layers), (), page.num_rows)
    if page.version < FileVersion.V2_2:
        return EncodedPage(ConstantLayout(page.layers), (_raw(page.repetition), _raw(page.definition)), page.num_rows)
    repetition, repetition_data, num_rep = _packed(page.repetition)
    definition, definition_data, num_def = _packed(page.definition)
    layout = ConstantLayout(
        page.layers,
        repetition=repetition,
        definition=definition,
        num_rep_values=num_rep,
        num_def_values=num_def,
    )
    return EncodedPage(layout, (repetition_data, definition_data), page.num_rows)


def _raw(levels: Levels | None) -> Bytes:
    return np.zeros(0, np.uint8) if levels is None else levels.view(np.uint8)


def _packed(levels: Levels | None) -> tuple[c.Compression | None, Bytes, int]:
    """Levels in their smallest form, its description unless they stand as they are, and how many they are."""
    if levels is None or not len(levels):
        return None, _raw(levels), 0
    codec, pieces = chunk_levels.encode(levels, np.array([0, len(levels)], np.int64))
    if isinstance(codec, c.Flat):
        return None, _raw(levels), 0
    return codec, pieces.data, len(levels)


def _scalar(page: LeafPage, valid: np.ndarray | None) -> Bytes | None:
    """The bytes of the value that all valid items share."""
    match page.values:
        case Fixed(1, count, data):
            bits = np.unpackbits(data, count=count, bitorder="little")
            bits = bits if valid is None else bits[valid]
            return bits[:1] if bits.min() == bits.max() else None
        case Fixed(bits, count, data):
            words = data[: count * (bits // 8)]
            if bits in (8, 16, 32, 64):
                words = words.view(f"<u{bits // 8}")
                if valid is None and words[0] != words[-1]:
                    return None
            table = words.reshape(count, -1)
            first = table[0 if valid is None else int(valid.argmax())]
            if not _same(table[:_SAMPLE], first, None if valid is None else valid[:_SAMPLE]):
                return None
            return first.view(np.uint8) if _same(table, first, valid) else None
        case Variable(_, offsets, data):
            return _shared_string(offsets, data, valid)
    return None


def _same(table: np.ndarray, first: np.ndarray, valid: np.ndarray | None) -> bool:
    equal = (table == first).all(axis=1)
    return bool((equal if valid is None else equal | ~valid).all())


def _shared_string(offsets: np.ndarray, data: Bytes, valid: np.ndarray | None) -> Bytes | None:
    """Null strings have no bytes, so equal ones repeat each other throughout ``data``."""
    first = 0 if valid is None else int(valid.argmax())
    length = int(offsets[first + 1] - offsets[first])
    if valid is None and length != offsets[-1] - offsets[-2]:
        return None
    lengths = np.diff(offsets[: _SAMPLE + 1])
    if not _same(lengths.reshape(-1, 1), np.array([length]), None if valid is None else valid[:_SAMPLE]):
        return None
    lengths = np.diff(offsets)
    if not _same(lengths.reshape(-1, 1), np.array([length]), valid):
        return None
    repeats = np.array_equal(data[length:], data[: len(data) - length])
    return data[:length] if repeats else None


def _is_smallest(page: LeafPage, scalar: Bytes, valid: np.ndarray | None) -> bool:
    """Whether raw levels, all that such a page can have, cost less than mini-blocks with packed ones would.

    An estimate; what a user's metadata asks for is not part of it, so then the page is constant.
    """
    levels = [side for side in (page.repetition, page.definition) if side is not None]
    if not levels or any(key.startswith(_PREFIX) for key in page.metadata):
        return True
    count, size = page.num_items, len(scalar)
    packed_levels = 0
    for side in levels:
        blocks = -(-len(side) // 1024)
        packed_levels += min(2 * len(side), 128 * blocks * max(1, int(side.max()).bit_length()))
    elsewhere = packed_levels + count * _bits_elsewhere(page, scalar, valid) // 8 + size + 32
    return size + sum(2 * len(side) for side in levels) <= elsewhere


def _bits_elsewhere(page: LeafPage, scalar: Bytes, valid: np.ndarray | None) -> int:
    """About what a mini-block takes for each value: next to nothing for runs, a bit for an index or a boolean."""
    runs = 0 if valid is None else 1
    match page.values:
        case Fixed(1):
            return 1
        case Fixed(bits, count) if bits in (64, 128) and count >= _FEWEST_FOR_DICTIONARY:
            return runs
        case Fixed(8 | 16 | 32 | 64):
            return runs and int.from_bytes(scalar.tobytes(), "little").bit_length()
        case Variable(count) if len(scalar) > 1 and count >= _FEWEST_FOR_DICTIONARY:
            return runs
        case Variable():
            return 8 * len(scalar) + 32
    return 8 * len(scalar)


def _with_scalar(page: LeafPage, scalar: Bytes) -> EncodedPage:
    inline = isinstance(page.values, Fixed) and len(scalar) <= _LONGEST_INLINE
    layout = ConstantLayout(page.layers, inline_value=scalar.tobytes() if inline else None)
    buffers: list[Bytes] = []
    if isinstance(page.values, Fixed) and not inline:
        buffers.append(_scalar_buffer([scalar]))
    elif isinstance(page.values, Variable):
        large = pat.is_large_string(page.kind) or pat.is_large_binary(page.kind)
        offsets = np.array([0, len(scalar)], np.int64 if large else np.int32)
        buffers.append(_scalar_buffer([offsets.view(np.uint8), scalar]))
    if page.repetition is not None or page.definition is not None:
        buffers += [_raw(page.repetition), _raw(page.definition)]
    return EncodedPage(layout, tuple(buffers), page.num_rows)


def _scalar_buffer(parts: list[Bytes]) -> Bytes:
    """u32 number of parts, their lengths, the parts."""
    head = np.array([len(parts), *map(len, parts)], np.uint32)
    return np.concatenate([head.view(np.uint8), *parts])
