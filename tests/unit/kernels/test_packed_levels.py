"""Packed levels: what was packed comes back from every variant, and damage is refused in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.encodings.bitpacking import pack_out_of_line
from lancelet.errors import LanceletError
from lancelet.kernels import load, variants

KERNELS = {variant: load(variant)["packed_levels"] for variant in variants()}


@pytest.mark.parametrize("width", [1, 2, 3, 7, 11, 15, 16])
@pytest.mark.parametrize("odd", [0, 1])
@settings(max_examples=15)
@given(counts=st.lists(st.sampled_from([0, 1, 5, 63, 200, 1000, 1023, 1024, 1025, 2048, 2500]), max_size=5))
def test_levels_come_back(width: int, odd: int, counts: list[int]) -> None:
    total = sum(counts)
    levels = (np.random.default_rng(total).integers(0, 65536, total) & ((1 << width) - 1)).astype(np.uint16)
    pieces = pack_out_of_line(levels, np.array(counts, np.int64), width)
    data = np.concatenate([np.zeros(odd, np.uint8), pieces.data])
    for kernel in KERNELS.values():
        out = np.empty(total, np.uint16)
        kernel.unpack(data, pieces.starts + odd, pieces.sizes, np.array(counts, np.int64), width, out)
        assert out.tolist() == levels.tolist()


@settings(max_examples=200)
@given(
    start=st.integers(-3, 400),
    size=st.integers(-3, 400),
    count=st.integers(-3, 2000),
    width=st.integers(-1, 17),
    room=st.integers(0, 2000),
    fits=st.booleans(),
)
def test_damage_is_refused_alike(start: int, size: int, count: int, width: int, room: int, fits: bool) -> None:
    if fits:
        start, count, room = 0, size // 2, max(size // 2, 0)
    data = np.arange(400).astype(np.uint8)
    outcomes = set()
    for kernel in KERNELS.values():
        out: Any = np.empty(room, np.uint16)
        try:
            kernel.unpack(data, *(np.array([number], np.int64) for number in (start, size, count)), width, out)
            outcomes.add(out.tobytes())
        except LanceletError as error:
            outcomes.add(f"{type(error).__name__}: {error}")
    assert len(outcomes) == 1, outcomes
