"""Mini-block pages: small values in chunks of a few kilobytes, each chunk with its own levels and value buffers.

Buffers of the page: chunk words (size and value count of each chunk), the chunks, then a dictionary and a repetition
index where the page has them. All but the chunks are its index: small, read once, kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings import block, chunk_levels, mini_block_values
from lancelet.encodings.chunks import Chunks, Ints
from lancelet.encodings.nested import Leveled, build
from lancelet.encodings.shape import Shape
from lancelet.encodings.values import Bytes, Fixed, Indexed, Values, take
from lancelet.errors import Corrupt
from lancelet.format.layouts import MiniBlockLayout
from lancelet.kernels import miniblock

__all__ = ["MiniBlockIndex", "chunks_of_rows", "index_buffers", "look_up", "parse_index", "read_rows"]

DATA_BUFFER = 1


@dataclass(frozen=True, slots=True)
class MiniBlockIndex:
    """Where the chunks of a page lie and which rows start in them."""

    #: Position of each chunk in the chunk buffer, its bytes, its values.
    starts: Ints
    sizes: Ints
    counts: Ints
    #: First row that starts in chunk ``c`` or later, for each chunk and behind the last.
    first_rows: Ints
    #: First row of which chunk ``c`` holds any piece: one that began earlier may go on in it.
    touched_rows: Ints
    dictionary: Values | None


def index_buffers(layout: MiniBlockLayout) -> tuple[int, ...]:
    """Numbers of the page's buffers that make its index, in the order :func:`parse_index` takes them."""
    extra = (layout.dictionary is not None) + (layout.repetition_index_depth > 0)
    return (0, *range(2, 2 + extra))


def parse_index(layout: MiniBlockLayout, rows: int, buffers: Sequence[Bytes], data_size: int) -> MiniBlockIndex:
    """The index from its buffers."""
    starts, sizes, counts = miniblock.chunk_table(buffers[0], layout.has_large_chunk, layout.num_items, data_size)
    dictionary = None
    if layout.dictionary is not None:
        dictionary = block.decode(layout.dictionary, buffers[1], layout.num_dictionary_items)
    if layout.repetition_index_depth:
        first_rows, touched = _first_rows(buffers[-1], len(starts), layout.repetition_index_depth, rows)
    elif any(layer.is_list for layer in layout.layers):
        # Without an index the rows can only be counted by reading all chunks: the page is one unit.
        first_rows = np.concatenate([np.zeros(1, np.int64), np.full(len(starts), rows, np.int64)])
        touched = np.zeros(len(starts), np.int64)
    else:
        if layout.num_items != rows:
            raise Corrupt(f"page has {layout.num_items:,} items, expected {rows:,} as it has no lists")
        first_rows = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        touched = first_rows[:-1]
    return MiniBlockIndex(starts, sizes, counts, first_rows, touched, dictionary)


def _first_rows(index: Bytes, chunks: int, depth: int, rows: int) -> tuple[Ints, Ints]:
    """From (rows completed, items left over) of each chunk, u64 each, to the first row that starts in each chunk.

    The second array says which row each chunk begins with, were it in its middle.
    """
    if len(index) != chunks * (depth + 1) * 8:
        raise Corrupt(f"repetition index has {len(index):,} bytes, expected {chunks * (depth + 1) * 8:,}")
    table = np.frombuffer(index.tobytes(), np.int64).reshape(chunks, depth + 1)
    if chunks and (table.min() < 0 or int(table[:, 0].max()) > rows):
        raise Corrupt(f"repetition index counts more rows than the page's {rows:,}")
    ended = np.cumsum(table[:, 0])
    if chunks and ended[-1] != rows:
        raise Corrupt(f"repetition index counts {int(ended[-1]):,} rows, expected {rows:,}")
    begun = ended + (table[:, 1] > 0)
    begun[-1:] = rows
    zero = np.zeros(1, np.int64)
    return np.concatenate([zero, begun]), np.concatenate([zero, ended])[:-1]


def chunks_of_rows(index: MiniBlockIndex, rows: slice | Ints) -> Ints:
    """Numbers of the chunks that hold any piece of the rows, ascending. ``rows``: a range, or sorted numbers.

    A row may begin in one chunk and end in a later one, up to where the next row begins.
    """
    first_rows = index.first_rows
    if isinstance(rows, slice):
        if rows.start >= rows.stop:
            return np.zeros(0, np.int64)
        first = _chunk_where_begins(first_rows, np.array([rows.start]))[0]
        return np.arange(first, np.searchsorted(index.touched_rows, rows.stop, "left"), dtype=np.int64)
    begins = _chunk_where_begins(first_rows, rows)
    ends = np.searchsorted(index.touched_rows, rows + 1, "left")
    marks = np.zeros(len(index.starts) + 1, np.int64)
    np.add.at(marks, begins, 1)
    np.add.at(marks, np.maximum(ends, begins + 1), -1)
    return np.flatnonzero(np.cumsum(marks[:-1]))


def _chunk_where_begins(first_rows: Ints, rows: Ints) -> Ints:
    """The chunk in which each row starts: the last whose first row is not behind it."""
    return np.searchsorted(first_rows[1:], rows, "right")


def read_rows(
    layout: MiniBlockLayout,
    path: Sequence[Shape],
    index: MiniBlockIndex,
    data: Bytes,
    starts: Ints,
    picked: Ints,
    rows: slice | Ints,
) -> pa.Array:
    """The skeleton array of some rows; ``starts`` says where in ``data`` the ``picked`` chunks begin."""
    sizes, counts = index.sizes[picked], index.counts[picked]
    has_rep, has_def = layout.repetition is not None, layout.definition is not None
    num_levels, buffer_starts, buffer_sizes = miniblock.chunk_headers(
        data, starts, sizes, has_rep, has_def, layout.num_buffers, layout.has_large_chunk
    )
    level_buffers = has_rep + has_def
    chunks = Chunks(data, buffer_starts[:, level_buffers:], buffer_sizes[:, level_buffers:], counts)
    if not level_buffers:
        num_levels = counts
    columns = [
        (np.ascontiguousarray(buffer_starts[:, at]), np.ascontiguousarray(buffer_sizes[:, at]))
        for at in range(level_buffers)
    ]
    repetition = definition = None
    if layout.repetition is not None:
        repetition = chunk_levels.decode(layout.repetition, data, *columns[0], num_levels)
    if layout.definition is not None:
        definition = chunk_levels.decode(layout.definition, data, *columns[-1], num_levels)
    if repetition is None:
        return _read_flat(layout, path, index, chunks, picked, definition, rows)
    return _read_lists(layout, path, index, chunks, picked, num_levels, repetition, definition, rows)


def _read_flat(
    layout: MiniBlockLayout,
    path: Sequence[Shape],
    index: MiniBlockIndex,
    chunks: Chunks,
    picked: Ints,
    definition: chunk_levels.Levels | None,
    rows: slice | Ints,
) -> pa.Array:
    """Without lists a row is a value: single ones can be reached directly, ranges are cut out of whole chunks."""
    firsts = index.first_rows[picked]
    if definition is not None and len(definition) != chunks.total:
        raise Corrupt(f"page has {len(definition):,} levels for {chunks.total:,} values")
    if isinstance(rows, slice):
        values = look_up(path, index, mini_block_values.decode(layout.values, chunks))
        array = build(path, Leveled(layout.layers, None, definition, chunks.total, values))
        return array.slice(rows.start - int(firsts[0]), rows.stop - rows.start)
    owner = np.searchsorted(picked, np.searchsorted(index.first_rows, rows, "right") - 1)
    within = rows - firsts[owner]
    position = (np.cumsum(chunks.counts) - chunks.counts)[owner] + within
    if mini_block_values.has_direct_access(layout.values):
        picked_values = mini_block_values.decode_at(layout.values, chunks, owner, within)
    else:
        picked_values = take(mini_block_values.decode(layout.values, chunks), position)
    values = look_up(path, index, picked_values)
    chosen = None if definition is None else definition[position]
    return build(path, Leveled(layout.layers, None, chosen, len(rows), values))


def _read_lists(
    layout: MiniBlockLayout,
    path: Sequence[Shape],
    index: MiniBlockIndex,
    chunks: Chunks,
    picked: Ints,
    num_levels: Ints,
    repetition: chunk_levels.Levels,
    definition: chunk_levels.Levels | None,
    rows: slice | Ints,
) -> pa.Array:
    """With lists, whole chunks are decoded and the rows cut out.

    Where the picked chunks have a gap before them, the first may go on with a row that began earlier. Such a
    remainder is made to look like a row of its own, and is then not among those that are kept.
    """
    top = sum(layer.is_list for layer in layout.layers)
    if definition is not None and len(definition) != len(repetition):
        raise Corrupt(f"page has {len(definition):,} definition levels, expected {len(repetition):,}")
    if isinstance(rows, slice) and _are_whole(index, picked, rows) and repetition[:1].tolist() == [top]:
        values = look_up(path, index, mini_block_values.decode(layout.values, chunks))
        array = build(path, Leveled(layout.layers, repetition, definition, chunks.total, values))
        if len(array) != rows.stop - rows.start:
            raise Corrupt(f"page's levels begin {len(array):,} rows, expected {rows.stop - rows.start:,}")
        return array
    chunk_begins = np.cumsum(num_levels) - num_levels
    after_gap = np.flatnonzero(np.diff(picked, prepend=-1) > 1)
    forced = chunk_begins[after_gap]
    forced = forced[forced < len(repetition)]
    remainders = forced[repetition[forced] != top]
    if len(remainders):
        repetition[remainders] = top
    begins = np.flatnonzero(repetition == top)
    is_row = np.ones(len(begins), bool)
    is_row[np.searchsorted(begins, remainders)] = False
    counts = index.first_rows[picked + 1] - index.first_rows[picked]
    numbers = np.repeat(index.first_rows[picked] - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    if len(numbers) != int(is_row.sum()):
        raise Corrupt(f"page's levels begin {int(is_row.sum()):,} rows, its repetition index says {len(numbers):,}")
    values = look_up(path, index, mini_block_values.decode(layout.values, chunks))
    array = build(path, Leveled(layout.layers, repetition, definition, chunks.total, values))
    positions = np.flatnonzero(is_row)
    if isinstance(rows, slice):
        first = int(positions[rows.start - int(numbers[0])]) if rows.stop > rows.start else 0
        return array.slice(first, rows.stop - rows.start)
    return array.take(pa.array(positions[np.searchsorted(numbers, rows)]))


def _are_whole(index: MiniBlockIndex, picked: Ints, rows: slice) -> bool:
    """Whether the rows are all those that begin in the picked chunks, which follow each other."""
    if not len(picked):
        return False
    return bool(index.first_rows[picked[0]] == rows.start and index.first_rows[picked[-1] + 1] == rows.stop)


def look_up(path: Sequence[Shape], index: MiniBlockIndex, values: Values) -> Values:
    """Look dictionary indices up, where the page has a dictionary; a dictionary column keeps both."""
    if index.dictionary is None:
        return values
    if not isinstance(values, Fixed) or values.bits not in (8, 16, 32, 64):
        raise Corrupt(f"dictionary indices are {type(values).__name__.lower()} values, expected whole integers")
    if pat.is_dictionary(path[-1].field.type):
        return Indexed(values, index.dictionary)
    return take(index.dictionary, values.words())
