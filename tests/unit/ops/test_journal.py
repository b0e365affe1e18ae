"""The attempt journal: what is written down when, who is dead, and that nothing in use is ever removed."""

from __future__ import annotations

import itertools
import pickle
import time
from functools import partial

import pytest

from lancelet.errors import Conflict, Corrupt, InvalidInput, Storage
from lancelet.format import operations as op
from lancelet.ops.dead_attempts import COMMIT_GRACE, dead_attempts, remove_dead
from lancelet.ops.journal import ATTEMPTS, COMMITTING, LEASE, REMOVING, JobJournal, read_fate
from lancelet.storage.counting import CountingStore
from lancelet.storage.memory import MemoryStore
from lancelet.table.outcome import committed
from lancelet.testing.faults import Fault, FaultyStore, Kind
from lancelet.testing.tables import carry_out, empty_fragment, make_table

NUMBERS = itertools.count()
ENTRY = f"{ATTEMPTS}/{'0' * 32}"


@pytest.fixture
def store() -> MemoryStore:
    """A table of one fragment, whose file is there."""
    made = MemoryStore(f"memory://journal-{next(NUMBERS)}")
    snapshot = make_table(made, 1)
    made.put(f"data/{snapshot.manifest.fragments[0].files[0].path}", b"rows")
    return made


def names(store: MemoryStore, prefix: str) -> list[str]:
    return [entry.path for entry in store.list_from(prefix)]


def dying(store: MemoryStore, *files: str) -> JobJournal:
    """A job that wrote files and was never heard of again."""
    journal = JobJournal(store, "append")
    journal.open()
    journal.attempt().tell(files)
    for path in files:
        if not path.endswith("/"):
            store.put(path, b"rows")
    journal._stop()
    return journal


def end_by(error: BaseException, store: MemoryStore, *, commits: bool) -> None:
    """A job that wrote files and ends by an error."""
    with JobJournal(store, "append") as journal:
        journal.attempt().tell(["data/x.lance", "data/x/"])
        store.put("data/x.lance", b"rows")
        store.put("data/x/1.blob", b"blob")
        if commits:
            journal.committing()
        raise error


def later(seconds: float) -> float:
    return time.time() + seconds


def test_a_job_that_ends_well_leaves_its_files_and_no_entry(store: MemoryStore) -> None:
    with JobJournal(store, "append") as journal:
        attempt = pickle.loads(pickle.dumps(journal.attempt()))
        attempt.tell(["data/x.lance"])
        attempt.tell(["data/y.lance"])
        store.put("data/x.lance", b"rows")
        assert len(names(store, ATTEMPTS)) == 2
        journal.committing()
    assert names(store, ATTEMPTS) == []
    assert "data/x.lance" in names(store, "data/")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_job_that_fails_before_its_commit_leaves_nothing(store: MemoryStore, error: type[BaseException]) -> None:
    before = names(store, "")
    with pytest.raises(error):
        end_by(error(), store, commits=False)
    assert names(store, "") == before


def test_a_job_whose_commit_ended_unknown_is_left_to_be_looked_at(store: MemoryStore) -> None:
    with pytest.raises(Storage):
        end_by(Storage("the answer was lost"), store, commits=True)
    assert dead_attempts(store, later(COMMIT_GRACE - 10)) == ()
    assert remove_dead(store, dead_attempts(store, later(COMMIT_GRACE + 10))) == ("data/x.lance", "data/x/1.blob")
    assert names(store, ATTEMPTS) == []


def test_what_attempts_wrote_that_were_not_needed_goes_with_the_commit(store: MemoryStore) -> None:
    with JobJournal(store, "append") as journal:
        used, slow = journal.attempt(), journal.attempt()
        used.tell(["data/x.lance"])
        slow.tell(["data/y.lance"])
        for path in ("data/x.lance", "data/y.lance"):
            store.put(path, b"rows")
        journal.committing()
        journal.close(used=[used.id])
    assert "data/x.lance" in names(store, "data/")
    assert "data/y.lance" not in names(store, "data/")
    with pytest.raises(Conflict, match="is over or was given up for dead"):
        slow.tell(["data/z.lance"])
    store.put("data/y.lance", b"late")
    assert names(store, ATTEMPTS) == [slow.path]
    assert remove_dead(store, dead_attempts(store, later(LEASE + 10))) == ("data/y.lance", "data/z.lance")
    assert "data/x.lance" in names(store, "data/")


def test_a_live_job_is_not_dead_and_a_silent_one_is(store: MemoryStore) -> None:
    journal = dying(store, "data/x.lance")
    assert dead_attempts(store, later(LEASE - 10)) == ()
    (found,) = dead_attempts(store, later(LEASE + 10))
    assert (found.job, found.files, found.committing) == (journal.job, ("data/x.lance",), False)


def test_heartbeats_keep_a_job_alive(store: MemoryStore) -> None:
    with JobJournal(store, "append", lease=0.15) as journal:
        time.sleep(0.5)
        assert dead_attempts(store) == ()
        journal._stop()
        time.sleep(0.2)
        assert [item.job for item in dead_attempts(store)] == [journal.job]


def test_files_of_the_dead_go_at_once_but_for_those_a_version_names(store: MemoryStore) -> None:
    fragment = empty_fragment()
    mine = f"data/{fragment.files[0].path}"
    dying(store, mine, "data/x.lance", "data/x/", "_indices/11111111-2222-3333-4444-555555555555/")
    store.put("data/x/1.blob", b"blob")
    committed(carry_out(store, op.Append((fragment,))))
    removed = remove_dead(store, dead_attempts(store, later(LEASE + 10)))
    assert set(removed) == {"data/x.lance", "data/x/1.blob"}
    assert mine in names(store, "data/")


def test_files_that_only_an_old_version_names_stay(store: MemoryStore) -> None:
    fragment = empty_fragment()
    mine = f"data/{fragment.files[0].path}"
    dying(store, mine)
    outcome = committed(carry_out(store, op.Append((fragment,))))
    committed(carry_out(store, op.Overwrite((empty_fragment(),), outcome.manifest.schema)))
    assert remove_dead(store, dead_attempts(store, later(LEASE + 10))) == ()
    assert mine in names(store, "data/")


def test_a_job_given_up_for_dead_that_wakes_up_can_neither_write_nor_commit(store: MemoryStore) -> None:
    journal = dying(store, "data/x.lance")
    attempt = journal.attempt()
    remove_dead(store, dead_attempts(store, later(LEASE + 10)))
    for wake_up in (partial(attempt.tell, ["data/y.lance"]), journal.beat, journal.committing):
        with pytest.raises(Conflict) as caught:
            wake_up()
        assert caught.value.retryable
    store.put("data/x.lance", b"written late")
    assert dead_attempts(store, later(86_400)) == ()
    remove_dead(store, dead_attempts(store, later(8 * 86_400)))
    assert names(store, ATTEMPTS) == []
    assert "data/x.lance" not in names(store, "data/")


def test_a_job_that_began_to_commit_after_it_was_found_dead_keeps_its_files(store: MemoryStore) -> None:
    journal = dying(store, "data/x.lance")
    found = dead_attempts(store, later(LEASE + 10))
    journal.committing()
    assert remove_dead(store, found) == ()
    assert read_fate(store, journal.job) == COMMITTING
    assert "data/x.lance" in names(store, "data/")


@pytest.mark.parametrize("kind", [Kind.LOST_ANSWER, Kind.ERROR])
def test_a_lost_answer_about_the_fate_is_settled_by_looking(store: MemoryStore, kind: Kind) -> None:
    faulty = FaultyStore(store, [Fault(kind=kind, verb="put_if_absent")])
    journal = JobJournal(faulty, "append")
    journal.open()
    if kind is Kind.LOST_ANSWER:
        journal.committing()
    else:
        with pytest.raises(Storage):
            journal.committing()
    journal.close()
    assert read_fate(store, journal.job) is None


@pytest.mark.parametrize(
    "path",
    ["_versions/1.manifest", "_refs/tags/a.json", "data/", "data", "../x", "data/../_versions/1.manifest", "/data/x"],
)
def test_what_no_attempt_writes_can_be_neither_told_nor_removed(store: MemoryStore, path: str) -> None:
    with JobJournal(store, "append") as journal, pytest.raises(InvalidInput):
        journal.attempt().tell([path])
    before = names(store, "_versions")
    store.put(f"{ENTRY}-{'1' * 32}.json", f'{{"files": ["{path}"]}}'.encode())
    with pytest.raises(Corrupt, match="cannot be read"):
        dead_attempts(store, later(LEASE + 10))
    assert names(store, "_versions") == before


@pytest.mark.parametrize("content", [b"", b"[]", b'{"files": 3}', b'{"files": [3]}', b'{"files": "abc"}', b"\xff{"])
def test_a_damaged_entry_is_corrupt(store: MemoryStore, content: bytes) -> None:
    store.put(f"{ENTRY}-{'1' * 32}.json", content)
    with pytest.raises(Corrupt, match="cannot be read"):
        dead_attempts(store, later(LEASE + 10))


def test_a_damaged_fate_is_corrupt_and_a_damaged_sign_of_life_is_one_all_the_same(store: MemoryStore) -> None:
    store.put(f"{ENTRY}.json", b"?")
    assert dead_attempts(store, later(LEASE - 10)) == ()
    assert len(dead_attempts(store, later(LEASE + 10))) == 1
    store.put(f"{ENTRY}.fate", b"?")
    with pytest.raises(Corrupt, match=r"the fate of a job is b'\?'"):
        dead_attempts(store, later(LEASE + 10))


def test_looking_for_the_dead_costs_one_listing_where_there_are_none(store: MemoryStore) -> None:
    counting = CountingStore(store)
    assert remove_dead(counting, dead_attempts(counting)) == ()
    assert sum(counting.snapshot().requests.values()) == 1


def test_other_names_in_the_folder_are_passed_over(store: MemoryStore) -> None:
    for name in ("readme.txt", "short.json", f"{'0' * 32}/deeper.json"):
        store.put(f"{ATTEMPTS}/{name}", b"?")
    assert dead_attempts(store, later(10**9)) == ()


def test_a_lease_of_nothing_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="expected more than 0"):
        JobJournal(store, "append", lease=0)


def test_two_removers_do_each_other_no_harm(store: MemoryStore) -> None:
    dying(store, "data/x.lance")
    found = dead_attempts(store, later(LEASE + 10))
    assert remove_dead(store, found) == remove_dead(store, found) == ("data/x.lance",)
    assert REMOVING in {bytes(store.read_all(path)) for path in names(store, ATTEMPTS)}
