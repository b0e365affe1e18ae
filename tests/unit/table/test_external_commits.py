"""Commits through an external manifest store: whenever a writer dies, whoever comes next goes on where it stopped."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from lancelet.errors import AlreadyExists, Corrupt, NotFound, Storage
from lancelet.format import operations as op
from lancelet.format.names import VERSIONS, NamingScheme, manifest_path, staging_path
from lancelet.format.transaction import Transaction
from lancelet.storage.counting import CountingStore
from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table.branches import create_branch
from lancelet.table.commit import commit, create_table
from lancelet.table.external.contract import ManifestRecord, ManifestStore
from lancelet.table.external.sql import SqliteManifestStore
from lancelet.table.external.tables import with_manifest_store
from lancelet.table.handled_store import HandledStore
from lancelet.table.handlers import CommitHandler, ExternalHandler, Lost, Published
from lancelet.table.outcome import Committed
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind
from lancelet.testing.faulty_manifests import FaultyManifests
from lancelet.testing.tables import TWO_COLUMNS, carry_out, empty_fragment, make_table

BASE = "tables/t"


@pytest.fixture
def plain() -> MemoryStore:
    return MemoryStore(f"memory://{uuid.uuid4()}")


@pytest.fixture
def manifests(tmp_path: Path) -> SqliteManifestStore:
    return SqliteManifestStore(str(tmp_path / "commits.db"))


@pytest.fixture
def table(plain: MemoryStore, manifests: SqliteManifestStore) -> HandledStore:
    """A table of one version and three fragments."""
    store = with_manifest_store(plain, manifests, base=BASE)
    make_table(store)
    return store


def append(store: Store) -> int:
    """Commit one more fragment; the version that it made."""
    outcome = carry_out(store, op.Append((empty_fragment(),)))
    assert isinstance(outcome, Committed)
    return outcome.version


def names(store: Store) -> list[str]:
    return [entry.path for entry in store.list_from(f"{VERSIONS}/") if not entry.path.endswith(".json")]


def check_whole(plain: MemoryStore, manifests: ManifestStore, versions: int) -> None:
    """Every version has its final name in both stores, no staged manifest is left, and a copy of the folder opens."""
    assert names(plain) == sorted(manifest_path(version) for version in range(1, versions + 1))
    for version in range(1, versions + 1):
        path = manifest_path(version)
        assert manifests.get(BASE, version) == ManifestRecord(version, f"{BASE}/{path}", plain.size(path))
    copied = MemoryStore(f"memory://{uuid.uuid4()}")
    for entry in plain.list_from(""):
        copied.put(entry.path, plain.read_all(entry.path))
    assert open_snapshot(copied).version == versions


def test_a_table_in_an_external_store_is_a_table_without_it(
    table: HandledStore, plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    assert [append(table) for _ in range(3)] == [2, 3, 4]
    check_whole(plain, manifests, 4)
    assert open_snapshot(table, version=2).version == 2
    assert [item.version for item in list_versions(table)] == [4, 3, 2, 1]


def drop_litter(plain: MemoryStore, manifests: ManifestStore, versions: int) -> None:
    """Remove staged manifests that no record names: before the second step and after the fourth they are nobody's."""
    records = [manifests.get(BASE, version) for version in range(1, versions + 1)]
    used = {record.path for record in records if record is not None}
    plain.delete([path for path in names(plain) if "manifest-" in path and f"{BASE}/{path}" not in used])


@pytest.mark.parametrize("known_to_it", [True, False])
def test_an_external_store_adds_four_requests_to_a_commit_and_none_to_an_opening(
    known_to_it: bool, plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    counting = CountingStore(plain)
    table = with_manifest_store(counting, manifests, base=BASE)
    make_table(table if known_to_it else plain)
    counting.reset()
    snapshot = open_snapshot(table)
    assert counting.snapshot().requests == {"list": 1, "read_all": 1}
    counting.reset()
    commit(snapshot, Transaction(1, op.Append((empty_fragment(),))))
    # The transaction, the staged manifest and the hint are put.
    assert counting.snapshot().requests == {"list": 1, "put": 3, "copy": 1, "delete": 1}


#: Where a writer may die: its step, where it is carried out, and whether the version is committed by then.
STEPS = [
    ("put", "store", False),
    ("put_if_absent", "manifests", True),
    ("copy", "store", True),
    ("put_if_exists", "manifests", True),
    ("delete", "store", True),
]
DEATHS = [
    pytest.param(verb, where, after, committed and (after or verb != "put_if_absent"),
                 id=f"{'after' if after else 'before'} {verb}")
    for verb, where, committed in STEPS
    for after in (False, True)
]  # fmt: skip


def dying(plain: Store, manifests: ManifestStore, verb: str, where: str, after: bool) -> HandledStore:
    """The table of a writer that dies at a step of its first commit."""
    if where == "manifests":
        return with_manifest_store(plain, FaultyManifests(manifests, verb, Killed(verb), after), base=BASE)
    fault = Fault(kind=Kind.KILL, verb=verb, path=f"{VERSIONS}/*manifest*", after=after)
    return with_manifest_store(FaultyStore(plain, [fault]), manifests, base=BASE)


def by_reading(table: HandledStore) -> int:
    return open_snapshot(table).version


def by_reading_the_version(table: HandledStore) -> int:
    try:
        return open_snapshot(table, version=2).version
    except NotFound:
        return 1


def by_writing(table: HandledStore) -> int:
    return append(table) - 1


def by_a_writer_who_knew_the_version_before(table: HandledStore) -> int:
    outcome = carry_out(table, op.Append((empty_fragment(),)), version=1)
    assert isinstance(outcome, Committed)
    return outcome.version - 1


@pytest.mark.parametrize(
    "recover", [by_reading, by_reading_the_version, by_writing, by_a_writer_who_knew_the_version_before]
)
@pytest.mark.parametrize(("verb", "where", "after", "committed"), DEATHS)
def test_after_a_death_at_any_step_all_that_was_committed_is_there_and_nothing_else(
    verb: str,
    where: str,
    after: bool,
    committed: bool,
    recover: Callable[[HandledStore], int],
    table: HandledStore,
    plain: MemoryStore,
    manifests: SqliteManifestStore,
) -> None:
    with pytest.raises(Killed):
        append(dying(plain, manifests, verb, where, after))
    assert recover(table) == (2 if committed else 1)
    versions = open_snapshot(table).version
    assert len(open_snapshot(table).manifest.fragments) == 3 + versions - 1
    drop_litter(plain, manifests, versions)
    check_whole(plain, manifests, versions)


@pytest.mark.parametrize(("verb", "where", "after", "committed"), DEATHS)
def test_a_recovery_that_dies_too_is_recovered_from(
    verb: str, where: str, after: bool, committed: bool, table: HandledStore, plain: MemoryStore,
    manifests: SqliteManifestStore,
) -> None:  # fmt: skip
    with pytest.raises(Killed):
        append(dying(plain, manifests, "put_if_absent", "manifests", True))
    with suppress(Killed):
        by_reading(dying(plain, manifests, verb, where, after))
    assert append(table) == 3
    drop_litter(plain, manifests, 3)
    check_whole(plain, manifests, 3)


def test_a_table_whose_making_was_broken_off_is_there_for_the_next_who_makes_it(
    plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    with pytest.raises(Killed):
        create_table(dying(plain, manifests, "copy", "store", False), Transaction(0, op.Overwrite((), TWO_COLUMNS)))
    table = with_manifest_store(plain, manifests, base=BASE)
    assert not isinstance(create_table(table, Transaction(0, op.Overwrite((), TWO_COLUMNS))), Committed)
    check_whole(plain, manifests, 1)


@pytest.mark.parametrize("error", [AlreadyExists("repeated by the client"), Storage("lost", retryable=True)], ids=str)
@pytest.mark.parametrize("finished_meanwhile", [False, True])
def test_a_record_whose_answer_is_lost_is_known_as_our_own(
    error: Exception, finished_meanwhile: bool, table: HandledStore, plain: MemoryStore,
    manifests: SqliteManifestStore,
) -> None:  # fmt: skip
    class Lossy(FaultyManifests):
        def put_if_absent(self, base: str, record: ManifestRecord) -> None:
            try:
                FaultyManifests.put_if_absent(self, base, record)
            finally:
                if finished_meanwhile:
                    open_snapshot(table)

    lossy = with_manifest_store(plain, Lossy(manifests, "put_if_absent", error, after=True), base=BASE)
    outcome = carry_out(lossy, op.Append((empty_fragment(),)))
    assert isinstance(outcome, Committed)
    assert (outcome.version, outcome.attempts) == (2, 1)
    check_whole(plain, manifests, 2)


def test_a_commit_is_acknowledged_though_its_finishing_fails(
    table: HandledStore, plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    broken = FaultyStore(plain, [Fault(kind=Kind.ERROR, verb="copy", times=None)])
    assert append(with_manifest_store(broken, manifests, base=BASE)) == 2
    assert not any(path == manifest_path(2) for path in names(plain))
    assert append(table) == 3
    check_whole(plain, manifests, 3)


def test_a_reader_that_cannot_finish_a_commit_refuses_to_load(
    table: HandledStore, plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    with pytest.raises(Killed):
        append(dying(plain, manifests, "copy", "store", False))
    broken = FaultyStore(plain, [Fault(kind=Kind.ERROR, verb="copy", times=None)])
    with pytest.raises(Storage):
        open_snapshot(with_manifest_store(broken, manifests, base=BASE))


def test_eight_readers_finish_a_commit_at_once(
    table: HandledStore, plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    for version in range(2, 7):
        with pytest.raises(Killed):
            append(dying(plain, manifests, "copy", "store", False))
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: open_snapshot(table).version, range(8))) == {version}
    check_whole(plain, manifests, 6)


def test_of_eight_racing_writers_every_acknowledged_commit_stays(
    table: HandledStore, plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda _: append(table), range(24)))
    assert sorted(versions) == list(range(2, 26))
    assert len(open_snapshot(table).manifest.fragments) == 27
    check_whole(plain, manifests, 25)


#: One process, which forks those that are killed: importing everything once is enough. They end when it does.
_WRITERS = """
import os, random, sys, time
from lancelet.format import operations as op
from lancelet.storage.local import LocalStore
from lancelet.table.external.sql import SqliteManifestStore
from lancelet.table.external.tables import with_manifest_store
from lancelet.testing.tables import carry_out, empty_fragment
folder, starter = sys.argv[1], os.getpid()
for number in range(4):
    writer = os.fork()
    if writer == 0:
        plain = LocalStore(folder + "/t", durable=False)
        store = with_manifest_store(plain, SqliteManifestStore(folder + "/commits.db"), base="t")
        with open(f"{folder}/said-{number}", "a", buffering=1) as said:
            while os.getppid() == starter:
                outcome = carry_out(store, op.Append((empty_fragment(),)))
                if hasattr(outcome, "version") and hasattr(outcome, "transaction"):
                    said.write(f"{outcome.version} {outcome.transaction.uuid}\\n")
                # Without a pause one of them runs away with all versions, and the others wait ever longer.
                time.sleep(random.uniform(0, 0.2))
        os._exit(0)
    print(writer, flush=True)
sys.stdin.read()
"""


def test_of_writers_killed_at_random_every_acknowledged_commit_stays(tmp_path: Path) -> None:
    plain = LocalStore(str(tmp_path / "t"), durable=False)
    store = with_manifest_store(plain, SqliteManifestStore(str(tmp_path / "commits.db")), base="t")
    make_table(store)
    diaries = [tmp_path / f"said-{number}" for number in range(4)]
    for said in diaries:
        said.touch()
    command = [sys.executable, "-c", _WRITERS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        for said in diaries:
            writer = int(starter.stdout.readline())
            deadline = time.monotonic() + 30
            while said.read_text().count("\n") < 3 and time.monotonic() < deadline:
                time.sleep(random.uniform(0, 0.02))
            os.kill(writer, signal.SIGKILL)
    lines = [line.split() for said in diaries for line in said.read_text().splitlines()]
    made = {str(item.version): item.file.transaction() for item in list_versions(store)}
    assert len(lines) >= 12
    for version, transaction in lines:
        found = made[version]
        assert found is not None
        assert found.uuid == transaction
    assert append(store) == max(map(int, made)) + 1


def test_branches_have_records_of_their_own(table: HandledStore, manifests: SqliteManifestStore) -> None:
    branch = create_branch(open_snapshot(table), "a/b")
    start = branch.version
    assert append(branch.store) == start + 1
    record = manifests.latest(f"{BASE}/tree/a/b")
    assert record is not None
    assert record.path == f"{BASE}/tree/a/b/{manifest_path(start + 1)}"
    assert open_snapshot(table).version == 1


def test_a_table_from_before_the_external_store_goes_on_in_it(
    plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    make_table(plain)
    table = with_manifest_store(plain, manifests, base=BASE)
    assert open_snapshot(table, version=1).version == 1
    assert append(table) == 2
    assert manifests.get(BASE, 1) is None
    assert manifests.get(BASE, 2) is not None


def test_detached_versions_are_put_as_they_are(table: HandledStore, manifests: SqliteManifestStore) -> None:
    snapshot = open_snapshot(table)
    done = commit(snapshot, Transaction(1, op.Append((empty_fragment(),))), detached=True)
    assert isinstance(done, Committed)
    assert open_snapshot(table, version=done.version).version == done.version
    assert open_snapshot(table).version == 1
    with pytest.raises(NotFound):
        open_snapshot(table, version=done.version ^ 1)


def test_a_record_of_what_is_not_there_is_refused(table: HandledStore, manifests: SqliteManifestStore) -> None:
    gone = f"{BASE}/{staging_path(manifest_path(2))}"
    manifests.put_if_absent(BASE, ManifestRecord(2, gone))
    with pytest.raises(Corrupt, match="is not there"):
        open_snapshot(table)


@pytest.mark.parametrize(
    "path", ["elsewhere/_versions/2.manifest", f"{BASE}/_versions/x", f"{BASE}/{manifest_path(3)}", f"{BASE}/"]
)
def test_a_record_that_names_no_manifest_of_the_version_is_refused(
    path: str, table: HandledStore, manifests: SqliteManifestStore
) -> None:
    manifests.put_if_absent(BASE, ManifestRecord(2, path))
    with pytest.raises(Corrupt, match="the external store has"):
        open_snapshot(table)


def test_a_version_that_was_cleaned_up_is_not_found(table: HandledStore, plain: MemoryStore) -> None:
    append(table)
    plain.delete([manifest_path(1)])
    with pytest.raises(NotFound):
        open_snapshot(table, version=1)
    assert append(table) == 3


@pytest.mark.parametrize("scheme", list(NamingScheme))
def test_the_handler_publishes_once_by_either_scheme(
    scheme: NamingScheme, plain: MemoryStore, manifests: SqliteManifestStore
) -> None:
    handler: CommitHandler = ExternalHandler(plain, manifests, BASE)
    assert handler.latest() is None
    assert isinstance(handler.publish(1, b"ours", scheme=scheme), Published)
    assert handler.publish(1, b"theirs", scheme=scheme) == Lost(1)
    found = handler.latest()
    assert found == handler.resolve(1)
    assert found is not None
    assert (found.scheme, bytes(plain.read_all(found.path)), names(plain)) == (scheme, b"ours", [found.path])


def test_the_store_of_a_table_pickles(table: HandledStore) -> None:
    copy: HandledStore = pickle.loads(pickle.dumps(table))
    assert append(copy) == 2
    assert open_snapshot(table).version == 2
