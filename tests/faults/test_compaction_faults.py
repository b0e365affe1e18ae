"""Compaction beside other writers, repeated, interrupted: no row is lost, doubled or back from the dead."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from lancelet.errors import Conflict, InvalidInput
from lancelet.format import operations as op
from lancelet.index.kinds import kind_named
from lancelet.ops.attempts import Attempts
from lancelet.ops.committing import commit_operation
from lancelet.ops.compaction.commit import commit_compaction
from lancelet.ops.compaction.compact import compact_files
from lancelet.ops.compaction.options import CompactionOptions
from lancelet.ops.compaction.plan import plan_compaction
from lancelet.ops.compaction.task import Compacted
from lancelet.ops.deletion import delete_where
from lancelet.ops.index.columns import indexed_column
from lancelet.ops.index.create import create_scalar_index
from lancelet.ops.index.optimize import optimize_indexes
from lancelet.ops.index.segments import plan_segments
from lancelet.ops.update import update
from lancelet.ops.write import append, create
from lancelet.query.request import request_for
from lancelet.query.scan import scan
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table import outcome
from lancelet.table.snapshot import Snapshot, open_snapshot

OPTIONS = CompactionOptions(target_rows_per_fragment=20)


def table(count: int = 100, *, stable: bool = False, indexed: bool = False) -> Store:
    store = MemoryStore(f"memory://compaction-faults-{random.getrandbits(64)}")
    create(store, pa.table({"x": range(10)}), stable_row_ids=stable)
    for start in range(10, count, 10):
        append(open_snapshot(store), pa.table({"x": range(start, start + 10)}))
    if indexed:
        create_scalar_index(open_snapshot(store), "x", "BTREE")
    return store


def values(store: Store, where: str | None = None, *, indexed: bool = True) -> list[int]:
    snapshot = open_snapshot(store)
    request = replace(request_for(snapshot, ["x"], filter=where), use_scalar_index=indexed)
    return [int(value) for value in scan(snapshot, request).read_all()["x"].to_pylist()]


def results_of(snapshot: Snapshot) -> list[Compacted]:
    """What all tasks bring, each in what is another process for all it knows."""
    tasks = [pickle.loads(pickle.dumps(task)) for task in plan_compaction(snapshot, OPTIONS).tasks]
    return [pickle.loads(pickle.dumps(task.run(snapshot.store))) for task in tasks]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_rows_deleted_while_tasks_ran_stay_deleted(stable: bool) -> None:
    store = table(stable=stable, indexed=True)
    before = open_snapshot(store)
    results = results_of(before)
    delete_where(open_snapshot(store), "x = 33 OR x = 77")
    done = commit_compaction(before, results)
    assert isinstance(done.outcome, outcome.Conflict)
    assert done.outcome.retryable
    assert values(store) == [x for x in range(100) if x not in (33, 77)]
    again = commit_compaction(before, results, partial=True)
    assert isinstance(again.outcome, outcome.Committed)
    assert len(again.overtaken) == 2
    assert sorted(values(store)) == [x for x in range(100) if x not in (33, 77)]
    assert values(store, "x > 30 AND x < 80") == values(store, "x > 30 AND x < 80", indexed=False)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_rows_that_others_append_update_and_index_meanwhile_are_kept(stable: bool) -> None:
    store = table(stable=stable, indexed=True)
    before = open_snapshot(store)
    results = results_of(before)
    append(open_snapshot(store), pa.table({"x": [1000, 1001]}))
    update(open_snapshot(store), {"x": "x + 500"}, "x = 5")
    optimize_indexes(open_snapshot(store))
    done = commit_compaction(before, results, partial=True)
    assert isinstance(done.outcome, outcome.Committed)
    expected = sorted([x for x in range(100) if x != 5] + [505, 1000, 1001])
    assert sorted(values(store)) == expected
    for where in ("x >= 500", "x < 20", "x = 5", "x = 505"):
        assert values(store, where) == values(store, where, indexed=False), where


def test_a_task_that_ran_twice_counts_once() -> None:
    store = table()
    before = open_snapshot(store)
    first, second = results_of(before), results_of(before)
    with pytest.raises(InvalidInput, match="more than one result"):
        commit_compaction(before, [*first, *second])
    assert isinstance(commit_compaction(before, [first[0], *second[1:]]).outcome, outcome.Committed)
    assert values(store) == list(range(100))
    late = commit_compaction(before, [second[0]])
    assert isinstance(late.outcome, outcome.Conflict), "its fragments are gone"
    assert values(store) == list(range(100))


def test_results_are_committed_one_by_one_in_any_order() -> None:
    store = table(indexed=True)
    before = open_snapshot(store)
    results = results_of(before)
    random.Random(1).shuffle(results)
    for one in results:
        assert isinstance(commit_compaction(before, [one]).outcome, outcome.Committed)
        assert sorted(values(store)) == list(range(100))
        assert values(store, "x > 30 AND x < 80") == values(store, "x > 30 AND x < 80", indexed=False)


def test_deferred_compactions_that_meet_both_tell_where_rows_went() -> None:
    store = table(indexed=True)
    before = open_snapshot(store)
    results = results_of(before)
    for one in results:
        done = commit_compaction(before, [one], defer_index_remap=True)
        assert isinstance(done.outcome, outcome.Committed)
    assert values(store, "x > 30 AND x < 80") == list(range(31, 80))
    optimize_indexes(open_snapshot(store))
    assert len(open_snapshot(store).indexes()) == 1
    assert values(store, "x > 30 AND x < 80") == list(range(31, 80))


def test_a_compaction_overtaken_in_all_it_did_is_worked_out_anew() -> None:
    store = table(20)
    before = open_snapshot(store)
    delete_where(open_snapshot(store), "x = 3")
    done = compact_files(before, OPTIONS, attempts=Attempts(retries=3))
    assert done.figures.fragments_removed == 2
    assert values(store) == [x for x in range(20) if x != 3]
    with pytest.raises(Conflict):
        compact_files(before, OPTIONS, attempts=Attempts(retries=0))
    assert values(store) == [x for x in range(20) if x != 3]


def test_an_index_made_meanwhile_over_some_of_the_rows_is_not_mixed_with_others() -> None:
    store = table()
    before = open_snapshot(store)
    results = results_of(before)
    now = open_snapshot(store)
    plan = plan_segments(now, indexed_column(now, "x"), kind_named("BTREE"), "some", [[0]])
    commit_operation(now, op.CreateIndex((plan.tasks[0].run(store),)))
    done = commit_compaction(before, results, partial=True)
    assert isinstance(done.outcome, outcome.Committed)
    assert len(done.overtaken) == 1
    assert values(store, "x < 30") == list(range(30))


@pytest.mark.parametrize("seed", range(4))
def test_histories_of_everything_at_once_keep_every_row(seed: int) -> None:
    draw = random.Random(seed)
    store = table(60, stable=seed % 2 == 1, indexed=True)
    alive = set(range(60))
    following = 60
    pending: list[tuple[Snapshot, list[Compacted]]] = []
    for _ in range(40):
        match draw.randrange(7):
            case 0:
                append(open_snapshot(store), pa.table({"x": range(following, following + 7)}))
                alive |= set(range(following, following + 7))
                following += 7
            case 1:
                gone = draw.sample(sorted(alive), min(3, len(alive)))
                delete_where(open_snapshot(store), f"x IN ({', '.join(map(str, gone))})")
                alive -= set(gone)
            case 2:
                old = draw.choice(sorted(alive))
                update(open_snapshot(store), {"x": str(following)}, f"x = {old}")
                alive = (alive - {old}) | {following}
                following += 1
            case 3:
                pending.append((snapshot := open_snapshot(store), results_of(snapshot)))
            case 4:
                optimize_indexes(open_snapshot(store))
            case 5 if pending:
                snapshot, results = pending.pop(draw.randrange(len(pending)))
                if results:
                    defer = seed % 2 == 0 and draw.random() < 0.5
                    commit_compaction(snapshot, results, partial=True, defer_index_remap=defer)
            case _:
                compact_files(open_snapshot(store), OPTIONS)
        assert sorted(values(store)) == sorted(alive)
        low = draw.randrange(following)
        for where in (f"x >= {low} AND x < {low + 30}", f"x = {low}"):
            assert sorted(values(store, where)) == sorted(values(store, where, indexed=False)), where
