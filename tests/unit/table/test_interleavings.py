"""Two writers at one version: every order of their requests, every death; as if one had come after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from uuid import UUID, uuid4

import numpy as np
import pytest

from lancelet.format import operations as op
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import TOMBSTONE, DataFile
from lancelet.format.indexes import IndexDetails, IndexMetadata
from lancelet.format.manifest import BasePath
from lancelet.format.row_ids import Range, write_row_ids
from lancelet.format.transaction import Transaction
from lancelet.rows.bitmaps import BitMap, write_bitmap
from lancelet.rows.deletion_files import read_deletions
from lancelet.storage.memory import MemoryStore, forget
from lancelet.storage.store import Store
from lancelet.table.commit import commit
from lancelet.table.conflicts import AffectedRows
from lancelet.table.index_upkeep import covered
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.testing.faults import Killed
from lancelet.testing.schedules import Director, drawn_runs, every_run
from lancelet.testing.tables import TWO_COLUMNS, empty_fragment, make_table, written_deletion

Work = Callable[[Snapshot], tuple[op.Operation, AffectedRows | None]]

THREE_COLUMNS = Schema((*TWO_COLUMNS.fields, Field("c", "string", id=2)))
INDEX = IndexMetadata(
    UUID(int=7), "a_idx", (0,), 1, write_bitmap(BitMap([0, 1])), IndexDetails("/lance.table.BTreeIndexDetails")
)


def deleting(*rows: int) -> Work:
    def work(read: Snapshot) -> tuple[op.Operation, AffectedRows]:
        return op.Delete((written_deletion(read, 0, list(rows)),)), {0: np.array(rows, np.uint32)}

    return work


def moving(row: int) -> Work:
    def work(read: Snapshot) -> tuple[op.Operation, AffectedRows]:
        changed = (written_deletion(read, 0, [row]),)
        return op.Update((), changed, (empty_fragment(1, file="moved.lance"),)), {0: np.array([row], np.uint32)}

    return work


def new_column_file(name: str, field_id: int) -> DataFile:
    return DataFile(name, (field_id,), (0,), 2, 2, 1)


def updating_a_column(read: Snapshot) -> tuple[op.Operation, None]:
    item = read.manifest.fragments[1]
    files = (replace(item.files[0], fields=(0, TOMBSTONE)), new_column_file("updated.lance", 1))
    changed = replace(item, files=files)
    return op.Update((), (changed,), (), fields_modified=(1,), mode=op.UpdateMode.REWRITE_COLUMNS), None


def adding_a_column(read: Snapshot) -> tuple[op.Operation, None]:
    wider = [
        replace(item, files=(*item.files, new_column_file(f"c{item.id}.lance", 2))) for item in read.manifest.fragments
    ]
    return op.Merge(tuple(wider), THREE_COLUMNS, preserves_nullability=True), None


def compacting(read: Snapshot) -> tuple[op.Operation, None]:
    # Row ids of rewritten rows are the rewriter's to bring along.
    old = tuple(read.manifest.fragments)
    rows = sum(item.physical_rows or 0 for item in old)
    ids = write_row_ids([Range(0, rows)])
    new = replace(empty_fragment(rows, file="rewritten.lance"), inline_row_ids=ids)
    return op.Rewrite((op.RewriteGroup(old, (new,)),)), None


def plain(operation: op.Operation) -> Work:
    return lambda read: (operation, None)


#: One of each kind of operation that is committed, and more of those whose rows decide.
WORKS: dict[str, Work] = {
    "append": plain(op.Append((empty_fragment(file="appended.lance"),))),
    "delete rows": deleting(1, 2),
    "delete others": deleting(7),
    "delete one of them": deleting(2, 3),
    "update": moving(5),
    "update a column": updating_a_column,
    "delete a fragment": plain(op.Delete((), (0,))),
    "overwrite": plain(op.Overwrite((empty_fragment(file="overwritten.lance"),), TWO_COLUMNS)),
    "rewrite": compacting,
    "merge": adding_a_column,
    "project": plain(op.Project(Schema(TWO_COLUMNS.fields[:1]), preserves_nullability=True)),
    "restore": plain(op.Restore(1)),
    "replace": plain(op.DataReplacement((op.DataReplacementGroup(0, new_column_file("replaced.lance", 1)),))),
    "index": plain(op.CreateIndex((INDEX,))),
    "reserve": plain(op.ReserveFragments(3)),
    "config": plain(op.UpdateConfig(op.MapUpdate((("k", "v"),)))),
    "metadata": plain(op.UpdateConfig(schema_metadata=op.MapUpdate((("k", "v"),)))),
    "bases": plain(op.UpdateBases((BasePath(0, "memory://elsewhere", name="e"),))),
}
PAIRS = list(itertools.combinations_with_replacement(WORKS, 2))


def state(store: Store) -> tuple[object, ...]:
    """What there is in the newest version, without what is drawn at random and when it was."""
    snapshot = open_snapshot(store)
    manifest = snapshot.manifest
    fragments, deleted = [], {}
    for item in manifest.fragments:
        file = item.deletion_file
        if file is not None:
            place, path = Places.of(snapshot).deletion_file(item.id, file)
            deleted[item.id] = read_deletions(place.read_all(path), file.kind).rows.tolist()
        fragments.append(replace(item, deletion_file=None if file is None else replace(file, id=0, read_version=0)))
    indexes = [(item.name, item.fields, sorted(covered(item) or ())) for item in snapshot.indexes()]
    said = replace(
        manifest, fragments=(), timestamp=None, transaction_file="", transaction_section=None, index_section=None
    )
    return fragments, deleted, indexes, said


@dataclass(frozen=True, slots=True)
class Serial:
    """What becomes of two works of which the second begins to commit when the first is done."""

    outcome: type[Outcome]
    alone: tuple[object, ...]
    both: tuple[object, ...]


@cache
def serial(first: str, second: str) -> Serial:
    store = MemoryStore(f"memory://{uuid4()}")
    read = make_table(store, 2, stable_row_ids=True, files=FILES)
    found = []
    for name in (first, second):
        operation, affected = WORKS[name](read)
        outcome = commit(read, Transaction(1, operation), affected_rows=affected)
        found.append(state(store))
    forget(store.uri)
    return Serial(type(outcome), found[0], found[1])


#: The files of a table's first fragments, the same in every run, since what there is afterwards is compared.
FILES = ("0.lance", "1.lance")


def check(names: Sequence[str], runs: Callable[[Callable[[Director], object]], Iterable[Director]]) -> int:
    """Every run leaves what the works that can be seen leave one after the other; how many runs there were."""
    store = MemoryStore(f"memory://{uuid4()}")

    def run(director: Director) -> None:
        forget(store.uri)
        read = make_table(store, 2, stable_row_ids=True, files=FILES)
        made = [(Transaction(1, operation), affected) for operation, affected in (WORKS[name](read) for name in names)]

        def writer(number: int) -> Callable[[Store], object]:
            transaction, affected = made[number]
            return lambda place: commit(replace(read, store=place), transaction, affected_rows=affected)

        results = director.carry_out(store, [writer(0), writer(1)])
        try:
            verify(store, names, [transaction for transaction, _ in made], results)
        except AssertionError as error:
            error.add_note(f"{names} by {director.taken}")
            raise

    return sum(1 for _ in runs(run))


def verify(store: Store, names: Sequence[str], made: Sequence[Transaction], results: Sequence[object]) -> None:
    """What can be seen is what was acknowledged, and besides at most what died unanswered: whole, and in one order."""
    latest = open_snapshot(store).version
    uuids = [item.uuid for item in made]
    order = []
    for version in range(2, latest + 1):
        transaction = open_snapshot(store, version=version).transaction()
        assert transaction is not None
        order.append(uuids.index(transaction.uuid))
    for number, result in enumerate(results):
        assert isinstance(result, Committed | Conflict | Killed), result
        if isinstance(result, Committed):
            assert order[result.version - 2] == number
        elif isinstance(result, Conflict):
            assert number not in order
    if not order:
        assert all(isinstance(result, Killed) for result in results)
        return
    expected = serial(names[order[0]], names[1 - order[0]])
    assert state(store) == (expected.both if len(order) == 2 else expected.alone)
    # Who came second was told what it is told when the first is long done.
    second = results[1 - order[0]]
    assert isinstance(second, Killed | expected.outcome)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_commits_at_once_are_commits_one_after_the_other_whoever_dies(first: str, second: str) -> None:
    check((first, second), lambda run: drawn_runs(run, f"{first}, {second}", 6, deaths=1))


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_commits_in_every_order_with_every_death_are_commits_one_after_the_other(first: str, second: str) -> None:
    assert check((first, second), lambda run: every_run(run, deaths=1)) > 250


def test_a_schedule_is_carried_out_again_as_it_was(request: pytest.FixtureRequest) -> None:
    outcomes = []

    def run(director: Director) -> None:
        store = MemoryStore(f"memory://{uuid4()}")
        read = make_table(store, 2, files=FILES)
        work = Transaction(1, op.Append((empty_fragment(),))), Transaction(1, op.Append((empty_fragment(),)))
        results = director.carry_out(
            store, [lambda place, one=one: commit(replace(read, store=place), one) for one in work]
        )
        outcomes.append([type(result) for result in results] + [open_snapshot(store).version])
        forget(store.uri)

    first = list(drawn_runs(run, 5, 10, deaths=1))
    for number, director in enumerate(first):
        run(again := Director(director.taken, deaths=1))
        assert (again.taken, again.offered, outcomes[-1]) == (director.taken, director.offered, outcomes[number])
