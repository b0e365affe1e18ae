"""Random orders that are computed place by place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.rows.permutation import Permutation


@given(size=st.integers(0, 3000), seed=st.integers(0, 2**40))
def test_every_place_has_another_number_below_the_size(size: int, seed: int) -> None:
    assert np.array_equal(np.sort(Permutation(size, seed).at(np.arange(size))), np.arange(size))


@pytest.mark.parametrize("size", [2**32 + 7, 10**15])
def test_orders_of_more_rows_than_could_be_held_stay_within_them(size: int) -> None:
    places = np.linspace(0, size - 1, 1000).astype(np.uint64)
    found = Permutation(size, 3).at(places)
    assert int(found.max()) < size
    assert len(np.unique(found)) == 1000


def test_a_place_may_be_asked_for_alone() -> None:
    order = Permutation(1000, 9)
    assert order.at([17]).tolist() == order.at(np.arange(1000))[17:18].tolist()


def test_neighbours_are_spread_evenly_over_the_rows() -> None:
    size, tenths = 100_000, 10
    counts = np.zeros((tenths, tenths))
    for seed in range(20):
        places = np.arange(size)
        np.add.at(counts, (places * tenths // size, Permutation(size, seed).at(places).astype(int) * tenths // size), 1)
    expected = size * 20 / tenths**2
    # Chi-square over 81 degrees of freedom: 140 is passed by chance once in 30,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 140


def test_another_seed_gives_another_order() -> None:
    orders = {tuple(Permutation(50, seed).at(np.arange(50)).tolist()) for seed in range(100)}
    assert len(orders) == 100
