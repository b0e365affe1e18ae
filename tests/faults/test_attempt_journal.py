"""Jobs killed at every step leave a commit or files that are removed; other cleanups leave the journal alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelet.config import Options
from lancelet.errors import Conflict
from lancelet.format import operations as op
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.names import DATA, TRANSACTIONS, data_file_name, transaction_name
from lancelet.format.transaction import Transaction
from lancelet.ops.dead_attempts import dead_attempts, remove_dead
from lancelet.ops.executor import run_plan
from lancelet.ops.job import Cost, Plan
from lancelet.ops.journal import ATTEMPTS, Attempt, JobJournal
from lancelet.storage import open_store
from lancelet.storage.delegating import Delegating
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Data, Entry, Store
from lancelet.table.commit import commit
from lancelet.table.outcome import committed
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind
from lancelet.testing.servers import ServedStore
from lancelet.testing.tables import make_table

LONG_AFTER = 7200.0
ONE_THREAD = Options(threads=1)


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Writes the file of one new fragment."""

    id: str
    attempt: Attempt

    @property
    def cost(self) -> Cost:
        return Cost(bytes_written=4, requests=3)

    def run(self, store: Store) -> tuple[str, Fragment]:
        name = data_file_name()
        self.attempt.tell([f"{DATA}/{name}"])
        store.put(f"{DATA}/{name}", b"rows")
        return self.attempt.id, Fragment(0, (DataFile(name, (0, 1), (0, 1), 2, 2, 4),), physical_rows=1)


def append(store: Store) -> None:
    """A job of two tasks, one of them run twice as by speculation, and its commit."""
    snapshot = open_snapshot(store)
    with JobJournal(store, "append", lease=1000.0) as journal:
        tasks = tuple(WriteFile(name, journal.attempt()) for name in ("a", "b"))
        WriteFile("b", journal.attempt()).run(store)
        results = run_plan(Plan("append", snapshot.version, tasks), store, options=ONE_THREAD)
        transaction = Transaction(snapshot.version, op.Append(tuple(result.value[1] for result in results)))
        last = journal.attempt()
        last.tell([f"{TRANSACTIONS}/{transaction_name(snapshot.version, transaction.uuid)}"])
        journal.committing()
        committed(commit(snapshot, transaction))
        journal.close(used=[last.id, *(result.value[0] for result in results)])


def table(name: str) -> MemoryStore:
    store = MemoryStore(f"memory://attempt-journal-{name}")
    snapshot = make_table(store, 1)
    store.put(f"{DATA}/{snapshot.manifest.fragments[0].files[0].path}", b"rows")
    return store


def files_named(store: Store) -> set[str]:
    return {f"{DATA}/{file.path}" for item in open_snapshot(store).manifest.fragments for file in item.files}


def paths(store: Store, prefix: str) -> set[str]:
    return {entry.path for entry in store.list_from(prefix)}


def check_whole(store: Store) -> None:
    """The table is as before or has the whole append; once the dead are removed, each file is one that it names."""
    assert len(open_snapshot(store).manifest.fragments) in (1, 3)
    assert files_named(store) <= paths(store, f"{DATA}/")
    remove_dead(store, dead_attempts(store, time.time() + LONG_AFTER))
    assert files_named(store) == paths(store, f"{DATA}/")
    assert len(paths(store, TRANSACTIONS)) == open_snapshot(store).version
    remove_dead(store, dead_attempts(store, time.time() + 8 * 86_400))
    assert paths(store, ATTEMPTS) == set()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_job_killed_at_any_request_leaves_a_commit_or_files_that_are_removed(after: bool) -> None:
    ends = set()
    for step in range(1, 100):
        store = table(f"{after}-{step}")
        faulty = FaultyStore(store, [Fault(kind=Kind.KILL, at=step, after=after)])
        try:
            append(faulty)
        except Killed:
            ends.add(open_snapshot(store).version)
            check_whole(store)
            continue
        check_whole(store)
        break
    assert step > 20
    assert ends == {1, 2}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_remover_killed_at_any_request_is_finished_by_the_next(after: bool) -> None:
    for step in range(1, 60):
        store = table(f"remover-{after}-{step}")
        dying = FaultyStore(store, [Fault(kind=Kind.KILL, verb="put_if_absent", path="_versions/*")])
        with pytest.raises(Killed):
            append(dying)
        faulty = FaultyStore(store, [Fault(kind=Kind.KILL, at=step, after=after)])
        try:
            remove_dead(faulty, dead_attempts(faulty, time.time() + LONG_AFTER))
        except Killed:
            check_whole(store)
            continue
        break
    assert step > 5


@pytest.mark.parametrize("kind", [Kind.ERROR, Kind.LOST_ANSWER])
def test_a_job_that_fails_at_any_request_leaves_a_commit_or_files_that_are_removed(kind: Kind) -> None:
    for step in range(1, 100):
        store = table(f"{kind}-{step}")
        faulty = FaultyStore(store, [Fault(kind=kind, at=step)])
        with suppress(OSError):
            append(faulty)
        if not faulty.injected:
            break
        check_whole(store)
    assert step > 20


class Overtaken(Delegating):
    """A store whose user sleeps at one request for so long that somebody takes it for dead and removes its files."""

    def __init__(self, inner: Store, step: int) -> None:
        super().__init__(inner)
        self.left = step

    def wait(self) -> None:
        self.left -= 1
        if self.left == 0:
            remove_dead(self.inner, dead_attempts(self.inner, time.time() + 2000))

    def put(self, path: str, data: Data) -> None:
        self.wait()
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: Data) -> None:
        self.wait()
        self.inner.put_if_absent(path, data)

    def read_all(self, path: str) -> memoryview:
        self.wait()
        return self.inner.read_all(path)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        self.wait()
        return self.inner.list_from(prefix, start_after)

    def delete(self, paths: Iterable[str]) -> None:
        self.wait()
        self.inner.delete(paths)


def test_a_job_taken_for_dead_at_any_request_commits_whole_or_not_at_all() -> None:
    outcomes = []
    for step in range(1, 100):
        store = table(f"overtaken-{step}")
        slow = Overtaken(store, step)
        try:
            append(slow)
            outcomes.append("committed")
        except Conflict as error:
            outcomes.append("given up" if error.retryable else "refused")
        assert len(open_snapshot(store).manifest.fragments) == (3 if outcomes[-1] == "committed" else 1)
        check_whole(store)
        if slow.left > 0:
            break
    assert len(outcomes) > 20
    assert set(outcomes) == {"committed", "given up"}


def test_the_journal_works_on_an_object_store(s3_server: ServedStore) -> None:
    store = open_store(s3_server.place(), storage_options=s3_server.storage_options)
    make_table(store, 1)
    journal = JobJournal(store, "append")
    journal.open()
    journal.attempt().tell(["data/x.lance", "data/x/"])
    for path in ("data/x.lance", "data/x/1.blob"):
        store.put(path, b"rows")
    journal._stop()
    assert dead_attempts(store) == ()
    assert remove_dead(store, dead_attempts(store, time.time() + 100)) == ("data/x.lance", "data/x/1.blob")
    with pytest.raises(Conflict, match="given up for dead"):
        journal.committing()


SCRIPT = """
import os, sys
from lancelet.ops.journal import JobJournal
from lancelet.storage import open_store
store = open_store(sys.argv[1])
journal = JobJournal(store, "append", lease=0.5)
journal.open()
journal.attempt().tell(["data/x.lance"])
store.put("data/x.lance", b"rows")
os._exit(9)
"""


def test_a_process_that_died_is_seen_dead_by_another_and_its_files_removed(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    make_table(store, 1)
    process = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=False)
    assert process.returncode == 9
    assert "data/x.lance" in paths(store, f"{DATA}/")
    assert remove_dead(store, dead_attempts(store, time.time() + 1)) == ("data/x.lance",)


def test_cleanup_by_pylance_leaves_the_journal_alone(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1, 2]}), tmp_path)
    dataset = lance.write_dataset(pa.table({"x": [3]}), tmp_path, mode="overwrite")
    store = open_store(tmp_path)
    journal = JobJournal(store, "append")
    journal.open()
    journal.attempt().tell(["data/x.lance"])
    journal.committing()
    before = paths(store, ATTEMPTS)
    long_ago = time.time() - 30 * 86_400
    for path in before:
        os.utime(tmp_path / path, (long_ago, long_ago))
    removed = dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert removed.old_versions == 1
    assert len(before) == 3
    assert paths(store, ATTEMPTS) == before
    assert lance.dataset(tmp_path).to_table().to_pydict() == {"x": [3]}
    journal.close()


def test_a_table_with_a_journal_opens_equal_in_pylance_after_a_removal(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1, 2]}), tmp_path)
    store = open_store(tmp_path)
    journal = JobJournal(store, "append")
    journal.open()
    journal.attempt().tell([*files_named(store), "data/x.lance"])
    store.put("data/x.lance", b"rows")
    journal._stop()
    assert remove_dead(store, dead_attempts(store, time.time() + LONG_AFTER)) == ("data/x.lance",)
    assert lance.dataset(tmp_path).to_table().to_pydict() == {"x": [1, 2]}
