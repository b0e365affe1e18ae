"""Choosing: each rule at its boundary."""

from __future__ import annotations

import numpy as np
import pytest

from lancelet.encodings import choose
from lancelet.encodings.choose import Codec, DictionaryLimits, FixedStatistics
from lancelet.encodings.knobs import Knobs
from lancelet.encodings.values import Fixed, FixedList, Values, Variable


def fixed(values: np.ndarray) -> Fixed:
    return Fixed(8 * values.itemsize, len(values), values.view(np.uint8))


def strings(*sizes: int) -> Variable:
    return Variable(len(sizes), np.cumsum([0, *sizes]).astype(np.int32), np.zeros(sum(sizes), np.uint8))


@pytest.mark.parametrize(
    ("values", "codec"),
    [
        (np.arange(5000, dtype=np.int64), Codec.PACKED),
        (np.arange(5000, dtype=np.int64) - 1, Codec.PACKED),
        (np.arange(-5000, 0, dtype=np.int64), Codec.FLAT),
        (np.repeat(np.arange(-100, 100), 50), Codec.RUNS),
        (np.zeros(5000, np.uint8), Codec.PACKED),
        (np.full(5000, 200, np.uint8), Codec.RUNS),
        (np.full(5000, -1.5), Codec.RUNS),
        (np.random.default_rng(1).standard_normal(5000), Codec.FLAT),
        (np.arange(10, dtype=np.int64), Codec.FLAT),
    ],
)
def test_values_of_one_width_take_the_smallest_form(values: np.ndarray, codec: Codec) -> None:
    assert choose.best_codec(choose.fixed_statistics(fixed(values)), Knobs()) is codec


def test_ties_go_to_runs_and_the_user_may_refuse_them() -> None:
    statistics = FixedStatistics(1000, 8000, packed_bytes=1000, run_bytes=1000, runs=100)
    assert choose.best_codec(statistics, Knobs()) is Codec.RUNS
    assert choose.best_codec(statistics, Knobs(rle_threshold=0.1)) is Codec.PACKED
    assert choose.best_codec(statistics, Knobs(rle_threshold=0.2)) is Codec.RUNS
    assert choose.best_codec(statistics, Knobs(compression="none")) is Codec.FLAT


def test_statistics_count_runs_cut_by_chunks_and_by_their_longest_length() -> None:
    statistics = choose.fixed_statistics(fixed(np.full(5000, 7, np.int64)))
    # Chunks of 512, of 1,024 or of 4,096 values; 4,096 values are 17 runs of at most 255, the other 904 are 4.
    assert statistics == FixedStatistics(5000, 40000 + 10 * 16, 5 * (16 + 8 + 3 * 128), 2 * (16 + 8) + (17 + 4) * 9, 1)


@pytest.mark.parametrize(
    ("values", "mode", "split"),
    [
        (np.arange(64, dtype=np.int64), "auto", True),
        (np.random.default_rng(1).integers(0, 2**63, 64), "auto", False),
        (np.random.default_rng(1).integers(0, 2**63, 64), "on", True),
        (np.arange(64, dtype=np.int64), "off", False),
        (np.arange(64, dtype=np.int16), "on", False),
    ],
)
def test_bytes_are_split_where_places_differ_little(values: np.ndarray, mode: str, split: bool) -> None:
    assert choose.wants_split(fixed(values), Knobs(byte_stream_split=mode)) is split


@pytest.mark.parametrize(
    ("values", "width"),
    [
        (Fixed(1, 9, np.zeros(2, np.uint8)), 0),
        (Fixed(24, 1, np.zeros(3, np.uint8)), 3),
        (strings(3, 255, 0), 255),
        (strings(), 0),
        (FixedList(64, 0, Fixed(32, 0, np.zeros(0, np.uint8))), 256),
        (FixedList(2, 0, FixedList(3, 0, Fixed(8, 0, np.zeros(0, np.uint8)))), 6),
    ],
)
def test_the_widest_value_decides_who_shares_a_chunk(values: Values, width: int) -> None:
    assert choose.widest(values) == width
    assert choose.is_narrow(values, Knobs()) is (width < 256)
    assert choose.is_narrow(values, Knobs(structure="miniblock"))
    assert not choose.is_narrow(values, Knobs(structure="fullzip"))


@pytest.mark.parametrize(
    ("sizes", "text", "compression", "wanted"),
    [
        ([5] * 3641, True, None, True),
        ([4] * 5000, True, None, False),
        ([5] * 3640, True, None, False),
        ([5] * 5000, False, None, False),
        ([1], False, "fsst", True),
        ([5] * 5000, True, "none", False),
        ([5] * 5000, True, "zstd", False),
    ],
)
def test_symbols_are_for_text_that_is_long_enough(
    sizes: list[int], text: bool, compression: str | None, wanted: bool
) -> None:
    knobs = Knobs(compression=compression)
    assert choose.wants_symbols(strings(*sizes), text=text, offset_bits=32, knobs=knobs) is wanted


@pytest.mark.parametrize(
    ("count", "knobs", "limits"),
    [
        (99, Knobs(), None),
        (100, Knobs(), DictionaryLimits(50, 640)),
        (100, Knobs(dictionary_divisor=101), None),
        (1_000_000, Knobs(), DictionaryLimits(100_000, 6_400_000)),
        (100, Knobs(dictionary_size_ratio=0.5, dictionary_max_bytes=7), DictionaryLimits(50, 400, 7)),
    ],
)
def test_dictionaries_have_limits(count: int, knobs: Knobs, limits: DictionaryLimits | None) -> None:
    assert choose.dictionary_limits(count, 8 * count, knobs) == limits


def test_a_sample_takes_short_blocks_from_everywhere() -> None:
    assert choose.sample_bounds(1023) is None
    bounds = choose.sample_bounds(1_000_000)
    assert bounds is not None
    assert (np.diff(bounds, axis=1) == 128).all()
    assert bounds[0, 0] == 0
    assert bounds[-1, 0] == 31 * 1_000_000 // 32


@pytest.mark.parametrize(("distinct", "refused"), [(98, True), (97, True), (50, False), (51, True)])
def test_a_sample_of_mostly_distinct_values_speaks_against_a_dictionary(distinct: int, refused: bool) -> None:
    limits = DictionaryLimits(500, 1 << 40)
    assert choose.sample_refuses(10 * distinct, 1000, 1000, limits) is refused
    # Of a small sample only the lack of doubles counts.
    assert choose.sample_refuses(distinct, 100, 1000, limits) is (distinct == 98)
