"""Two writers at one version, their steps in every order: what comes of it is what one after the other makes."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from lancelet.format import operations as op
from lancelet.format.transaction import Transaction
from lancelet.rows.deletion_files import read_deletions
from lancelet.storage.delegating import Delegating
from lancelet.storage.memory import MemoryStore, forget
from lancelet.storage.store import Data, Entry, Store
from lancelet.table.commit import commit
from lancelet.table.conflicts import AffectedRows
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.testing.tables import TWO_COLUMNS, empty_fragment, make_table, written_deletion

#: Steps of one undisturbed commit: list, transaction, manifest, hint.
STEPS = 4


class Turns:
    """Says which of two writers may take the next step; a writer that is done no longer waits."""

    def __init__(self, order: Sequence[int]) -> None:
        self._order = list(order)
        self._done = [False, False]
        self._changed = threading.Condition()

    def take(self, writer: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._next() in (writer, None), timeout=10)
            if self._order:
                self._order.pop(0)
            self._changed.notify_all()

    def finish(self, writer: int) -> None:
        with self._changed:
            self._done[writer] = True
            self._changed.notify_all()

    def _next(self) -> int | None:
        while self._order and self._done[self._order[0]]:
            self._order.pop(0)
        return self._order[0] if self._order else None


class Stepping(Delegating):
    """A store whose requests wait for their turn."""

    def __init__(self, inner: Store, turns: Turns, writer: int) -> None:
        super().__init__(inner)
        self._turns, self._writer = turns, writer

    def put(self, path: str, data: Data) -> None:
        self._turns.take(self._writer)
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: Data) -> None:
        self._turns.take(self._writer)
        self.inner.put_if_absent(path, data)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        self._turns.take(self._writer)
        return self.inner.list_from(prefix, start_after)


Work = Callable[[Snapshot], tuple[op.Operation, AffectedRows | None]]


def deleting(*rows: int) -> Work:
    def work(read: Snapshot) -> tuple[op.Operation, AffectedRows]:
        return op.Delete((written_deletion(read, 0, list(rows)),)), {0: np.array(rows, np.uint32)}

    return work


def moving(row: int) -> Work:
    def work(read: Snapshot) -> tuple[op.Operation, AffectedRows]:
        changed = (written_deletion(read, 0, [row]),)
        return op.Update((), changed, (empty_fragment(1),)), {0: np.array([row], np.uint32)}

    return work


def plain(operation: op.Operation) -> Work:
    return lambda read: (operation, None)


WORKS: dict[str, Work] = {
    "append": plain(op.Append((empty_fragment(),))),
    "delete rows": deleting(1, 2),
    "delete others": deleting(7),
    "delete one of them": deleting(2, 3),
    "update": moving(5),
    "delete a fragment": plain(op.Delete((), (0,))),
    "overwrite": plain(op.Overwrite((empty_fragment(),), TWO_COLUMNS)),
    "reserve": plain(op.ReserveFragments(3)),
    "config": plain(op.UpdateConfig(op.MapUpdate((("k", "v"),)))),
    "project": plain(op.Project(TWO_COLUMNS, preserves_nullability=True)),
}


def state(store: Store) -> tuple[object, ...]:
    """What there is in the newest version, without names drawn at random."""
    snapshot = open_snapshot(store)
    deleted = {}
    for item in snapshot.manifest.fragments:
        if item.deletion_file is not None:
            place, path = Places.of(snapshot).deletion_file(item.id, item.deletion_file)
            deleted[item.id] = read_deletions(place.read_all(path), item.deletion_file.kind).rows.tolist()
    manifest = snapshot.manifest
    rows = dict(zip(manifest.fragments.ids().tolist(), manifest.fragments.physical_rows().tolist(), strict=True))
    return snapshot.version, rows, deleted, dict(manifest.config), manifest.max_fragment_id, manifest.next_row_id


def one_after_the_other(store: MemoryStore, works: Sequence[Work]) -> tuple[list[Outcome], tuple[object, ...]]:
    read = make_table(store, 2, stable_row_ids=True)
    outcomes = []
    for work in works:
        operation, affected = work(read)
        outcomes.append(commit(read, Transaction(1, operation), affected_rows=affected))
    found = state(store)
    forget(store.uri)
    return outcomes, found


def at_once(store: MemoryStore, works: Sequence[Work], order: Sequence[int]) -> list[Outcome]:
    read = make_table(store, 2, stable_row_ids=True)
    turns = Turns(order)
    outcomes: dict[int, Outcome] = {}
    prepared = [work(read) for work in works]

    def run(writer: int) -> None:
        operation, affected = prepared[writer]
        try:
            stepping = replace(read, store=Stepping(store, turns, writer))
            outcomes[writer] = commit(stepping, Transaction(1, operation), affected_rows=affected)
        finally:
            turns.finish(writer)

    threads = [threading.Thread(target=run, args=(writer,)) for writer in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[0], outcomes[1]]


ORDERS = [
    [0 if step in places else 1 for step in range(2 * STEPS)]
    for places in itertools.combinations(range(2 * STEPS), STEPS)
]
PAIRS = list(itertools.combinations_with_replacement(WORKS, 2))


def check(first: str, second: str, orders: Sequence[Sequence[int]], store: MemoryStore) -> None:
    works = [WORKS[first], WORKS[second]]
    expected = {0: one_after_the_other(store, works), 1: one_after_the_other(store, works[::-1])}
    for order in orders:
        outcomes = at_once(store, works, order)
        winner = next(number for number, outcome in enumerate(outcomes) if outcome.version == 2 and _in(outcome))
        serial, final = expected[winner]
        assert [_in(outcomes[winner]), _in(outcomes[1 - winner])] == [_in(outcome) for outcome in serial], order
        assert state(store) == final, order
        forget(store.uri)


def _in(outcome: Outcome) -> bool:
    return isinstance(outcome, Committed)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_commits_at_once_are_commits_one_after_the_other(
    first: str, second: str, request: pytest.FixtureRequest
) -> None:
    drawn = random.Random(f"{first}, {second}").sample(ORDERS, 8)
    check(first, second, drawn, MemoryStore(f"memory://{request.node.name}"))


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_commits_in_every_order_are_commits_one_after_the_other(
    first: str, second: str, request: pytest.FixtureRequest
) -> None:
    check(first, second, ORDERS, MemoryStore(f"memory://{request.node.name}"))
