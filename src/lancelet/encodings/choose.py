"""Choosing: what a look at a page's values says of them, and which encoding it speaks for. All functions are pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from lancelet.encodings import rle
from lancelet.encodings.bitpacking import BLOCK
from lancelet.encodings.chunks import Ints
from lancelet.encodings.encoded import MOST_VALUES, values_per_chunk
from lancelet.encodings.knobs import Knobs
from lancelet.encodings.values import Fixed, FixedList, Indexed, Packed, Values, Variable
from lancelet.kernels import bitpack, runs

__all__ = [
    "SMALL_SAMPLE",
    "Codec",
    "DictionaryLimits",
    "FixedStatistics",
    "best_codec",
    "dictionary_limits",
    "fixed_statistics",
    "index_bytes",
    "is_narrow",
    "sample_bounds",
    "sample_refuses",
    "wants_split",
    "wants_symbols",
    "widest",
]

#: Values narrower than this share chunks; wider ones stand alone.
NARROW_BYTES = 256
_WORDS = (8, 16, 32, 64)
_FEWEST_FOR_DICTIONARY = 100
_MOST_DICTIONARY_ITEMS = 100_000
_SAMPLE, _SAMPLE_BLOCKS = 4096, 32
SMALL_SAMPLE = 128
_MOSTLY_DISTINCT = 0.98
# Strings shorter than this, or less of them, do not pay for a symbol table.
_FEWEST_SYMBOL_BYTES, _SHORTEST_FOR_SYMBOLS = 32 * 2**10, 5
# What a chunk takes besides its values, and a second buffer in it.
_CHUNK, _SECOND_BUFFER = 16, 8
_ENTROPY_SAMPLE, _LOW_ENTROPY = 64, 4.0


class Codec(Enum):
    """How values of one width are stored in chunks."""

    FLAT = "flat"
    PACKED = "packed"
    RUNS = "runs"


@dataclass(frozen=True, slots=True)
class FixedStatistics:
    """What values of one width would take in each form; None for a form that cannot be smaller than the others."""

    count: int
    plain_bytes: int
    packed_bytes: int | None = None
    run_bytes: int | None = None
    #: Runs of equal values, however long.
    runs: int = 0

    @property
    def least_bytes(self) -> int:
        """The smallest of the forms."""
        return min(size for size in (self.plain_bytes, self.packed_bytes, self.run_bytes) if size is not None)


def fixed_statistics(values: Fixed) -> FixedStatistics:
    """Look at all values twice: at their widths, and at their runs."""
    raw = (values.count * values.bits + 7) // 8
    plain = raw + _chunks(values.count, values_per_chunk(values.bits))
    if values.bits not in (*_WORDS, 128):
        return FixedStatistics(values.count, plain, runs=values.count)
    item = values.bits // 8
    found = runs.count_runs(values.data, item)
    if values.bits == 128:
        return FixedStatistics(values.count, plain, runs=found)
    widths = bitpack.block_widths(values.words())
    packed = int(widths.sum(dtype=np.int64)) * BLOCK // 8 + len(widths) * item + _chunks(values.count, BLOCK)
    run_bytes = plain
    if found * (item + 1) <= min(plain, packed):
        # Runs are cut at the ends of chunks and after 255 values: there can only be more.
        run_bytes = rle.stored_bytes(values) + _chunks(values.count, MOST_VALUES, _CHUNK + _SECOND_BUFFER)
    return FixedStatistics(
        values.count, plain, packed if packed < plain else None, run_bytes if run_bytes < plain else None, found
    )


def _chunks(count: int, per_chunk: int, each: int = _CHUNK) -> int:
    """What so many values take besides themselves."""
    return each * -(-count // per_chunk)


def best_codec(statistics: FixedStatistics, knobs: Knobs) -> Codec:
    """The form that takes least; run lengths only below the user's threshold.

    >>> best_codec(FixedStatistics(1000, 8000, packed_bytes=1000, run_bytes=1000), Knobs())
    <Codec.RUNS: 'runs'>
    """
    if knobs.compression == "none":
        return Codec.FLAT
    packed = statistics.packed_bytes
    few = knobs.rle_threshold is None or statistics.runs < statistics.count * knobs.rle_threshold
    if few and statistics.run_bytes is not None and (packed is None or statistics.run_bytes <= packed):
        return Codec.RUNS
    return Codec.FLAT if packed is None else Codec.PACKED


def wants_split(values: Fixed, knobs: Knobs) -> bool:
    """Whether sorting bytes by place first helps a general compressor: the places of a few values differ little."""
    if knobs.byte_stream_split == "off" or values.bits not in (32, 64):
        return False
    if knobs.byte_stream_split == "on":
        return True
    width = values.bits // 8
    sample = values.data[: min(values.count, _ENTROPY_SAMPLE) * width].reshape(-1, width)
    return sum(_entropy(sample[:, place]) for place in range(width)) / width < _LOW_ENTROPY


def _entropy(values: np.ndarray) -> float:
    """Bits of information in each of a few bytes."""
    part = np.unique(values, return_counts=True)[1] / len(values)
    return float(-(part * np.log2(part)).sum())


def wants_symbols(values: Variable, *, text: bool, offset_bits: int, knobs: Knobs) -> bool:
    """Whether to try replacing frequent pieces of strings by symbols."""
    if knobs.compression is not None:
        return knobs.compression == "fsst"
    size = len(values.data) + (values.count + 1) * offset_bits // 8
    return text and size >= _FEWEST_SYMBOL_BYTES and widest(values) >= _SHORTEST_FOR_SYMBOLS


def widest(values: Values) -> int:
    """Bytes of the largest value; single bits count nothing."""
    match values:
        case Fixed(bits):
            return bits // 8
        case FixedList(dimension, _, items):
            return dimension * widest(items)
        case Variable(count, offsets):
            return int(np.diff(offsets).max()) if count else 0
        case Packed(_, children):
            return sum(map(widest, children))
        case Indexed(_, items):
            return widest(items)


def is_narrow(values: Values, knobs: Knobs) -> bool:
    """Whether values share chunks: as the user says, or because none is wide."""
    if knobs.structure is not None:
        return knobs.structure == "miniblock"
    return widest(values) < NARROW_BYTES


@dataclass(frozen=True, slots=True)
class DictionaryLimits:
    """How large a dictionary may become before plain values are the better choice."""

    items: int
    total_bytes: int
    item_bytes: int | None = None


def dictionary_limits(count: int, raw_bytes: int, knobs: Knobs) -> DictionaryLimits | None:
    """The limits for so many values; None if there are too few.

    >>> dictionary_limits(1000, 8000, Knobs())
    DictionaryLimits(items=500, total_bytes=6400, item_bytes=None)
    """
    items = min(count // knobs.dictionary_divisor, _MOST_DICTIONARY_ITEMS)
    if count < _FEWEST_FOR_DICTIONARY or not items:
        return None
    return DictionaryLimits(items, int(raw_bytes * knobs.dictionary_size_ratio), knobs.dictionary_max_bytes)


def sample_bounds(count: int) -> Ints | None:
    """Starts of the blocks of a sample spread over all values, in a column, and their ends.

    Of few values the first ones are sample enough: for them None.

    >>> sample_bounds(4096)[:2].tolist()
    [[0, 128], [128, 256]]
    """
    size = min(count, _SAMPLE)
    if size < _SAMPLE // 4:
        return None
    starts = np.arange(_SAMPLE_BLOCKS, dtype=np.int64) * count // _SAMPLE_BLOCKS
    return np.stack([starts, starts + size // _SAMPLE_BLOCKS], axis=1)


def sample_refuses(distinct: int, sampled: int, count: int, limits: DictionaryLimits) -> bool:
    """Whether so many distinct values in a sample speak against a dictionary.

    A small sample looks more diverse than what it is taken from: it only tells whether there are hardly any doubles.
    """
    part = distinct / sampled
    return part >= _MOSTLY_DISTINCT or (sampled > SMALL_SAMPLE and math.ceil(part * count) > limits.items)


def index_bytes(count: int, runs: int, items: int) -> int:
    """About what ``count`` indices into ``items`` take, packed or as so many runs.

    >>> index_bytes(8000, 8000, 256), index_bytes(8000, 10, 256)
    (8128, 68)
    """
    width = 1 if items <= 1 << 8 else 2 if items <= 1 << 16 else 4
    packed = count * max(items - 1, 0).bit_length() // 8 + _chunks(count, BLOCK)
    return min(packed, runs * (width + 1) + _chunks(count, MOST_VALUES, _CHUNK + _SECOND_BUFFER))
