"""Blob pages of 2.1: the values lie elsewhere in the file, the page says where.

A page's inner layout holds a struct of u64 position and u64 size for each row. A value of no bytes has size 0 and,
unless it is null, position 0; a null has its levels for a position: definition << 16 | repetition. Values begin at
multiples of 64, before the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import pyarrow as pa

from lancelet.config import default_options
from lancelet.encodings import mini_block, mini_block_values, mini_block_write
from lancelet.encodings.chunk_levels import Levels
from lancelet.encodings.chunks import Ints
from lancelet.encodings.knobs import Knobs
from lancelet.encodings.leaf_page import EncodedPage, LeafPage
from lancelet.encodings.nested import Leveled, build
from lancelet.encodings.shape import Leaf, Shape
from lancelet.encodings.values import Bytes, Fixed, Packed, Variable
from lancelet.errors import Corrupt, InvalidInput, OverBudget, Unsupported
from lancelet.format.blobs import BLOB_KEY
from lancelet.format.columns import Range
from lancelet.format.layouts import BlobLayout, Layer, MiniBlockLayout, PageLayout

__all__ = ["BlobIndex", "PendingBlobs", "data_ranges", "encode", "is_blob", "load_index", "read_places", "read_rows"]

_DESCRIPTION = pa.struct(
    [pa.field("position", pa.uint64(), nullable=False), pa.field("size", pa.uint64(), nullable=False)]
)


@dataclass(frozen=True, slots=True)
class BlobIndex:
    """Where in the file the value of each row of a page lies."""

    positions: Ints
    sizes: Ints
    #: None where no value is null.
    definition: Levels | None

    def of(self, rows: slice | Ints) -> BlobIndex:
        """The same for some of the rows."""
        return BlobIndex(
            self.positions[rows], self.sizes[rows], None if self.definition is None else self.definition[rows]
        )


def load_index(layout: BlobLayout, rows: int, buffers: Sequence[Bytes]) -> BlobIndex:
    """The places of all values of a page, from all its buffers."""
    if not isinstance(layout.inner, MiniBlockLayout):
        raise Unsupported(f"blob page with an inner layout {type(layout.inner).__name__}")
    if any(layer.is_list for layer in layout.layers):
        raise Unsupported("blob pages inside lists")
    descriptions = _descriptions(layout.inner, rows, buffers)
    positions, sizes = (np.asarray(descriptions.field(at)) for at in range(2))
    # Both stand for bytes of one file: together they stay within what its size can be.
    limit = np.uint64(1 << 62)
    if np.any(positions > limit) or np.any(sizes > limit):
        raise Corrupt("blob page describes a value beyond the end of any file")
    absent = sizes == 0
    levels = np.where(absent, positions >> np.uint64(16), np.uint64(0))
    if np.any(levels > 0xFFFF):
        raise Corrupt(f"blob page has definition level {int(levels.max()):,}")
    definition = levels.astype(np.uint16) if any(layer.definition_levels for layer in layout.layers) else None
    return BlobIndex(np.where(absent, 0, positions).astype(np.int64), sizes.astype(np.int64), definition)


def _descriptions(layout: MiniBlockLayout, rows: int, buffers: Sequence[Bytes]) -> pa.StructArray:
    numbers = mini_block.index_buffers(layout)
    if len(buffers) != len(numbers) + 1:
        raise Corrupt(f"blob page has {len(buffers)} buffers, expected {len(numbers) + 1}")
    data = buffers[mini_block.DATA_BUFFER]
    index = mini_block.parse_index(layout, rows, [buffers[number] for number in numbers], len(data))
    path = (Leaf(pa.field("description", _DESCRIPTION, nullable=False), 0),)
    picked = mini_block.chunks_of_rows(index, slice(0, rows))
    array = mini_block.read_rows(layout, path, index, data, index.starts[picked], picked, slice(0, rows))
    if len(array) != rows:
        raise Corrupt(f"blob page describes {len(array):,} values, expected {rows:,}")
    return array


def data_ranges(index: BlobIndex, rows: slice | Ints, *, whole: bool) -> list[Range]:
    """Where in the file the values of the rows lie. ``whole`` asks for one range around all of them."""
    wanted = index.of(rows)
    present = np.flatnonzero(wanted.sizes)
    if not len(present):
        return []
    starts, sizes = wanted.positions[present], wanted.sizes[present]
    _check_budget(sizes)
    if whole:
        first = int(starts.min())
        return [(first, int((starts + sizes).max()) - first)]
    return list(zip(starts.tolist(), sizes.tolist(), strict=True))


def _check_budget(sizes: Ints) -> None:
    budget = default_options().memory_budget
    total = float(sizes.astype(np.float64).sum())
    if total > budget:
        raise OverBudget(
            f"blobs of {total:,.0f} bytes asked for at once, more than the memory budget of {budget:,}",
            hint="read fewer rows at a time, or raise LANCELET_MEMORY_BUDGET",
        )


def read_places(layout: BlobLayout, path: Sequence[Shape], index: BlobIndex, rows: slice | Ints) -> pa.Array:
    """The skeleton array of where the values of the rows lie: asked for as structs, they are not read."""
    wanted = index.of(rows)
    count = len(wanted.sizes)
    parts = (wanted.positions, wanted.sizes)
    words = (Fixed(64, count, np.ascontiguousarray(part).view(np.uint8)) for part in parts)
    return build(path, Leveled(layout.layers, None, wanted.definition, count, Packed(count, tuple(words))))


def read_rows(
    layout: BlobLayout,
    path: Sequence[Shape],
    index: BlobIndex,
    buffers: Sequence[Bytes],
    rows: slice | Ints,
    *,
    whole: bool,
) -> pa.Array:
    """The skeleton array of the rows from the bytes that :func:`data_ranges` named."""
    wanted = index.of(rows)
    count = len(wanted.sizes)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(wanted.sizes)])
    if whole:
        present = np.flatnonzero(wanted.sizes)
        data = _gathered(buffers, wanted.positions[present], wanted.sizes[present])
    else:
        data = np.concatenate(buffers) if len(buffers) > 1 else buffers[0] if buffers else np.zeros(0, np.uint8)
    if len(data) != offsets[-1]:
        raise Corrupt(f"blobs have {len(data):,} bytes in the file, expected {int(offsets[-1]):,}")
    return build(path, Leveled(layout.layers, None, wanted.definition, count, Variable(count, offsets, data)))


def _gathered(buffers: Sequence[Bytes], starts: Ints, sizes: Ints) -> Bytes:
    """The values out of one range that spans all of them; a single one is not copied."""
    if not len(starts):
        return np.zeros(0, np.uint8)
    span = buffers[0]
    places = starts - int(starts.min())
    if np.any(places + sizes > len(span)):
        raise Corrupt(f"blobs reach {int((places + sizes).max()) - len(span):,} bytes beyond the end of the file")
    pieces = [span[at : at + size] for at, size in zip(places.tolist(), sizes.tolist(), strict=True)]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


@dataclass(frozen=True, slots=True)
class PendingBlobs:
    """A page whose values must be placed in the file before it can be finished."""

    page: LeafPage
    #: Every value that has bytes, in row order.
    payloads: tuple[Bytes, ...]

    @property
    def num_rows(self) -> int:
        """Rows of the page."""
        return self.page.num_rows

    def placed(self, put: Callable[[Bytes], Range]) -> EncodedPage:
        """The page, once ``put`` has placed each value and said where."""
        return encode_descriptions(self.page, np.array([put(payload)[0] for payload in self.payloads], np.int64))


def is_blob(page: LeafPage) -> bool:
    """Whether the column's values are to lie outside its pages."""
    return page.metadata.get(BLOB_KEY, "").lower() == "true" and isinstance(page.values, Variable)


def encode(page: LeafPage) -> PendingBlobs:
    """The values of a blob column apart from the page that will say where they are."""
    if page.repetition is not None:
        raise Unsupported("blobs inside lists")
    if not isinstance(page.values, Variable):
        raise InvalidInput(f"blob column of type {page.kind}, expected large_binary")
    data, bounds = page.values.data, page.values.offsets.tolist()
    payloads = tuple(data[start:end] for start, end in pairwise(bounds) if end > start)
    return PendingBlobs(page, payloads)


def encode_descriptions(page: LeafPage, positions: Ints) -> EncodedPage:
    """The page of a blob column, given where each value that has bytes begins in the file."""
    if not isinstance(page.values, Variable):
        raise InvalidInput(f"blob column of type {page.kind}, expected large_binary")
    sizes = np.diff(page.values.offsets).astype(np.int64)
    places = np.zeros(page.num_items, np.int64)
    places[sizes > 0] = positions
    if page.definition is not None:
        null = page.definition > 0
        places[null] = page.definition[null].astype(np.int64) << 16
    fields = tuple(Fixed(64, page.num_items, column.view(np.uint8)) for column in (places, sizes))
    values = Packed(page.num_items, fields)
    inner = LeafPage(
        kind=_DESCRIPTION,
        version=page.version,
        num_rows=page.num_rows,
        layers=(Layer.ALL_VALID_ITEM,),
        repetition=None,
        definition=None,
        num_items=page.num_items,
        values=values,
    )
    encoded = mini_block_write.assemble(inner, mini_block_values.encode(values, Knobs()))
    return EncodedPage(BlobLayout(cast(PageLayout, encoded.layout), page.layers), encoded.buffers, page.num_rows)
