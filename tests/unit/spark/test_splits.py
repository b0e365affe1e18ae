"""How a read is dealt out: every row once, in order, none of them to a task that is much too large."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import InvalidInput
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import DataFile, DeletionFile, DeletionKind, Fragment
from lancelet.spark.splits import Split, row_bytes, splits_of


def fragments(*rows: int, deleted: dict[int, int] | None = None) -> Fragments:
    """Fragments with ids from 10 on, some with deletions."""
    gone = deleted or {}
    return Fragments(
        Fragment(
            10 + place,
            physical_rows=count,
            deletion_file=DeletionFile(DeletionKind.BITMAP, 1, 1, gone[place]) if gone.get(place) else None,
        )
        for place, count in enumerate(rows)
    )


def physical(splits: list[Split], some: Fragments) -> list[tuple[int, int]]:
    """Every physical row that splits without limits read, in their order."""
    rows = {item.id: item.physical_rows or 0 for item in some}
    return [
        (number, row)
        for split in splits
        for number in split.fragments
        for row in range(*split.ranges.get(number, (0, rows[number])))
    ]


@given(rows=st.lists(st.integers(1, 400), max_size=12), target=st.integers(1, 500))
def test_every_row_is_read_once_and_in_order(rows: list[int], target: int) -> None:
    some = fragments(*rows)
    splits = splits_of(some, target, 1.0)
    assert physical(splits, some) == [(10 + place, row) for place, count in enumerate(rows) for row in range(count)]
    for split in splits:
        whole = sum(rows[number - 10] for number in split.fragments if number not in split.ranges)
        assert whole <= 1.5 * target or len(split.fragments) == 1
        assert all(stop - start <= 1.5 * target + 1 for start, stop in split.ranges.values())


@given(
    counts=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), max_size=8),
    target=st.integers(1, 100),
    offset=st.integers(0, 200),
    limit=st.one_of(st.none(), st.integers(0, 200)),
)
def test_a_limit_that_manifests_can_count_leaves_just_the_rows_wanted(
    counts: list[tuple[int, int]], target: int, offset: int, limit: int | None
) -> None:
    rows = [count for count, _ in counts]
    deleted = {place: min(gone, count - 1) for place, (count, gone) in enumerate(counts)}
    some = fragments(*rows, deleted=deleted)
    live = [(10 + place, row) for place, count in enumerate(rows) for row in range(count - deleted[place])]
    found = []
    for split in splits_of(some, target, 1.0, offset=offset, limit=limit):
        for number in split.fragments:
            place = number - 10
            there = list(range(rows[place] - deleted[place]))
            start, stop = split.ranges.get(number, (0, rows[place]))
            # Which physical rows are deleted is not known here: parts stand for their share of the fragment.
            part = (stop - start) / rows[place]
            end = None if split.limit is None else split.offset + split.limit
            wanted = there[split.offset : end]
            found.append((number, round(part, 9), tuple(wanted) if part == 1 else None))
    wanted_rows = live[offset : None if limit is None else offset + limit]
    for number in {number for number, _ in wanted_rows}:
        parts = [item for item in found if item[0] == number]
        assert sum(part for _, part, _ in parts) == pytest.approx(1)
        if len(parts) == 1:
            assert list(parts[0][2] or ()) == [row for other, row in wanted_rows if other == number]
    assert {item[0] for item in found} == {number for number, _ in wanted_rows}


def test_small_fragments_share_a_task_and_large_ones_are_cut() -> None:
    splits = splits_of(fragments(10, 10, 10, 500, 10), 100, 1.0)
    assert [split.fragments for split in splits] == [(10, 11, 12), (13,), (13,), (13,), (13,), (13,), (14,)]
    assert [split.ranges.get(13) for split in splits[1:6]] == [(at, at + 100) for at in range(0, 500, 100)]


def test_a_limit_that_only_a_reader_can_count_is_left_to_one_task() -> None:
    filtered = splits_of(fragments(50, 50), 10, 1.0, limit=7, offset=2, counted=False)
    assert filtered == [Split((10, 11), {}, 2, 7)]
    unknown = Fragments([Fragment(1, physical_rows=None), Fragment(2, physical_rows=5)])
    assert splits_of(unknown, 10, 1.0, limit=7) == [Split((1, 2), {}, 0, 7)]
    assert splits_of(unknown, 10, 1.0, limit=0) == []


def test_only_fragments_that_are_named_are_read() -> None:
    splits = splits_of(fragments(5, 5, 5), 100, 1.0, ids=[12, 10])
    assert [split.fragments for split in splits] == [(12, 10)]
    with pytest.raises(InvalidInput, match="no fragment 7"):
        splits_of(fragments(5), 100, 1.0, ids=[7])


def test_an_empty_table_has_no_splits() -> None:
    assert splits_of(Fragments([]), 100, 1.0) == []
    assert splits_of(Fragments([]), 100, 1.0, limit=5) == []


def test_a_row_is_as_wide_as_its_columns_and_as_files_are_long() -> None:
    stored = pa.schema({"id": pa.int64(), "v": pa.list_(pa.float32(), 100), "t": pa.string()})
    file = DataFile("a.lance", (0, 1, 2), (0, 1, 2), file_size=1000 * (8 + 400 + 50))
    some = Fragments([Fragment(0, (file,), physical_rows=1000)])
    assert row_bytes(some, stored, pa.schema({"id": pa.int64()})) == 8
    assert row_bytes(some, stored, pa.schema({"v": stored.field("v").type})) == 400
    assert row_bytes(some, stored, pa.schema({"t": pa.string()})) == pytest.approx(50)
    assert row_bytes(some, stored, pa.schema({"b": pa.bool_()})) == 0.125
    nested = pa.schema({"s": pa.struct([("a", pa.int32()), ("l", pa.list_(pa.int8()))])})
    assert row_bytes(Fragments([]), stored, nested) == 4 + 16
    assert np.isfinite(row_bytes(Fragments([]), pa.schema([]), pa.schema([])))
