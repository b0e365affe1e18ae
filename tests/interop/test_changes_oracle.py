"""Changes between versions as rows, held against what each version holds, in histories that both write by turns."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancelet
from lancelet.errors import InvalidInput, Unsupported
from lancelet.ops.changes import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    KINDS,
    POSTIMAGE,
    PREIMAGE,
    ChangesRequest,
    Pair,
    Side,
    plan_changes,
    run_changes,
    version_pairs,
)
from lancelet.storage import open_store
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.testing.agreement import disagreement

#: A changed row: what happened, its id, its key, its value.
Change = tuple[str, int, int, str | None]


def rows(keys: list[int], word: str) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array([f"{word}{key}" for key in keys], pa.string())})


class History:
    """A table that grows by random changes, each made by one of the two implementations."""

    def __init__(self, path: Path, seed: int, *, stable: bool) -> None:
        self.path, self.stable = str(path), stable
        self.random = random.Random(seed)
        self.next_key = 0
        self.either.write_dataset(
            rows(self.keys(40), "a"), self.path, enable_stable_row_ids=stable, max_rows_per_file=15
        )

    @property
    def either(self) -> Any:
        return self.random.choice([lance, lancelet])

    def keys(self, count: int) -> list[int]:
        self.next_key += count
        return list(range(self.next_key - count, self.next_key))

    def some_keys(self, dataset: Any) -> list[int]:
        known = dataset.to_table(columns=["k"])["k"].to_pylist()
        return sorted(set(self.random.sample(known, min(len(known), self.random.randint(1, 9)))))

    def turn(self, names: list[str]) -> None:
        dataset = self.either.dataset(self.path)
        getattr(self, self.random.choice(names))(dataset, f"{dataset.version}-")

    def append(self, dataset: Any, word: str) -> None:
        dataset.insert(rows(self.keys(self.random.randint(1, 20)), word))

    def delete(self, dataset: Any, word: str) -> None:
        keys = self.some_keys(dataset)
        dataset.delete(f"k in ({', '.join(map(str, keys))})" if keys else "false")

    def update(self, dataset: Any, word: str) -> None:
        modulus = self.random.randint(2, 9)
        dataset.update({"v": f"'{word}'"}, where=f"k % {modulus} = 1")

    def merge(self, dataset: Any, word: str) -> None:
        source = rows([*self.some_keys(dataset), *self.keys(2)], word)
        dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(source)

    def compact(self, dataset: Any, word: str) -> None:
        lance.dataset(self.path).optimize.compact_files(target_rows_per_fragment=30)

    def restore(self, dataset: Any, word: str) -> None:
        dataset.checkout_version(self.random.randint(1, dataset.version)).restore()

    def overwrite(self, dataset: Any, word: str) -> None:
        self.either.write_dataset(rows(self.keys(10), word), self.path, mode="overwrite")

    def add_column(self, dataset: Any, word: str) -> None:
        lance.dataset(self.path).add_columns({f"c{dataset.version}": "k + 1"})

    def index(self, dataset: Any, word: str) -> None:
        dataset.create_scalar_index("k", "BTREE", replace=True)

    def config(self, dataset: Any, word: str) -> None:
        dataset.update_config({"word": word})

    def snapshot(self, version: int) -> Snapshot | None:
        return open_snapshot(open_store(self.path), version=version) if version else None

    def pair(self, begin: int, end: int) -> Pair:
        after = self.snapshot(end)
        assert after is not None
        return Pair.of(self.snapshot(begin), after)


#: What is told row for row where rows have ids, and where they have not.
FOLLOWED = ["append", "delete", "update", "merge", "compact", "restore", "overwrite", "add_column", "index", "config"]
TOLD_BY_ADDRESS = ["append", "delete", "overwrite", "restore", "index", "config", "add_column"]


def held(path: str, version: int, *, stable: bool) -> dict[int, tuple[int, str | None, int]]:
    """Key, value and version of last change of each row by its id, as pylance reads them."""
    if not version:
        return {}
    columns = ["k", "v", "_rowid", *(["_row_last_updated_at_version"] if stable else [])]
    table = lance.dataset(path, version=version).to_table(columns=columns)
    last = table["_row_last_updated_at_version"].to_pylist() if stable else [0] * table.num_rows
    values = zip(table["k"].to_pylist(), table["v"].to_pylist(), last, strict=True)
    return dict(zip(table["_rowid"].to_pylist(), values, strict=True))


def expected(path: str, begin: int, end: int, *, stable: bool) -> set[Change]:
    before, after = held(path, begin, stable=stable), held(path, end, stable=stable)
    found: set[Change] = set()
    for number, (key, value, last) in after.items():
        if number not in before:
            found.add((INSERT, number, key, value))
        elif before[number][2] != last:
            found |= {(PREIMAGE, number, *before[number][:2]), (POSTIMAGE, number, key, value)}
    found |= {(DELETE, number, *before[number][:2]) for number in before.keys() - after.keys()}
    return found


def told(pair: Pair, **request: Any) -> Iterator[pa.RecordBatch]:
    plan = plan_changes(pair, ChangesRequest(columns=("k", "v", "_rowid"), **request))
    # Tasks cross to other machines.
    plan = pickle.loads(pickle.dumps(plan))
    for task in plan.tasks:
        for batch in run_changes(plan, task, pair):
            assert batch.schema == plan.schema
            yield batch


def changes(pair: Pair, **request: Any) -> list[Change]:
    return [
        (row[CHANGE_TYPE], row["_rowid"], row["k"], row["v"])
        for batch in told(pair, **request)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("seed", range(6))
def test_what_lies_between_any_two_versions_is_told_row_for_row(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "t", seed, stable=True)
    for _ in range(14):
        history.turn(FOLLOWED)
    last = lance.dataset(history.path).version
    pairs = [(version - 1, version) for version in range(1, last + 1)]
    pairs += [tuple(sorted(history.random.sample(range(last + 1), 2))) for _ in range(10)]
    for begin, end in pairs:
        found = changes(history.pair(begin, end), rows_per_task=20, batch_size=7)
        assert max(Counter(found).values(), default=1) == 1
        assert set(found) == expected(history.path, begin, end, stable=True), (begin, end)


@pytest.mark.parametrize("seed", range(4))
def test_without_stable_row_ids_rows_are_told_by_their_addresses(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "t", seed, stable=False)
    for _ in range(10):
        history.turn([name for name in TOLD_BY_ADDRESS if name != "add_column"])
    last = lance.dataset(history.path).version
    pairs = [tuple(sorted(history.random.sample(range(last + 1), 2))) for _ in range(12)]
    for begin, end in pairs:
        assert set(changes(history.pair(begin, end))) == expected(history.path, begin, end, stable=False), (begin, end)


@pytest.mark.parametrize(
    ("name", "words"), [("update", "stable_row_ids"), ("merge", "stable_row_ids"), ("compact", "version by version")]
)
def test_rows_that_were_moved_among_new_ones_are_refused_by_name(tmp_path: Path, name: str, words: str) -> None:
    history = History(tmp_path / "t", 1, stable=False)
    history.turn(["append"])
    history.turn([name])
    last = lance.dataset(history.path).version
    with pytest.raises(Unsupported, match=words):
        plan_changes(history.pair(1, last))
    # What came before is told all the same, and whatever there is is new to one who saw nothing.
    assert {kind for kind, *_ in changes(history.pair(1, 2))} == {INSERT}
    assert len(changes(history.pair(0, last))) == lance.dataset(history.path).count_rows()


@pytest.mark.parametrize("stable", [True, False])
def test_a_version_that_only_moved_rows_has_no_changes(tmp_path: Path, stable: bool) -> None:
    history = History(tmp_path / "t", 1, stable=stable)
    lance.dataset(history.path).delete("k = 5")
    lance.dataset(history.path).optimize.compact_files()
    last = lance.dataset(history.path).version
    assert changes(history.pair(2, last)) == []


@pytest.mark.parametrize("stable", [True, False])
def test_columns_given_in_place_are_updates_of_all_rows(tmp_path: Path, stable: bool) -> None:
    history = History(tmp_path / "t", 1, stable=stable)
    lance.dataset(history.path).add_columns({"w": "k * 2"})
    pair = history.pair(1, 2)
    plan = plan_changes(pair, ChangesRequest(columns=("k", "w")))
    found = pa.Table.from_batches([batch for task in plan.tasks for batch in run_changes(plan, task, pair)])
    assert Counter(found[CHANGE_TYPE].to_pylist()) == {PREIMAGE: 40, POSTIMAGE: 40}
    for row in found.to_pylist():
        assert row["w"] == (None if row[CHANGE_TYPE] == PREIMAGE else row["k"] * 2)


def test_a_column_that_was_renamed_or_widened_is_told_as_it_is_called_now(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", "y", "z"], "gone": [0.5] * 3})
    dataset = lance.write_dataset(table, path, enable_stable_row_ids=True)
    dataset.alter_columns({"path": "b", "name": "c"})
    dataset.alter_columns({"path": "a", "data_type": pa.int64()})
    dataset.drop_columns(["gone"])
    dataset.delete("a = 2")
    pair = Pair.of(open_snapshot(open_store(path), version=1), open_snapshot(open_store(path), version=dataset.version))
    plan = plan_changes(pair, ChangesRequest(kinds=(DELETE,)))
    assert plan.schema.names == ["a", "c", CHANGE_TYPE]
    found = [row for task in plan.tasks for batch in run_changes(plan, task, pair) for row in batch.to_pylist()]
    assert found == [{"a": 2, "c": "y", CHANGE_TYPE: DELETE}]


def test_columns_of_another_table_at_the_same_place_are_not_taken_for_renamed_ones(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance.write_dataset(pa.table({"a": [1, 2]}), path, enable_stable_row_ids=True)
    lance.write_dataset(pa.table({"b": [7]}), path, mode="overwrite")
    store = open_store(path)
    pair = Pair.of(open_snapshot(store, version=1), open_snapshot(store))
    plan = plan_changes(pair)
    found = [row for task in plan.tasks for batch in run_changes(plan, task, pair) for row in batch.to_pylist()]
    assert found == [{"b": None, CHANGE_TYPE: DELETE}] * 2 + [{"b": 7, CHANGE_TYPE: INSERT}]


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_kinds_asked_for_are_told(tmp_path: Path, kind: str) -> None:
    history = History(tmp_path / "t", 3, stable=True)
    for name in ("append", "update", "delete", "merge"):
        history.turn([name])
    pair = history.pair(1, 5)
    assert set(changes(pair, kinds=(kind,))) == {item for item in changes(pair) if item[0] == kind}
    sides = {task.side for task in plan_changes(pair, ChangesRequest(kinds=(kind,))).tasks}
    assert sides == {Side.BEFORE if kind in (DELETE, PREIMAGE) else Side.AFTER}


def test_a_deleted_row_of_a_large_fragment_costs_a_look_at_that_row_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    dataset = lancelet.write_dataset(
        pa.table({"k": range(100_000), "v": ["x"] * 100_000}), path, enable_stable_row_ids=True
    )
    dataset.delete("k = 77777")
    store = open_store(path)
    pair = Pair.of(open_snapshot(store, version=1), open_snapshot(store))
    assert changes(pair) == [(DELETE, 77777, 77777, "x")]


def test_versions_are_followed_one_by_one_and_those_cleaned_up_are_named(tmp_path: Path) -> None:
    history = History(tmp_path / "t", 5, stable=True)
    for _ in range(6):
        history.turn(["append", "update", "delete"])
    after = history.snapshot(7)
    assert after is not None
    steps = list(version_pairs(history.snapshot(2), after))
    assert [(pair.begin, pair.after.version) for pair in steps] == [(version, version + 1) for version in range(2, 7)]
    lancelet.dataset(history.path).cleanup_old_versions(retain_versions=2)
    with pytest.raises(FileNotFoundError, match=r"there is no version 3.*cleaned up"):
        list(version_pairs(open_snapshot(open_store(history.path), version=6), after)) + list(
            version_pairs(steps[0].before, after)
        )


def test_versions_that_do_not_follow_one_another_are_refused(tmp_path: Path) -> None:
    history = History(tmp_path / "t", 1, stable=True)
    history.turn(["append"])
    with pytest.raises(InvalidInput, match="begin version 2 is newer than end version 1"):
        history.pair(2, 1)
    branch = lancelet.dataset(history.path).create_branch("b")
    with pytest.raises(InvalidInput, match="one branch"):
        Pair.of(history.snapshot(1), branch.snapshot)
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        plan_changes(history.pair(1, 2), ChangesRequest(columns=("nope",)))


def sorted_rows(reader: pa.RecordBatchReader) -> tuple[list[tuple[str, str, bool]], list[dict[str, object]]]:
    table = reader.read_all()
    fields = [(field.name, str(field.type), field.nullable) for field in table.schema]
    return fields, table.sort_by("_rowid").to_pylist()


#: What a delta is asked.
ASKED = [
    lambda delta: sorted_rows(delta.get_inserted_rows()),
    lambda delta: sorted_rows(delta.get_updated_rows()),
    lambda delta: sorted_rows(delta.get_deleted_row_ids()),
    lambda delta: [(item.read_version, item.uuid) for item in delta.list_transactions()],
]


@pytest.mark.parametrize("stable", [True, False])
def test_deltas_are_those_of_pylance(tmp_path: Path, stable: bool) -> None:
    history = History(tmp_path / "t", 11, stable=stable)
    for _ in range(12):
        # Of a compaction that moved an index along, pylance 14.0.2 cannot tell the transaction.
        history.turn([name for name in FOLLOWED if name != "index"])
    last = lance.dataset(history.path).version
    pairs = [(version - 1, version) for version in range(1, last + 1)]
    pairs += [(0, last), (1, last), (3, 1), (2, last + 3), (last + 1, last + 2), (1, 1)]
    for at in (last, 4):
        for begin, end in pairs:
            for asked in ASKED:

                def told(module: Any, at: int = at, begin: int = begin, end: int = end, asked: Any = asked) -> object:
                    return asked(module.dataset(history.path, version=at).delta(begin_version=begin, end_version=end))

                assert disagreement(lambda told=told: told(lancelet), lambda told=told: told(lance)) is None, (
                    begin,
                    end,
                )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"compared_against": 1},
        {"compared_against": 3},
        {"compared_against": 99},
        {"compared_against": 1, "begin_version": 2},
        {"compared_against": 2, "begin_version": 0, "end_version": 1},
        {"begin_version": 1},
        {"end_version": 1},
        {"compared_against": -1},
        {"compared_against": "1"},
        {"compared_against": 1.5},
        {"begin_version": 2**64, "end_version": 1},
        {"begin_version": True, "end_version": 2},
        {"nope": 1},
    ],
    ids=str,
)
def test_deltas_take_the_arguments_that_pylance_takes(tmp_path: Path, given: dict[str, Any]) -> None:
    history = History(tmp_path / "t", 2, stable=True)
    history.turn(["append"])
    history.turn(["update"])
    for asked in ASKED:

        def told(module: Any, asked: Any = asked) -> object:
            return asked(module.dataset(history.path).delta(**given))

        assert disagreement(lambda told=told: told(lancelet), lambda told=told: told(lance)) is None
