"""Commits: constant cost, bounded patience, merged deletions, and nothing lost or torn whatever breaks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from lancelet.errors import Conflict as ConflictError
from lancelet.errors import InvalidInput, LanceletError, Storage
from lancelet.format import operations as op
from lancelet.format.fragments import Fragment
from lancelet.format.names import NamingScheme, manifest_path
from lancelet.format.transaction import Transaction, parse_transaction
from lancelet.rows.deletion_files import read_deletions
from lancelet.storage.counting import CountingStore, Counts
from lancelet.storage.memory import MemoryStore
from lancelet.table.commit import commit, create_table
from lancelet.table.outcome import Committed, Conflict, committed
from lancelet.table.paths import Places
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind
from lancelet.testing.tables import TWO_COLUMNS, carry_out, empty_fragment, make_table, written_deletion


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore(f"memory://{request.node.name}")


def append() -> op.Append:
    return op.Append((empty_fragment(),))


def requests(counting: CountingStore, before: Counts) -> dict[str, int]:
    now = counting.snapshot().requests
    spent = {verb: count - before.requests.get(verb, 0) for verb, count in now.items()}
    return {verb: count for verb, count in spent.items() if count}


@pytest.mark.parametrize(("scheme", "commits"), [(NamingScheme.V2, 1000), (NamingScheme.V1, 50)])
def test_the_last_of_many_commits_costs_what_the_first_does(
    store: MemoryStore, scheme: NamingScheme, commits: int
) -> None:
    counting = CountingStore(store)
    committed(create_table(counting, Transaction(0, op.Overwrite((), TWO_COLUMNS)), scheme=scheme))
    snapshot = open_snapshot(counting)
    change = op.UpdateConfig(op.MapUpdate((("k", "v"),)))
    for number in range(commits):
        before = counting.snapshot()
        outcome = commit(snapshot, Transaction(snapshot.version, change))
        assert outcome.version == number + 2
        assert requests(counting, before) == {"list": 1, "put": 2, "put_if_absent": 1}
        before = counting.snapshot()
        latest = number % 100 == 99
        snapshot = open_snapshot(counting, version=None if latest else outcome.version)
        assert snapshot.version == outcome.version
        assert not latest or requests(counting, before) == {"list": 1, "read_all": 1}


@pytest.mark.parametrize("detached", [False, True])
def test_a_version_and_the_file_of_its_transaction_tell_the_same(store: MemoryStore, detached: bool) -> None:
    made = committed(commit(make_table(store), Transaction(1, append()), detached=detached))
    for version in (1, made.version):
        read = open_snapshot(store, version=version)
        told = read.file.transaction()
        assert told is not None
        assert parse_transaction(store.read_all(f"_transactions/{read.manifest.transaction_file}")) == told


def test_ids_of_fragments_and_rows_go_on_from_what_others_have_taken(store: MemoryStore) -> None:
    read = make_table(store, 1, stable_row_ids=True)
    for _ in range(3):
        outcome = committed(commit(read, Transaction(1, append())))
    assert (outcome.version, outcome.transaction.read_version) == (4, 3)
    latest = open_snapshot(store).manifest
    assert latest.fragments.ids().tolist() == [0, 1, 2, 3]
    assert (latest.max_fragment_id, latest.next_row_id) == (3, 40)


def test_the_same_transaction_twice_is_committed_once(store: MemoryStore) -> None:
    read = make_table(store)
    transaction = Transaction(1, append())
    first, second = commit(read, transaction), commit(read, transaction)
    assert isinstance(second, Committed)
    assert first.version == second.version == open_snapshot(store).version == 2


def test_a_transaction_worked_out_from_another_version_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="from version 7"):
        commit(make_table(store), Transaction(7, append()))


def test_only_a_detached_version_follows_a_detached_one(store: MemoryStore) -> None:
    aside = committed(commit(make_table(store), Transaction(1, append()), detached=True))
    read = open_snapshot(store, version=aside.version)
    with pytest.raises(InvalidInput, match="detached"):
        commit(read, Transaction(read.version, append()))
    further = committed(commit(read, Transaction(read.version, append()), detached=True))
    assert len(open_snapshot(store, version=further.version).manifest.fragments) == 5


def delete(store: MemoryStore, offsets: list[int], *, version: int = 1) -> Committed | Conflict:
    read = open_snapshot(store, version=version)
    operation = op.Delete((written_deletion(read, 0, offsets),))
    return commit(read, Transaction(version, operation), affected_rows={0: np.array(offsets, np.uint32)})


def deleted(store: MemoryStore) -> list[int]:
    latest = open_snapshot(store)
    fragment = latest.manifest.fragments[0]
    assert fragment.deletion_file is not None
    place, path = Places.of(latest).deletion_file(0, fragment.deletion_file)
    found = read_deletions(place.read_all(path), fragment.deletion_file.kind, physical_rows=10)
    assert len(found) == fragment.deletion_file.num_deleted_rows
    return found.rows.tolist()


def test_deletes_of_other_rows_of_one_fragment_are_merged(store: MemoryStore) -> None:
    make_table(store)
    assert [delete(store, rows).version for rows in ([1, 2], [5], [9])] == [2, 3, 4]
    assert deleted(store) == [1, 2, 5, 9]


def test_deletes_of_one_row_conflict(store: MemoryStore) -> None:
    make_table(store)
    delete(store, [1, 2])
    outcome = delete(store, [2, 3])
    assert isinstance(outcome, Conflict)
    assert (outcome.retryable, outcome.version, outcome.operation) == (True, 2, "Delete")
    assert "rows 2 of fragment 0" in outcome.reason
    assert deleted(store) == [1, 2]


def test_a_fragment_whose_last_rows_are_deleted_by_both_leaves_the_table(store: MemoryStore) -> None:
    make_table(store)
    delete(store, list(range(5)))
    delete(store, list(range(5, 10)))
    assert open_snapshot(store).manifest.fragments.ids().tolist() == [1, 2]


def test_an_overwrite_that_may_not_be_tried_again_gives_way(store: MemoryStore) -> None:
    read = make_table(store)
    carry_out(store, append())
    overwrite = Transaction(1, op.Overwrite((), TWO_COLUMNS))
    assert isinstance(commit(read, overwrite, max_retries=0), Conflict)
    assert isinstance(commit(read, overwrite), Committed)


def test_what_was_cleaned_up_before_it_was_checked_is_a_conflict(store: MemoryStore) -> None:
    read = make_table(store)
    carry_out(store, append())
    carry_out(store, append())
    store.delete([manifest_path(2)])
    outcome = commit(read, Transaction(1, append()))
    assert isinstance(outcome, Conflict)
    assert (outcome.version, outcome.operation) == (2, "a commit that left no transaction")


def test_a_table_is_made_once(store: MemoryStore) -> None:
    make_table(store)
    outcome = create_table(store, Transaction(0, op.Overwrite((), TWO_COLUMNS)))
    assert isinstance(outcome, Conflict)
    assert outcome.version == 1


def test_the_lock_is_held_for_the_version_while_it_is_written(store: MemoryStore) -> None:
    held: list[tuple[int, bool]] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        yield
        held.append((version, store.size(manifest_path(version)) > 0))

    commit(make_table(store), Transaction(1, append()), commit_lock=lock)
    assert held == [(2, True)]


def test_a_lock_that_somebody_else_holds_costs_an_attempt(store: MemoryStore) -> None:
    asked: list[int] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        asked.append(version)
        if len(asked) == 1:
            raise ConflictError("held")
        yield

    outcome = committed(commit(make_table(store), Transaction(1, append()), commit_lock=lock))
    assert (asked, outcome.version, outcome.attempts) == ([2, 2], 2, 2)


class Overtaken(MemoryStore):
    """Somebody else is always faster: before each version that is put, they put their own."""

    def put_if_absent(self, path: str, data: bytes) -> None:  # type: ignore[override]
        carry_out(MemoryStore(self.uri), op.UpdateConfig(op.MapUpdate((("k", "v"),))))
        super().put_if_absent(path, data)


def test_a_writer_who_is_always_overtaken_gives_up(store: MemoryStore) -> None:
    make_table(store)
    read = replace(open_snapshot(store), store=Overtaken(store.uri))
    outcome = commit(read, Transaction(1, append()), max_retries=3)
    assert isinstance(outcome, Conflict)
    assert (outcome.retryable, outcome.version, outcome.operation) == (True, 4, "UpdateConfig")
    assert "3 attempts" in outcome.reason


def race(store: MemoryStore, writers: int, commits: int) -> list[Fragment]:
    """Fragments that as many threads were told they had committed."""
    acknowledged: list[Fragment] = []

    def work() -> None:
        for _ in range(commits):
            operation = append()
            outcome = carry_out(store, operation)
            if isinstance(outcome, Committed):
                acknowledged.append(operation.fragments[0])

    threads = [threading.Thread(target=work) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged


def test_racing_threads_lose_nothing(store: MemoryStore) -> None:
    make_table(store, 0)
    acknowledged = race(store, writers=6, commits=8)
    assert len(acknowledged) >= 40
    stored = [item.files[0].path for item in open_snapshot(store).manifest.fragments]
    assert sorted(stored) == sorted(item.files[0].path for item in acknowledged)


def test_of_racing_creators_one_makes_the_table(store: MemoryStore) -> None:
    outcomes: list[object] = []

    def work() -> None:
        outcomes.append(create_table(store, Transaction(0, op.Overwrite((empty_fragment(),), TWO_COLUMNS))))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Committed"] + ["Conflict"] * 5
    assert len(open_snapshot(store).manifest.fragments) == 1


MANIFESTS, TRANSACTIONS, HINTS = "_versions/*.manifest", "_transactions/*", "*.json"


@pytest.mark.parametrize("retryable", [True, False])
@pytest.mark.parametrize("kind", [Kind.LOST_ANSWER, Kind.ERROR, Kind.TORN])
def test_a_lost_answer_is_settled_by_looking(store: MemoryStore, kind: Kind, retryable: bool) -> None:
    read = make_table(store)
    faulty = FaultyStore(store, [Fault(kind=kind, verb="put_if_absent", path=MANIFESTS, retryable=retryable)])
    outcome = commit(replace(read, store=faulty), Transaction(1, append()))
    assert isinstance(outcome, Committed)
    assert outcome.version == open_snapshot(store).version == 2


def test_an_answer_lost_to_somebody_else_is_not_taken_for_ones_own(store: MemoryStore) -> None:
    make_table(store)
    faulty = FaultyStore(Overtaken(store.uri), [Fault(kind=Kind.LOST_ANSWER, verb="put_if_absent", path=MANIFESTS)])
    outcome = commit(replace(open_snapshot(store), store=faulty), Transaction(1, append()), max_retries=1)
    assert isinstance(outcome, Conflict)
    assert len(open_snapshot(store).manifest.fragments) == 3


def test_a_store_that_stays_silent_leaves_it_open(store: MemoryStore) -> None:
    read = make_table(store)
    faulty = FaultyStore(store, [Fault(kind=Kind.ERROR, verb="put_if_absent", times=None)])
    with pytest.raises(Storage, match="may or may not have been made"):
        commit(replace(read, store=faulty), Transaction(1, append()))


def test_a_hint_that_cannot_be_written_does_not_matter(store: MemoryStore) -> None:
    read = make_table(store)
    faulty = FaultyStore(store, [Fault(kind=Kind.ERROR, verb="put", path=HINTS, times=None)])
    assert isinstance(commit(replace(read, store=faulty), Transaction(1, append())), Committed)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("verb", "path", "visible"),
    [
        ("list", "_versions/", False),
        ("read_all", MANIFESTS, False),
        ("read_all", "_deletions/*", False),
        ("put", "_deletions/*", False),
        ("put", TRANSACTIONS, False),
        ("put_if_absent", MANIFESTS, None),
        ("put", HINTS, True),
    ],
)
def test_death_at_any_step_leaves_the_old_version_or_the_new(
    store: MemoryStore, verb: str, path: str, visible: bool | None, after: bool
) -> None:
    read = make_table(store)
    own = written_deletion(read, 0, [7])
    assert delete(store, [1]).version == 2
    faulty = FaultyStore(store, [Fault(kind=Kind.KILL, verb=verb, path=path, after=after)])
    transaction = Transaction(1, op.Delete((own,)))
    with pytest.raises(Killed):
        commit(replace(read, store=faulty), transaction, affected_rows={0: np.array([7], np.uint32)})
    happened = after if visible is None else visible
    assert open_snapshot(store).version == (3 if happened else 2)
    assert deleted(store) == ([1, 7] if happened else [1])
    # Whoever comes next, with the same work or another's, finds everything in order.
    assert isinstance(commit(read, transaction, affected_rows={0: np.array([7], np.uint32)}), Committed)
    assert deleted(store) == [1, 7]
    assert open_snapshot(store).version == 3
    carry_out(store, append())
    assert len(open_snapshot(store).manifest.fragments) == 4


@pytest.mark.parametrize("seed", range(8))
def test_acknowledged_commits_survive_random_faults(store: MemoryStore, seed: int) -> None:
    make_table(store, 0)
    faulty = FaultyStore(store, seed=seed, rate=0.15)
    acknowledged, unsure = set(), set()
    for _ in range(40):
        operation = append()
        name = operation.fragments[0].files[0].path
        try:
            outcome = carry_out(faulty, operation)
        except LanceletError:
            unsure.add(name)
            continue
        assert isinstance(outcome, Committed)
        acknowledged.add(name)
    stored = [item.files[0].path for item in open_snapshot(store).manifest.fragments]
    assert len(stored) == len(set(stored))
    assert acknowledged <= set(stored) <= acknowledged | unsure
