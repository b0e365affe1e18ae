"""Writing mini-block pages: chunks of values, each with its piece of the levels, put together into buffers."""

from __future__ import annotations

import numpy as np

from lancelet.encodings import chunk_levels
from lancelet.encodings.chunks import Ints
from lancelet.encodings.dictionary import StoredDictionary
from lancelet.encodings.encoded import EncodedChunks, Pieces
from lancelet.encodings.leaf_page import EncodedPage, LeafPage, TooManyLevels
from lancelet.encodings.values import Bytes
from lancelet.errors import InvalidInput
from lancelet.format.compressions import Compression
from lancelet.format.layouts import Layer, MiniBlockLayout
from lancelet.format.versions import FileVersion
from lancelet.kernels import level_index, miniblock

__all__ = ["assemble"]

_MOST_LEVELS = 65535
_LARGEST_SMALL_CHUNK, _LARGEST_CHUNK = 32768, 1 << 31


def assemble(page: LeafPage, chunks: EncodedChunks, dictionary: StoredDictionary | None = None) -> EncodedPage:
    """The page: chunk words, chunks, dictionary and repetition index, as far as it has them."""
    large = page.version >= FileVersion.V2_2
    _check_values(page, chunks, large)
    bounds = _level_bounds(page, chunks.counts)
    num_levels = np.zeros(len(chunks.counts), np.int64) if bounds is None else np.diff(bounds)
    if len(num_levels) and num_levels.max() > _MOST_LEVELS:
        raise TooManyLevels
    codecs: list[Compression | None] = []
    levels: list[Pieces] = []
    for side in (page.repetition, page.definition):
        codec = None
        if side is not None and bounds is not None:
            codec, pieces = chunk_levels.encode(side, bounds)
            levels.append(pieces)
        codecs.append(codec)
    _check_sizes(levels, chunks.buffers, large)
    words, data = miniblock.assemble(
        [_parts(pieces) for pieces in levels],
        [_parts(pieces) for pieces in chunks.buffers],
        num_levels,
        _logs(chunks.counts),
        large,
    )
    buffers: list[Bytes] = [words, data]
    if dictionary is not None:
        buffers.append(dictionary.data)
    if page.repetition is not None and bounds is not None:
        depth = sum(layer.is_list for layer in page.layers)
        index = level_index.repetition_index(page.repetition, bounds, depth)
        buffers.append(index.view(np.uint8).reshape(-1))
    layout = MiniBlockLayout(
        values=chunks.encoding,
        layers=page.layers,
        num_buffers=len(chunks.buffers),
        num_items=page.num_items,
        repetition=codecs[0],
        definition=codecs[1],
        dictionary=None if dictionary is None else dictionary.encoding,
        num_dictionary_items=0 if dictionary is None else dictionary.count,
        repetition_index_depth=int(page.repetition is not None),
        has_large_chunk=large,
    )
    return EncodedPage(layout, tuple(buffers), page.num_rows)


def _parts(pieces: Pieces) -> tuple[Bytes, Ints, Ints]:
    return pieces.data, pieces.starts, pieces.sizes


def _level_bounds(page: LeafPage, counts: Ints) -> Ints | None:
    """Where the levels of each chunk begin and end; None for a page without levels."""
    if page.repetition is None and page.definition is None:
        return None
    return level_index.level_bounds(page.definition, highest_visible(page.layers), counts)


def highest_visible(layers: tuple[Layer, ...]) -> int:
    """The highest definition level of an item that has a place among the values."""
    highest = 0
    for layer in layers:
        if layer.is_list:
            break
        highest += layer.definition_levels
    return highest


def _largest(pieces: Pieces) -> int:
    return int(pieces.sizes.max()) if len(pieces.sizes) else 0


def _logs(counts: Ints) -> np.ndarray:
    logs = np.rint(np.log2(counts)).astype(np.uint8)
    logs[-1:] = 0
    return logs


def _check_values(page: LeafPage, chunks: EncodedChunks, large: bool) -> None:
    """Refuse values so wide that two of them exceed a chunk: only a user's request leads here."""
    most = (_LARGEST_CHUNK if large else _LARGEST_SMALL_CHUNK) - 64
    if sum(map(_largest, chunks.buffers)) <= most:
        return
    sizes = sum((pieces.sizes for pieces in chunks.buffers), np.zeros(len(chunks.counts), np.int64))
    if int(sizes.max()) > most:
        raise InvalidInput(
            f"a mini-block of {int(sizes.max()):,} bytes of type {page.kind}, expected at most {most:,}",
            hint="leave lance-encoding:structural-encoding out, or make it fullzip",
        )


def _check_sizes(levels: list[Pieces], values: tuple[Pieces, ...], large: bool) -> None:
    """Cut the page where levels make a chunk larger than its header can say."""
    width = 4 if large else 2
    header = (2 + 2 * len(levels) + width * len(values) + 7) // 8 * 8
    most = _LARGEST_CHUNK if large else _LARGEST_SMALL_CHUNK
    longest = [_largest(pieces) for pieces in levels]
    together = header + sum(size + 7 for size in (*longest, *map(_largest, values)))
    if together <= most and max(longest, default=0) <= _MOST_LEVELS:
        # The largest pieces would fit even if they met in one chunk.
        return
    total = header + sum((pieces.sizes + 7) // 8 * 8 for pieces in (*levels, *values))
    if np.any(total > most) or any(np.any(pieces.sizes > _MOST_LEVELS) for pieces in levels):
        raise TooManyLevels
