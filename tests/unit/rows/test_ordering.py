"""Sorting and searching give what NumPy gives, also where values and places do not fit one integer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.rows.ordering import order_of, places_in


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(2**63, 2**63 + 5), max_size=40))
def test_the_order_is_stable(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    assert order_of(array).tolist() == np.argsort(array, kind="stable").tolist()


@pytest.mark.parametrize("top", [2**20, 2**63 - 1])
@pytest.mark.parametrize("side", ["left", "right"])
def test_many_keys_are_found_where_they_belong(top: int, side: str) -> None:
    draw = np.random.default_rng(7)
    ordered, keys = np.sort(draw.integers(0, top, 100_000)), draw.integers(0, top, 5000)
    expected = np.searchsorted(ordered, keys, side=side)  # type: ignore[call-overload]
    assert np.array_equal(places_in(ordered, keys, side), expected)  # type: ignore[arg-type]
    assert np.array_equal(places_in(ordered, np.sort(keys)), np.searchsorted(ordered, np.sort(keys)))
