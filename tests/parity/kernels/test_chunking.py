"""How many strings go into each chunk: all variants say the same, and no chunk but one of two strings is too large."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import InvalidInput
from lancelet.kernels.reference import chunking as twin

lengths = st.lists(st.one_of(st.integers(0, 4), st.integers(0, 300), st.integers(0, 6000)), max_size=400)


@given(lengths, st.integers(1, 12), st.sampled_from([-1, 0, 60, 4096, 20000]), st.sampled_from([4, 8]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_chunks_hold_all_strings_in_powers_of_two_within_the_limit(
    modules: Mapping[str, ModuleType], sizes: list[int], repeat: int, limit: int, width: int, wide: bool
) -> None:
    places = np.cumsum([3, *(sizes * repeat)])
    offsets = places.astype(np.int64) if wide else places.astype(np.int32)
    counts = modules["chunking"].variable_chunks(offsets, limit, width)
    assert counts.tolist() == twin.variable_chunks(offsets, limit, width).tolist()
    assert int(counts.sum()) == len(offsets) - 1
    ends = np.cumsum(counts)
    taken = offsets[ends] - offsets[ends - counts] + (counts + 1) * width
    assert ((taken <= limit) | (counts <= 2)).all()
    assert all(count in (2**power for power in range(1, 12)) for count in counts[:-1].tolist())


def test_offsets_of_odd_width_or_that_fall_are_refused(modules: Mapping[str, ModuleType]) -> None:
    with pytest.raises(InvalidInput, match="offsets of 2 bytes, expected 4 or 8"):
        modules["chunking"].variable_chunks(np.array([0, 1]), 4096, 2)
    with pytest.raises(InvalidInput, match="do not rise"):
        modules["chunking"].variable_chunks(np.array([0, 5, 3]), 4096, 4)
    with pytest.raises(InvalidInput, match="do not rise"):
        modules["chunking"].variable_chunks(np.zeros(0, np.int64), 4096, 4)
