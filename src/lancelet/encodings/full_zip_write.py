"""Writing full-zip pages: levels, lengths and values zipped item by item, and the index of their rows."""

from __future__ import annotations

import numpy as np
import pyarrow.types as pat

from lancelet.encodings.chunks import Ints
from lancelet.encodings.full_zip_codecs import StoredFixed, StoredVariable, store_fixed, store_rows, store_variable
from lancelet.encodings.knobs import Knobs
from lancelet.encodings.leaf_page import EncodedPage, LeafPage
from lancelet.encodings.values import Bytes, Fixed, Packed, Variable
from lancelet.errors import Unsupported
from lancelet.format.layouts import FullZipLayout
from lancelet.format.versions import FileVersion
from lancelet.kernels import zipping
from lancelet.kernels.layers import Structure, structure

__all__ = ["encode"]


def encode(page: LeafPage, knobs: Knobs) -> EncodedPage:
    """The page with each value after its levels; any number of levels and any width fit."""
    values = page.values
    if page.dictionary is not None or values is None:
        raise Unsupported(f"values of type {page.kind} in a full-zip page")
    shape = structure(page.layers)
    definition = page.definition
    bits_def = 0 if definition is None or not len(definition) else int(definition.max()).bit_length()
    if not bits_def:
        definition = None
    if isinstance(values, Variable):
        text = pat.is_string(page.kind) or pat.is_large_string(page.kind)
        large = pat.is_large_string(page.kind) or pat.is_large_binary(page.kind)
        stored = store_variable(values, page.validity, knobs, text=text, offset_bits=64 if large else 32)
        return _variable(page, shape, definition, bits_def, stored)
    if isinstance(values, Packed):
        if page.version >= FileVersion.V2_2:
            return _variable(page, shape, definition, bits_def, store_rows(values, page.kind, page.validity, knobs))
        if not all(isinstance(child, Fixed) for child in values.children):
            raise Unsupported(
                "packed structs with fields of varying length need file version 2.2, the file has version "
                f"{page.version.label}"
            )
    return _fixed(page, shape, definition, bits_def, store_fixed(values, page.validity))


def _fixed(
    page: LeafPage, shape: Structure, definition: np.ndarray | None, bits_def: int, stored: StoredFixed
) -> EncodedPage:
    bits_rep = shape.max_rep.bit_length()
    buffers: tuple[Bytes, ...] = (stored.data,)
    if bits_rep or bits_def:
        data, rows = zipping.zip_fixed(
            page.repetition,
            definition,
            stored.data,
            bits_rep=bits_rep,
            bits_def=bits_def,
            max_rep=shape.max_rep,
            max_visible=shape.visible[0],
            value_bytes=stored.width,
        )
        buffers = (data, _index(rows)) if bits_rep else (data,)
    layout = FullZipLayout(
        values=stored.encoding,
        layers=page.layers,
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=_levels(page),
        num_visible_items=page.num_items,
        bits_per_value=8 * stored.width,
    )
    return EncodedPage(layout, buffers, page.num_rows)


def _variable(
    page: LeafPage, shape: Structure, definition: np.ndarray | None, bits_def: int, stored: StoredVariable
) -> EncodedPage:
    bits_rep = shape.max_rep.bit_length()
    data, rows = zipping.zip_variable(
        page.repetition,
        definition,
        stored.strings.offsets,
        stored.strings.data,
        bits_rep=bits_rep,
        bits_def=bits_def,
        max_rep=shape.max_rep,
        max_visible=shape.visible[0],
        length_bits=stored.offset_bits,
    )
    layout = FullZipLayout(
        values=stored.encoding,
        layers=page.layers,
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=_levels(page),
        num_visible_items=page.num_items,
        bits_per_offset=stored.offset_bits,
    )
    return EncodedPage(layout, (data, _index(rows)), page.num_rows)


def _levels(page: LeafPage) -> int:
    """Items, whether they have a place among the values or not."""
    for levels in (page.repetition, page.definition):
        if levels is not None:
            return len(levels)
    return page.num_items


def _index(rows: Ints) -> Bytes:
    """Where rows begin, in as few bytes each as the last of them needs."""
    width = next(width for width in (1, 2, 4, 8) if int(rows[-1]) < 1 << 8 * width)
    return rows.astype(f"<u{width}").view(np.uint8)
