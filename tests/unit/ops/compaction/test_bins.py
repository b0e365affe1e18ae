"""Which fragments are written anew together: decided from manifests alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lancelet.errors import InvalidInput
from lancelet.format.fragments import DataFile, Fragment
from lancelet.ops.compaction.bins import Candidate, bins_of, rows_of_files
from lancelet.ops.compaction.options import CompactionOptions, options_of

MIB = 2**20


def fragments(rows: Sequence[int], *, deleted: dict[int, int] | None = None, size: int = 10) -> list[Candidate]:
    """Fragments of so many rows, each row of so many bytes."""
    gone = deleted or {}
    return [
        Candidate(Fragment(n, (DataFile(f"{n}", (0,), file_size=count * size),)), count, gone.get(n, 0))
        for n, count in enumerate(rows)
    ]


def ids(candidates: Sequence[Candidate], **said: object) -> list[list[int]]:
    given = {"target_rows_per_fragment": 40, **said}
    return [[item.fragment.id for item in one] for one in bins_of(candidates, options_of({}, given))]


def test_neighbours_come_together_until_there_are_enough_rows() -> None:
    assert ids(fragments([10] * 10)) == [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]
    assert ids(fragments([33, 33, 33, 1]), target_rows_per_fragment=50) == [[0, 1, 2, 3]]


def test_a_small_fragment_between_large_ones_stays() -> None:
    assert ids(fragments([100, 3, 100])) == []


@pytest.mark.parametrize(("deleted", "expected"), [(10, []), (11, [[0]])])
def test_a_fragment_is_written_anew_alone_when_more_than_a_share_is_deleted(
    deleted: int, expected: list[list[int]]
) -> None:
    assert ids(fragments([100], deleted={0: deleted})) == expected
    assert ids(fragments([100], deleted={0: deleted}), materialize_deletions=False) == []
    assert ids(fragments([100], deleted={0: 100}), materialize_deletions_threshold=1.0) == []


def test_rows_that_an_index_covers_are_not_put_together_with_others() -> None:
    known = fragments([10] * 4)
    mixed = [
        Candidate(item.fragment, item.rows, item.deleted, frozenset([0] if item.fragment.id < 3 else []))
        for item in known
    ]
    assert ids(mixed) == [[0, 1, 2]]


def test_excluded_fragments_stay_and_divide_those_around_them() -> None:
    given = [
        Candidate(one.fragment, one.rows, one.deleted, excluded=one.fragment.id == 2) for one in fragments([9] * 5)
    ]
    assert ids(given) == [[0, 1], [3, 4]]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"max_source_fragments": 3}, []),
        ({"max_source_fragments": 4}, [[0, 1, 2, 3]]),
        ({"max_source_rows": 99}, [[0, 1, 2, 3]]),
        ({"max_source_bytes": 1000}, [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]),
        ({"max_source_bytes": 999}, [[0, 1, 2, 3]]),
    ],
)
def test_one_compaction_takes_the_first_tasks_that_are_within_its_limits(
    limit: dict[str, int], expected: list[list[int]]
) -> None:
    assert ids(fragments([10] * 10), **limit) == expected


def test_a_large_fragment_waits_until_its_neighbours_have_a_fair_part_of_its_bytes() -> None:
    rows = [600_000, 1000, 1000]
    assert ids(fragments(rows, size=1000), target_rows_per_fragment=MIB) == [[1, 2]]
    assert ids(fragments([600_000, 100_000, 50_000], size=1000), target_rows_per_fragment=MIB) == [[0, 1, 2]]
    # Small ones never wait, and rows that are deleted do not either.
    assert ids(fragments(rows, size=10), target_rows_per_fragment=MIB) == [[0, 1, 2]]
    assert ids(fragments(rows, size=1000, deleted={0: 300_000}), target_rows_per_fragment=MIB) == [[0, 1, 2]]


def test_however_often_a_table_is_appended_to_and_compacted_each_row_is_written_a_few_times_only() -> None:
    sizes, written = [], 0
    for _ in range(400):
        sizes.append(5000)
        for one in bins_of(fragments(sizes, size=1000), CompactionOptions()):
            first, last = one[0].fragment.id, one[-1].fragment.id
            total = sum(sizes[first : last + 1])
            written += total
            sizes[first : last + 1] = [total]
            break
    assert written < 20 * sum(sizes)
    assert len(sizes) < 20


def test_fragments_of_as_many_bytes_as_a_file_may_have_are_full() -> None:
    assert ids(fragments([10, 10, 10, 10]), max_bytes_per_file=100) == []
    assert ids(fragments([9] * 6), max_bytes_per_file=100) == [[0, 1], [2, 3], [4, 5]]


def test_files_get_about_the_same_number_of_rows_each() -> None:
    assert [rows_of_files(rows, 100) for rows in (0, 99, 199, 200, 250)] == [[], [99], [199], [100, 100], [125, 125]]
    assert rows_of_files(86, 20) == [22, 22, 21, 21]


@pytest.mark.parametrize("name", ["max_bytes_per_file", "num_threads", "batch_size", "max_source_rows"])
def test_an_option_that_makes_no_sense_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        options_of({}, {name: 0})


def test_options_come_from_the_call_then_from_the_config() -> None:
    config = {"lance.compaction.target_rows_per_fragment": "7", "lance.compaction.defer_index_remap": "TRUE"}
    assert options_of(config) == CompactionOptions(target_rows_per_fragment=7, defer_index_remap=True)
    assert options_of(config, {"target_rows_per_fragment": 8}).target_rows_per_fragment == 8
    with pytest.raises(InvalidInput, match="expected a whole number"):
        options_of({"lance.compaction.batch_size": "many"})
    with pytest.raises(InvalidInput, match="Invalid compaction option: foo"):
        options_of({}, {"foo": 1})
    with pytest.raises(TypeError):
        options_of({}, {"target_rows_per_fragment": "8"})
