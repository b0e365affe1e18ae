"""Encoding a page: the choice between the layouts of 2.1 and 2.2.

Constant where all items are equal or null; full-zip where values are wide; mini-blocks for everything else.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings import blob, constant_write, dictionary, full_zip_write, mini_block_values
from lancelet.encodings.choose import fixed_statistics, is_narrow
from lancelet.encodings.full_zip_codecs import holds_no_item
from lancelet.encodings.knobs import Knobs, parse_knobs
from lancelet.encodings.leaf_page import EncodedPage, LeafPage, TooManyLevels
from lancelet.encodings.mini_block_write import assemble
from lancelet.encodings.values import Fixed, FixedList, Packed, Values
from lancelet.errors import Unsupported
from lancelet.format.versions import FileVersion

__all__ = ["encode_page"]

# Chunks of 2.1 end at 32 KiB; some of that is for the levels.
_LARGEST_SMALL_TARGET = 24 * 2**10


def encode_page(page: LeafPage) -> EncodedPage | blob.PendingBlobs:
    """The page in the layout that suits it. TooManyLevels if it must be cut before any can hold it."""
    if blob.is_blob(page):
        return blob.encode(page)
    constant = constant_write.encode(page)
    if constant is not None:
        return constant
    values = page.values
    if values is None:
        raise Unsupported(f"values of type {page.kind} in a page that is not constant")
    knobs = parse_knobs(page.metadata, compressible=not isinstance(values, FixedList | Packed))
    if page.version < FileVersion.V2_2:
        knobs = replace(knobs, chunk_bytes=min(knobs.chunk_bytes, _LARGEST_SMALL_TARGET))
    if isinstance(values, Packed) and not all(isinstance(child, Fixed) for child in values.children):
        return full_zip_write.encode(page, knobs)
    flat = isinstance(values, FixedList) and page.repetition is None and is_narrow(values, knobs)
    if isinstance(values, FixedList) and flat and holds_no_item(values, page.validity):
        return full_zip_write.encode(page, knobs)
    try:
        return _mini_block(page, values, knobs) or full_zip_write.encode(page, knobs)
    except TooManyLevels:
        if page.num_rows > 1:
            raise
        if page.dictionary is not None:
            raise Unsupported(
                f"a single row with {page.num_items:,} items of type {page.kind} and many empty or null lists",
                hint="store the column without a dictionary",
            ) from None
        # One row cannot be cut; full-zip counts levels one by one.
        return full_zip_write.encode(page, knobs)


def _mini_block(page: LeafPage, values: Values, knobs: Knobs) -> EncodedPage | None:
    """The page in mini-blocks; None if its values are too wide for them."""
    if page.dictionary is not None:
        stored = dictionary.encode(page.dictionary, _offset_bits(page.kind.value_type), knobs)
        return assemble(page, mini_block_values.encode(values, knobs), stored)
    offset_bits = _offset_bits(page.kind)
    statistics = fixed_statistics(values) if isinstance(values, Fixed) else None
    indexed = dictionary.index(values, offset_bits, knobs, statistics)
    if indexed is not None:
        stored = dictionary.encode(indexed.items, offset_bits, knobs)
        chunks = mini_block_values.encode(indexed.indices, knobs)
        if statistics is None or knobs.compression not in ("lz4", "zstd"):
            return assemble(page, chunks, stored)
        # What a general compressor makes of either form can only be tried.
        plain = mini_block_values.encode(values, knobs, statistics=statistics)
        if chunks.padded_size + len(stored.data) < plain.padded_size:
            return assemble(page, chunks, stored)
        return assemble(page, plain)
    if not isinstance(values, Packed) and not is_narrow(values, knobs):
        return None
    text = pat.is_string(page.kind) or pat.is_large_string(page.kind)
    chunks = mini_block_values.encode(values, knobs, text=text, offset_bits=offset_bits, statistics=statistics)
    return assemble(page, chunks)


def _offset_bits(kind: pa.DataType) -> int:
    return 64 if pat.is_large_string(kind) or pat.is_large_binary(kind) else 32
