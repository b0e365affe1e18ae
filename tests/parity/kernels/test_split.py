"""Byte stream split: every variant splits and merges as a slice for each byte would, and refuses the same input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels.reference import split as twin

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("item_size", [4, 8])
@pytest.mark.parametrize("counts", [[], [0], [1], [5, 5], [512, 512, 77], [3, 0, 1000]])
def test_chunks_are_split_and_merged(modules, item_size, counts):
    kernel, places = modules["split"], np.array(counts, np.int64)
    values = np.random.default_rng(0).integers(0, 256, sum(counts) * item_size, np.uint8)
    out, ends = np.zeros_like(values), np.cumsum(places) * item_size
    kernel.split_bytes(values, item_size, places, out)
    for end, count in zip(ends, counts, strict=True):
        chunk, original = (array[end - count * item_size : end] for array in (out, values))
        assert chunk.tobytes() == b"".join(original[k::item_size].tobytes() for k in range(item_size))
    back = np.zeros_like(values)
    kernel.merge_bytes(out, ends - places * item_size, places, item_size, back)
    assert np.array_equal(back, values)


@pytest.mark.parametrize(
    ("start", "count", "message"),
    [
        (0, 4, None),
        (1, 4, "chunk 0 is bytes 1..17 of a buffer of 16 bytes"),
        (-1, 4, "chunk 0 is bytes -1..15 of a buffer of 16 bytes"),
        (0, 2**62, f"chunk 0 is bytes 0..{2**64} of a buffer of 16 bytes"),
        (2**63 - 1, 1, f"chunk 0 is bytes {2**63 - 1}..{2**63 + 3} of a buffer of 16 bytes"),
        (0, -1, "chunk 0 has a size of -4 bytes, expected at least 0"),
        (0, 3, "the chunks' bytes come to 12, expected 16"),
    ],
)
def test_chunks_outside_the_data_are_refused(modules, start, count, message):
    arguments = np.zeros(16, np.uint8), np.array([start]), np.array([count]), 4, np.zeros(16, np.uint8)
    if message is None:
        modules["split"].merge_bytes(*arguments)
        return
    with pytest.raises(Corrupt) as caught:
        modules["split"].merge_bytes(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(("item_size", "counts"), [(4, [3]), (4, [5]), (4, [-1, 5]), (8, [4]), (2, [8]), (4, [2**62])])
def test_counts_that_do_not_cover_the_values_are_refused(modules, item_size, counts):
    with pytest.raises(InvalidInput):
        modules["split"].split_bytes(np.zeros(16, np.uint8), item_size, np.array(counts), np.zeros(16, np.uint8))


@few
@given(
    st.lists(st.tuples(st.integers(-2, 40), st.integers(-1, 12)), max_size=4),
    st.binary(max_size=40),
    st.sampled_from([4, 8]),
    st.integers(0, 9),
)
def test_random_bytes_give_the_twins_result_or_its_error(modules, chunks, data, item_size, wrong):
    starts, counts = (np.array([chunk[k] for chunk in chunks], np.int64) for k in range(2))
    results = []
    for kernel in (modules["split"], twin):
        out = np.zeros(max(0, int(counts.sum())) * item_size + (wrong == 9), np.uint8)
        try:
            kernel.merge_bytes(np.frombuffer(data, np.uint8), starts, counts, item_size, out)
            results.append(out.tolist())
        except Corrupt as error:
            results.append(str(error))
    assert results[0] == results[1]
