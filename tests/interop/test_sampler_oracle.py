"""Samplers: for one seed both implementations hand out the same batches; every row falls to exactly one process."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import lance
import lance.sampler
import numpy as np
import pyarrow as pa
import pytest

import lancelet
from lancelet import sampler
from lancelet.errors import InvalidInput

ROWS = 1000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of several fragments with nulls and deleted rows; row 1 of its fragments is gone."""
    numbers = np.arange(ROWS)
    table = pa.table(
        {
            "x": numbers,
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(numbers.repeat(4).astype("f4")), 4),
            "maybe": pa.array(numbers, mask=numbers % 3 == 0),
        }
    )
    found = tmp_path_factory.mktemp("sampled") / "table"
    lance.write_dataset(table, found, max_rows_per_file=130).delete("x % 130 = 1")
    return found


def listed(batches: Iterable[pa.RecordBatch]) -> list[dict[str, list[object]]]:
    """The rows of each batch."""
    return [batch.to_pydict() for batch in batches]


@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("condition", [None, "x % 5 > 1"])
@pytest.mark.parametrize("name", ["ShardedFragmentSampler", "ShardedBatchSampler"])
def test_a_share_is_the_same_for_one_seed(
    place: Path, name: str, condition: str | None, rank: int, randomize: bool
) -> None:
    options = {"batch_size": 32, "columns": ["x", "vec"], "filter": condition}
    theirs = getattr(lance.sampler, name)(rank, 3, randomize=randomize, seed=11)
    ours = getattr(sampler, name)(rank, 3, randomize=randomize, seed=11)
    expected = listed(theirs(lance.dataset(place), **options))
    found = listed(ours(lancelet.dataset(place), **options))
    if name == "ShardedFragmentSampler":
        # How rows of a scan are spread over batches is up to each.
        assert [row for batch in found for row in batch["x"]] == [row for batch in expected for row in batch["x"]]
    else:
        assert found == expected


@pytest.mark.parametrize("randomize", [False, True])
def test_lists_of_row_numbers_are_the_same_for_one_seed(randomize: bool) -> None:
    for world, size, rows in [(1, 7, 20), (3, 4, 50), (4, 100, 1000), (5, 3, 4), (2, 5, 0)]:
        for rank in range(world):
            given = (rank, world, randomize, 3, size, rows)
            ours, theirs = sampler.ShardedFixedBatchSampler(*given), lance.sampler.ShardedFixedBatchSampler(*given)
            assert list(ours) == list(theirs)
            assert len(ours) == len(list(ours))


@pytest.mark.parametrize(
    ("n", "batch_size", "max_takes", "condition"),
    [
        (100, 32, 2048, None),
        (600, 32, 100, None),
        (640, 10240, 64, None),
        (2000, 128, 2048, None),
        (300, 30, 100, "maybe IS NOT NULL"),
    ],
)
def test_rows_drawn_are_the_same_for_one_seed(
    place: Path, n: int, batch_size: int, max_takes: int, condition: str | None
) -> None:
    found = []
    for module, table in ((lance.sampler, lance.dataset(place)), (sampler, lancelet.dataset(place))):
        np.random.seed(5)
        random.seed(5)
        found.append(listed(module.maybe_sample(table, n, ["maybe"], batch_size, max_takes, filt=condition)))
    assert found[0] == found[1] or n >= ROWS
    assert [row for batch in found[0] for row in batch["maybe"]] == [
        row for batch in found[1] for row in batch["maybe"]
    ]


@pytest.mark.parametrize(("n", "batch_size", "max_takes"), [(150, 10, 8), (333, 50, 100), (990, 1, 9)])
def test_as_many_rows_are_drawn_as_were_asked_for(place: Path, n: int, batch_size: int, max_takes: int) -> None:
    table = lancelet.dataset(place)
    drawn = [
        row for batch in sampler.maybe_sample(table, n, "x", batch_size, max_takes) for row in batch["x"].to_pylist()
    ]
    assert len(drawn) == len(set(drawn)) == n
    met = [
        row
        for batch in sampler.maybe_sample(table, n, "x", batch_size, max_takes, "maybe > 200 AND x < 700")
        for row in batch["x"].to_pylist()
    ]
    every = table.to_table(columns=["x"], filter="maybe > 200 AND x < 700")["x"].to_pylist()
    assert len(met) == len(set(met)) == min(n, len(every))
    assert set(met) <= set(every)


@pytest.mark.parametrize("condition", [None, "x % 7 = 1", "x < 0"])
@pytest.mark.parametrize("kind", [sampler.ShardedFragmentSampler, sampler.ShardedBatchSampler, sampler.ShuffledSampler])
def test_every_row_falls_to_exactly_one_process(
    place: Path, kind: type[sampler.ShuffledSampler], condition: str | None
) -> None:
    table = lancelet.dataset(place)
    rows = [
        row
        for rank in range(4)
        for batch in kind(rank, 4, seed=2)(table, batch_size=30, columns=["x"], filter=condition)
        for row in batch["x"].to_pylist()
    ]
    assert sorted(rows) == sorted(table.to_table(columns=["x"], filter=condition)["x"].to_pylist())


@pytest.mark.parametrize("condition", [None, "x % 7 > 1"])
@pytest.mark.parametrize(
    "made",
    [
        sampler.FullScanSampler(),
        sampler.ShardedFragmentSampler(1, 2, randomize=True, seed=4),
        sampler.ShardedBatchSampler(1, 2, randomize=True, seed=4),
        sampler.ShuffledSampler(1, 2, seed=4),
        sampler.ShuffledSampler(seed=4, drop_last=True),
    ],
    ids=lambda made: type(made).__name__,
)
def test_a_sampler_that_begins_later_hands_out_the_batches_that_were_left(
    place: Path, made: sampler.Sampler, condition: str | None
) -> None:
    table = lancelet.dataset(place)
    options = {"batch_size": 24, "columns": ["x"], "filter": condition}
    whole = listed(made(table, **options))
    for first in (0, 1, 5, len(whole), len(whole) + 3):
        assert listed(made.batches_from(table, first, **options)) == whole[first:]


def test_each_epoch_has_another_order_and_the_same_rows(place: Path) -> None:
    table = lancelet.dataset(place)
    made = sampler.ShuffledSampler(seed=4)
    orders = []
    for epoch in (0, 1, 0):
        made.set_epoch(epoch)
        orders.append([row for batch in made(table, columns=["x"]) for row in batch["x"].to_pylist()])
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_where_the_last_batches_are_dropped_all_processes_have_as_many_full_ones(place: Path) -> None:
    table = lancelet.dataset(place)
    counts = [
        [batch.num_rows for batch in sampler.ShuffledSampler(rank, 3, drop_last=True)(table, batch_size=64)]
        for rank in range(3)
    ]
    assert counts == [[64] * (table.count_rows() // (64 * 3))] * 3


def test_row_ids_come_along_where_they_are_asked_for(place: Path) -> None:
    table = lancelet.dataset(place)
    expected = dict(zip(*table.to_table(columns=["x"], with_row_id=True).to_pydict().values(), strict=True))
    for made in (sampler.ShardedBatchSampler(0, 1), sampler.ShuffledSampler(), sampler.FullScanSampler()):
        for columns in (["x"], {"x": "x"}):
            batches = listed(made(table, columns=columns, with_row_id=True))
            found = [pair for batch in batches for pair in zip(batch["x"], batch["_rowid"], strict=True)]
            assert dict(found) == expected


def test_a_process_that_is_not_among_them_is_refused() -> None:
    with pytest.raises(InvalidInput, match="rank is 2 of 2 processes"):
        sampler.ShardedBatchSampler(2, 2)
