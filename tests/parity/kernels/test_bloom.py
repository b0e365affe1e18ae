"""Bloom filters: every variant sets the bits that the rule says, one in each word of one block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lancelet.errors import InvalidInput

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.integers(1, 9))
def test_bits_are_set_as_the_rule_says(modules, hashes, blocks):
    kernel = modules["bloom"]
    expected = np.zeros((blocks, 8), np.uint32)
    for one in hashes:
        block = ((one >> 32) * blocks) >> 32
        for word, salt in enumerate(kernel.SALTS.tolist()):
            expected[block, word] |= np.uint32(1 << ((((one & 0xFFFFFFFF) * salt) & 0xFFFFFFFF) >> 27))
    words = np.zeros(8 * blocks, np.uint32)
    array = np.array(hashes, np.uint64)
    kernel.add_hashes(array, words)
    assert words.tolist() == expected.ravel().tolist()
    picked = words.reshape(-1, 8)[kernel.block_of(array, blocks)]
    assert ((picked & kernel.bits_of(array)) == kernel.bits_of(array)).all()


@pytest.mark.parametrize("words", [0, 7, 12])
def test_what_is_not_made_of_blocks_is_refused(modules, words):
    with pytest.raises(InvalidInput):
        modules["bloom"].add_hashes(np.zeros(1, np.uint64), np.zeros(words, np.uint32))
