"""Joining: every variant finds the pairs that looking at all pairs finds, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import InvalidInput

few = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
#: Few codes, so that they meet; among them neighbours, and such as fall into one slot.
CODES = st.sampled_from([0, 1, 2, 3, 2**32, 2**32 + 1, 2**63, 2**64 - 1, 2**64 - 2])


@few
@given(st.lists(CODES, max_size=30), st.lists(CODES, max_size=30))
def test_all_pairs_of_one_code_are_found_in_order(modules, codes, asked):
    held = np.array(codes, np.uint64)
    table = modules["joining"].build(held)
    left, right = modules["joining"].probe(held, table, np.array(asked, np.uint64))
    expected = [(i, j) for i, one in enumerate(asked) for j, other in enumerate(codes) if one == other]
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected


@pytest.mark.parametrize("step", [1, 2**20, 2**33, 2**57])
def test_many_codes_in_any_pattern_find_themselves(modules, step):
    codes = np.arange(5000, dtype=np.uint64) * np.uint64(step)
    codes = np.unique(codes)
    left, right = modules["joining"].probe(codes, modules["joining"].build(codes), codes[::-1].copy())
    assert left.tolist() == list(range(len(codes)))
    assert right.tolist() == list(range(len(codes) - 1, -1, -1))


def test_a_table_of_other_rows_is_refused(modules):
    codes = np.arange(3, dtype=np.uint64)
    table = modules["joining"].build(codes)
    with pytest.raises(InvalidInput):
        modules["joining"].probe(codes[:2].copy(), table, codes)
