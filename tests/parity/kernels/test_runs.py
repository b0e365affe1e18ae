"""Run lengths: every variant finds and repeats the runs that itertools.groupby sees, and refuses the same input."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels.reference import runs as twin

few = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SIZES = [1, 2, 4, 8, 16]


def items_of(lengths, item_size, seed=0):
    """So many repetitions each of random values, of which neighbours may be equal or differ in their last byte only."""
    random = np.random.default_rng(seed)
    lines = np.zeros((len(lengths), item_size), np.uint8)
    lines[:, -1] = random.integers(0, 3, len(lengths))
    return np.repeat(lines, lengths, axis=0).reshape(-1)


def model_of_runs(values, item_size, bounds):
    found = []
    for first, last in pairwise(bounds):
        chunk = values[first * item_size : last * item_size].tobytes()
        items = [chunk[i : i + item_size] for i in range(0, len(chunk), item_size)]
        runs = [(value, len(list(group))) for value, group in groupby(items)]
        found.append([(value, min(255, left)) for value, all_ in runs for left in range(all_, 0, -255)])
    return found


@pytest.mark.parametrize("item_size", SIZES)
@pytest.mark.parametrize(
    ("lengths", "bounds"),
    [
        ([], [0]),
        ([], [0, 0, 0]),
        ([1], [0, 1]),
        ([1] * 50, [0, 10, 10, 50]),
        ([255, 256, 1, 1000, 510], [0, 300, 2022]),
        ([3, 9, 1, 1, 40, 700, 2] * 20, [0, 4096, 8192, 15120]),
        ([5000], [0, 1, 2, 4999, 5000]),
    ],
)
def test_runs_are_found_and_repeated(modules, item_size, lengths, bounds):
    kernel, values = modules["runs"], items_of(lengths, item_size)
    expected = model_of_runs(values, item_size, bounds)
    run_values, run_lengths, run_counts = kernel.find_runs(values, item_size, np.array(bounds, np.int64))
    assert run_counts.tolist() == [len(chunk) for chunk in expected]
    assert run_lengths.tolist() == [length for chunk in expected for _, length in chunk]
    assert run_values.tobytes() == b"".join(value for chunk in expected for value, _ in chunk)

    data = np.concatenate([np.zeros(1, np.uint8), run_values, run_lengths])
    begin = np.cumsum(run_counts) - run_counts
    places = 1 + begin * item_size, run_counts * item_size, 1 + len(run_values) + begin, run_counts
    out = np.zeros_like(values)
    kernel.expand_runs(data, *places, np.diff(bounds), item_size, out)
    assert np.array_equal(out, values)
    order = np.random.default_rng(1).permutation(bounds[-1])
    for asked in (order, np.sort(order)):
        chunks = np.searchsorted(bounds, asked, side="right") - 1
        out[:] = 1
        kernel.runs_at(data, *places, chunks, asked - np.array(bounds)[chunks], item_size, out)
        assert np.array_equal(out, values.reshape(-1, item_size)[asked].reshape(-1))


@pytest.mark.parametrize("item_size", SIZES)
def test_runs_are_counted_however_long(modules, item_size):
    values = items_of([300, 1, 1000, 2, 2, 2], item_size, seed=3)
    assert modules["runs"].count_runs(values, item_size) == len(
        list(groupby(map(bytes, values.reshape(-1, item_size))))
    )
    assert modules["runs"].count_runs(values[:0], item_size) == 0
    unaligned = np.concatenate([np.zeros(1, np.uint8), values])[1:]
    assert modules["runs"].count_runs(unaligned, item_size) == modules["runs"].count_runs(values, item_size)


LARGE = 2**63 - 1
CHUNK = {"value_start": 0, "value_size": 8, "length_start": 8, "length_size": 2, "count": 5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, None),
        ({"value_start": -1}, "the run values of chunk 0 is bytes -1..7 of a buffer of 10 bytes"),
        ({"value_start": 3}, "the run values of chunk 0 is bytes 3..11 of a buffer of 10 bytes"),
        ({"value_size": -8}, "the run values of chunk 0 has a size of -8 bytes, expected at least 0"),
        ({"length_start": LARGE}, f"the run lengths of chunk 0 is bytes {LARGE}..{LARGE + 2} of a buffer of 10 bytes"),
        ({"length_size": LARGE}, f"the run lengths of chunk 0 is bytes 8..{LARGE + 8} of a buffer of 10 bytes"),
        ({"value_size": 7}, "the run values of chunk 0 have 7 bytes, expected 8 for 2 run lengths"),
        ({"length_size": 1}, "the run values of chunk 0 have 8 bytes, expected 4 for 1 run lengths"),
        ({"count": 6}, "the runs of chunk 0 come to 5 values, expected 6"),
        ({"count": -1}, "the runs of chunk 0 come to 5 values, expected -1"),
    ],
)
def test_chunks_that_break_the_bounds_are_refused(modules, change, message):
    data = np.array([1, 0, 0, 0, 2, 0, 0, 0, 3, 2], np.uint8)
    parts = [np.array([part]) for part in (CHUNK | change).values()]
    check(modules["runs"].expand_runs, data, *parts, 4, np.zeros(20, np.uint8), message=message)
    if "count" not in change:
        lookup = np.array([0]), np.array([4]), 4, np.zeros(4, np.uint8)
        check(modules["runs"].runs_at, data, *parts[:4], *lookup, message=message)


@pytest.mark.parametrize(
    ("chunk", "index", "message"),
    [
        (1, 0, "lookup 0 names chunk 1, expected 0 to 0"),
        (-1, 0, "lookup 0 names chunk -1, expected 0 to 0"),
        (0, 5, "lookup 0 asks for value 5 of chunk 0, which has 5"),
        (0, -1, "lookup 0 asks for value -1 of chunk 0, which has 5"),
    ],
)
def test_lookups_outside_the_chunks_are_refused(modules, chunk, index, message):
    parts = [np.array([number]) for number in (0, 2, 2, 2)]
    lookup = np.array([chunk]), np.array([index]), 1, np.zeros(1, np.uint8)
    check(modules["runs"].runs_at, np.array([1, 2, 3, 2], np.uint8), *parts, *lookup, message=message)


def test_runs_that_do_not_fill_the_output_are_refused(modules):
    parts = [np.array([number]) for number in (0, 2, 2, 2, 5)]
    message = "the chunks' bytes come to 5, expected 6"
    check(
        modules["runs"].expand_runs, np.array([1, 2, 3, 2], np.uint8), *parts, 1, np.zeros(6, np.uint8), message=message
    )


def check(kernel, *arguments, message):
    if message is None:
        kernel(*arguments)
        return
    with pytest.raises(Corrupt) as caught:
        kernel(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize("bounds", [[], [0], [1, 4], [0, 3], [0, 5], [0, 3, 2, 4]])
def test_bounds_that_do_not_cover_the_values_are_refused(modules, bounds):
    with pytest.raises(InvalidInput, match="chunk bounds"):
        modules["runs"].find_runs(np.zeros(8, np.uint8), 2, np.array(bounds, np.int64))


@pytest.mark.parametrize(("size", "item_size"), [(8, 3), (8, 0), (8, 32), (7, 2)])
def test_values_that_have_no_such_size_are_refused(modules, size, item_size):
    with pytest.raises(InvalidInput):
        modules["runs"].count_runs(np.zeros(size, np.uint8), item_size)


@few
@given(
    st.lists(st.tuples(*[st.integers(-2, 30)] * 2, *[st.integers(-2, 40)] * 2, st.booleans()), max_size=4),
    st.lists(st.integers(0, 6), max_size=60),
    st.sampled_from(SIZES),
    st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 30)), max_size=5),
)
def test_random_bytes_give_the_twins_result_or_its_error(modules, chunks, data, item_size, lookups):
    octets = np.array(data, np.uint8)
    parts = [np.array([chunk[k] for chunk in chunks], np.int64) for k in range(4)]
    agree = np.array([chunk[4] for chunk in chunks], bool)
    parts[1] = np.where(agree, parts[3] * item_size, parts[1])
    counts = np.array(
        [octets[max(0, a) : max(0, a + n)].sum() for a, n in zip(parts[2], parts[3], strict=True)], np.int64
    )
    at = [np.array([lookup[k] for lookup in lookups], np.int64) for k in range(2)]
    results = []
    for kernel in (modules["runs"], twin):
        for name, arguments, length in (
            ("expand_runs", (*parts, counts), int(counts.sum()) * item_size),
            ("runs_at", (*parts, *at), len(lookups) * item_size),
        ):
            out = np.zeros(length, np.uint8)
            try:
                getattr(kernel, name)(octets, *arguments, item_size, out)
                results.append(out.tolist())
            except Corrupt as error:
                results.append(str(error))
    assert results[:2] == results[2:]
