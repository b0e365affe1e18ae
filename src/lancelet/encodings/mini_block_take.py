"""Single rows of mini-block pages without lists, each reached directly: no chunk is decoded, no list of chunks made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lancelet.encodings import chunk_levels, mini_block_values
from lancelet.encodings.chunks import Chunks, Ints
from lancelet.encodings.mini_block import MiniBlockIndex, look_up
from lancelet.encodings.nested import Leveled, build
from lancelet.encodings.shape import Shape
from lancelet.encodings.values import Bytes
from lancelet.format.layouts import MiniBlockLayout
from lancelet.kernels import chunk_rows

__all__ = ["is_direct", "read_rows"]


def is_direct(layout: MiniBlockLayout) -> bool:
    """Whether rows of the page can be read one by one."""
    if layout.repetition is not None or not mini_block_values.has_direct_access(layout.values):
        return False
    return layout.definition is None or chunk_levels.has_direct_access(layout.definition)


def read_rows(
    layout: MiniBlockLayout, path: Sequence[Shape], index: MiniBlockIndex, data: Bytes, rows: Ints
) -> pa.Array:
    """The skeleton array of single rows of a page whose chunk buffer is ``data``; every row brings its chunk along."""
    has_def = layout.definition is not None
    counts, within, places, lengths = chunk_rows.find(
        data, index.starts, index.sizes, index.first_rows, rows, has_def, layout.num_buffers, layout.has_large_chunk
    )
    chunks = Chunks(data, places[has_def:].T, lengths[has_def:].T, counts)
    values = mini_block_values.decode_at(layout.values, chunks, np.arange(len(rows)), within)
    definition = None
    if layout.definition is not None:
        definition = chunk_levels.decode_at(layout.definition, data, places[0], lengths[0], counts, within)
    return build(path, Leveled(layout.layers, None, definition, len(rows), look_up(path, index, values)))
