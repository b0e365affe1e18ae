"""Stored row sets: every variant writes the same bytes, and they are the sets that were meant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels.reference import row_sets as twin

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(kernel, groups, treemap):
    """The bytes of each group."""
    rows = np.array([row for group in groups for row in sorted(group)], np.uint64)
    bounds = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    ends = np.zeros(len(groups), np.int64)
    kernel.measure_row_sets(rows, bounds, treemap, ends)
    out = np.full(ends[-1] if len(ends) else 0, 0xAB, np.uint8)
    kernel.write_row_sets(rows, bounds, treemap, ends, out)
    return [part.tobytes() for part in np.split(out, ends[:-1])] if groups else []


def members(stored):
    """What a row set holds, read piece by piece."""
    count, at, found = int.from_bytes(stored[:4], "little"), 4, set()
    for _ in range(count):
        fragment, length = (int.from_bytes(stored[at + 4 * k : at + 4 * k + 4], "little") for k in range(2))
        found |= {(fragment << 32) | row for row in BitMap.deserialize(stored[at + 8 : at + 8 + length])}
        at += 8 + length
    assert at == len(stored)
    return found


SHAPES = {
    "nothing": [],
    "no rows": [set()],
    "one row": [{7}],
    "many fragments": [{fragment << 32 for fragment in range(9)}],
    "a long run": [set(range(5, 200_000))],
    "runs in few containers": [set(range(10, 90)) | set(range(70_000, 70_100))],
    "runs in many containers": [{row for part in range(7) for row in range(part << 16, (part << 16) + 50)}],
    "bits": [set(range(0, 20_000, 3))],
    "the largest array": [set(range(0, 2 * 4096, 2)), set(range(0, 2 * 4097, 2))],
    "runs beside arrays": [set(range(100)) | {200_000, 200_002, 300_000}],
    "the ends of ranges": [{0, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1}],
    "a whole container": [set(range(65536, 131072))],
}


@pytest.mark.parametrize("treemap", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_sets_of_every_shape_are_written_as_roaring_reads_them(modules, name, treemap):
    groups = SHAPES[name]
    stored = written(modules["row_sets"], groups, treemap)
    assert stored == written(twin, groups, treemap)
    if treemap:
        assert [set(BitMap64.deserialize(one)) for one in stored] == groups
    else:
        assert [members(one) for one in stored] == groups


@few
@given(
    st.lists(st.sets(st.integers(0, 40) | st.integers(65_500, 65_600) | st.integers(2**32, 2**32 + 9)), max_size=5),
    st.booleans(),
)
def test_random_groups_give_the_twins_bytes(modules, groups, treemap):
    assert written(modules["row_sets"], groups, treemap) == written(twin, groups, treemap)


def test_containers_are_as_small_as_roaring_makes_them(modules):
    for rows in (set(range(3000)), {5 * row for row in range(3000)}, set(range(0, 60_000, 2))):
        (stored,) = written(modules["row_sets"], [rows], False)
        assert len(stored) == 12 + len(BitMap(rows, optimize=True).serialize())


def test_rows_that_do_not_rise_and_wrong_bounds_are_refused(modules):
    kernel, ends = modules["row_sets"], np.zeros(1, np.int64)
    with pytest.raises(InvalidInput, match="row 2 is 4"):
        kernel.measure_row_sets(np.array([3, 4, 4], np.uint64), np.array([0, 3]), False, ends)
    # Of two groups, the second may begin anywhere.
    kernel.measure_row_sets(np.array([3, 4, 4], np.uint64), np.array([0, 2, 3]), False, np.zeros(2, np.int64))
    for bounds in ([0, 4], [-1, 2], [2, 1]):
        with pytest.raises(InvalidInput):
            kernel.measure_row_sets(np.array([3, 4, 5], np.uint64), np.array(bounds), False, ends)
    with pytest.raises(InvalidInput):
        kernel.measure_row_sets(np.array([3], np.uint64), np.array([0, 1]), False, np.zeros(2, np.int64))


def test_ends_that_are_not_those_measured_are_refused(modules):
    for size in (29, 31):
        with pytest.raises(Corrupt):
            modules["row_sets"].write_row_sets(
                np.array([7], np.uint64), np.array([0, 1]), False, np.array([size]), np.zeros(size, np.uint8)
            )
