"""The row-id index against a dictionary, over ranges, shuffled ids, deletions and ids that two rows claim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt
from lancelet.rows.addresses import NO_ADDRESS, join
from lancelet.rows.deletions import DeletionVector
from lancelet.rows.masks import SelectionMask
from lancelet.rows.row_id_index import build_row_id_index
from lancelet.rows.row_sets import RowSet
from lancelet.rows.selected import selected_offsets, to_addresses
from lancelet.rows.sequences import RowIdSequence


@st.composite
def tables(draw: st.DrawFn) -> dict[int, tuple[list[int], set[int]]]:
    """Fragments by id: the ids of the rows in pieces kept or shuffled, and the offsets of deleted rows."""
    spread = draw(st.sampled_from([1, 3, 50]))
    pieces = np.array_split(np.arange(draw(st.integers(0, 120)), dtype=np.uint64) * np.uint64(spread), 6)
    shuffled = np.random.default_rng(draw(st.integers(0, 5)))
    parts = [shuffled.permutation(piece) if draw(st.booleans()) else piece for piece in pieces]
    order = draw(st.permutations(range(6)))
    table = {}
    for place, fragment in enumerate(draw(st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3, unique=True))):
        ids = np.concatenate([parts[part] for part in order[2 * place : 2 * place + 2]]).tolist()
        table[fragment] = ids, draw(st.sets(st.integers(0, max(len(ids) - 1, 0)), max_size=len(ids)))
    return table


@given(tables())
def test_every_live_row_is_found_and_nothing_else(table: dict[int, tuple[list[int], set[int]]]) -> None:
    index = build_row_id_index(
        (fragment, RowIdSequence.from_ids(ids), DeletionVector(sorted(deleted)))
        for fragment, (ids, deleted) in table.items()
    )
    expected = {
        row_id: (fragment << 32) + offset
        for fragment, (ids, deleted) in table.items()
        for offset, row_id in enumerate(ids)
        if offset not in deleted
    }
    asked = [*reversed(range(400)), 2**63, 2**64 - 1]
    assert index.size == len(expected)
    assert index.lookup(asked).tolist() == [expected.get(row_id, int(NO_ADDRESS)) for row_id in asked]
    found, missing = index.find(asked)
    assert found.tolist() == [expected[row_id] for row_id in asked if row_id in expected]
    assert missing.tolist() == [row_id for row_id in asked if row_id not in expected]
    assert to_addresses(RowSet.of(asked), index) == RowSet.of(found)


@given(tables(), st.sets(st.integers(0, 200)), st.sets(st.integers(0, 200)), st.booleans())
def test_a_mask_over_ids_selects_offsets(
    table: dict[int, tuple[list[int], set[int]]], listed: set[int], nulls: set[int], inverted: bool
) -> None:
    mask = SelectionMask(RowSet.of(list(listed)), RowSet.of(list(nulls)), inverted)
    for ids, _ in table.values():
        expected = [
            offset for offset, row_id in enumerate(ids) if row_id not in nulls and (row_id in listed) is not inverted
        ]
        assert selected_offsets(mask, RowIdSequence.from_ids(ids)).tolist() == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(range(100), range(50, 150), id="two ranges"),
        pytest.param(range(100), [7, 200, 5000], id="a range and an id"),
        pytest.param([9, 7, 5], [7, 8], id="two ids"),
        pytest.param([9, 7, 10**6], [7, 8, 10**9], id="two ids far from others"),
    ],
)
def test_an_id_of_two_live_rows_is_corrupt(one: object, other: object) -> None:
    sequences = [RowIdSequence.from_ids(list(ids)) for ids in (one, other)]  # type: ignore[call-overload]
    with pytest.raises(Corrupt, match=r"row id \d+ belongs to row \d+ of fragment 1 and row 0 of fragment 2"):
        build_row_id_index([(2, sequences[1], None), (1, sequences[0], None)])


def test_an_updated_row_is_found_where_it_moved_to() -> None:
    moved = RowIdSequence.from_ids([4, 6])
    index = build_row_id_index([(0, RowIdSequence.from_range(0, 10), DeletionVector([4, 6])), (1, moved, None)])
    assert index.lookup([4, 5, 6]).tolist() == join([1, 0, 1], [0, 5, 1]).tolist()


def test_ranges_stay_ranges_and_other_ids_cost_at_most_sixteen_bytes() -> None:
    rows = 100_000
    ranges = build_row_id_index([(f, RowIdSequence.from_range(f * rows, (f + 1) * rows), None) for f in range(10)])
    assert ranges.nbytes == 240
    shuffled = np.random.default_rng(0).permutation(rows)
    for spread in (1, 2, 3, 1000):
        index = build_row_id_index([(0, RowIdSequence.from_ids(shuffled * spread), None)])
        assert index.nbytes <= 16 * rows
        assert index.lookup(shuffled * spread).tolist() == list(range(rows))
