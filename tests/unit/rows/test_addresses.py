"""Row addresses: two 32-bit numbers in one, split, joined and grouped without a loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import InvalidInput
from lancelet.rows.addresses import LARGEST, as_uint64s, by_fragment, join, split

PAIRS = st.lists(st.tuples(st.integers(0, 3) | st.integers(0, LARGEST), st.integers(0, LARGEST)), max_size=30)


@given(PAIRS)
def test_an_address_holds_its_fragment_and_offset(pairs: list[tuple[int, int]]) -> None:
    fragments, offsets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    addresses = join(fragments, offsets)
    assert addresses.tolist() == [(fragment << 32) + offset for fragment, offset in pairs]
    assert [part.tolist() for part in split(addresses)] == [fragments, offsets]


@given(PAIRS)
def test_groups_by_fragment_say_where_each_address_came_from(pairs: list[tuple[int, int]]) -> None:
    addresses = join([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    back, done, seen = np.zeros(len(pairs), np.uint64), 0, []
    for fragment, offsets, places in by_fragment(addresses):
        seen.append(fragment)
        back[slice(done, done + len(offsets)) if places is None else places] = join(fragment, offsets)
        done += len(offsets)
    assert back.tolist() == addresses.tolist()
    assert seen == sorted({pair[0] for pair in pairs})


@pytest.mark.parametrize("values", [[-1], [1.5], ["a"], np.array([2**40, -(2**40)])])
def test_what_is_no_whole_number_from_0_on_is_refused(values: object) -> None:
    with pytest.raises(InvalidInput):
        as_uint64s(values)  # type: ignore[arg-type]


@pytest.mark.parametrize(("fragment", "offset"), [(2**32, 0), (0, 2**32)])
def test_numbers_past_32_bits_are_refused(fragment: int, offset: int) -> None:
    with pytest.raises(InvalidInput, match="does not fit 32 bits"):
        join(fragment, [offset])
