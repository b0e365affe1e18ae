"""Prefixes: every variant makes the number that Python makes of the bytes, and refuses offsets that do not rise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import InvalidInput

few = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(st.lists(st.binary(max_size=20), max_size=12), st.integers(0, 20), st.sampled_from([np.int32, np.int64]))
def test_a_prefix_is_the_number_that_eight_bytes_are(modules, values, skip, kind):
    offsets = np.cumsum([3, *map(len, values)]).astype(kind)
    data = np.frombuffer(b"xyz" + b"".join(values) + b"!", np.uint8)
    out = np.full(len(values), 7, np.uint64)
    modules["prefixes"].prefixes(data, offsets, skip, out)
    assert out.tolist() == [int.from_bytes(value[skip : skip + 8].ljust(8, b"\0"), "big") for value in values]


@pytest.mark.parametrize("offsets", [[], [0, 5], [-1, 2], [2, 1], [0, 2, 1]])
def test_offsets_that_leave_the_bytes_are_refused(modules, offsets):
    out = np.zeros(max(len(offsets) - 1, 0), np.uint64)
    with pytest.raises(InvalidInput):
        modules["prefixes"].prefixes(np.zeros(4, np.uint8), np.array(offsets, np.int64), 0, out)


def test_results_of_another_length_and_negative_skips_are_refused(modules):
    for skip, room in ((0, 3), (-1, 2)):
        with pytest.raises(InvalidInput):
            modules["prefixes"].prefixes(np.zeros(4, np.uint8), np.array([0, 1, 2]), skip, np.zeros(room, np.uint64))
