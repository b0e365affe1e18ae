"""Whatever fails, whenever a process dies: objects are whole or absent, and no write is reported wrongly."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lancelet.config import Retries
from lancelet.errors import AlreadyExists, InvalidInput, NotFound, Storage
from lancelet.events import Event, subscribe
from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore
from lancelet.storage.retrying import RetryingStore
from lancelet.storage.store import Store
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind, kill_at

IMPATIENT = Retries(attempts=4, first_delay=0.0)


@pytest.fixture(params=["memory", "local"])
def inner(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "table") if request.param == "local" else MemoryStore(f"memory://{uuid.uuid4()}")


def paths(store: Store) -> list[str]:
    return [entry.path for entry in store.list_from("")]


def write(store: Store, verb: str, path: str, content: bytes) -> None:
    if verb == "writer":
        with store.writer(path) as writer:
            writer.write(content)
    else:
        getattr(store, verb)(path, content)


CALLS: dict[str, Callable[[Store], object]] = {
    "size": lambda store: store.size("a"),
    "read": lambda store: store.read("a", [(0, 1)]),
    "read_all": lambda store: store.read_all("a"),
    "read_tail": lambda store: store.read_tail("a", 1),
    "put": lambda store: store.put("b", b"1"),
    "put_if_absent": lambda store: store.put_if_absent("c", b"1"),
    "writer": lambda store: store.writer("d"),
    "list": lambda store: list(store.list_from("")),
    "copy": lambda store: store.copy("a", "e"),
    "delete": lambda store: store.delete(["a"]),
}


@pytest.mark.parametrize("kind", [Kind.ERROR, Kind.LOST_ANSWER, Kind.TIMEOUT])
@pytest.mark.parametrize("verb", CALLS)
def test_every_call_survives_a_passing_fault(verb: str, kind: Kind, inner: Store) -> None:
    inner.put("a", b"content")
    faulty = FaultyStore(inner, [Fault(kind=kind, verb=verb, times=2)])
    events: list[Event] = []
    with subscribe(events.append):
        CALLS[verb](RetryingStore(faulty, IMPATIENT))
    assert [fault.verb for fault in faulty.injected] == [verb] * len(faulty.injected)
    retries = [event.facts for event in events if event.name == "storage.retry"]
    assert [facts["verb"] for facts in retries] == [verb] * len(faulty.injected)
    assert all(str(facts["uri"]).startswith(inner.uri) for facts in retries)


@pytest.mark.parametrize("verb", CALLS)
def test_a_fault_that_does_not_pass_is_raised_after_the_last_attempt(verb: str, inner: Store) -> None:
    inner.put("a", b"content")
    faulty = FaultyStore(inner, [Fault(kind=Kind.ERROR, verb=verb, times=None)])
    with pytest.raises(Storage, match="injected error") as caught:
        CALLS[verb](RetryingStore(faulty, IMPATIENT))
    assert (caught.value.uri or "").startswith(inner.uri)
    assert len(faulty.injected) == IMPATIENT.attempts


@pytest.mark.parametrize("verb", CALLS)
def test_an_error_that_will_not_pass_is_not_repeated(verb: str, inner: Store) -> None:
    inner.put("a", b"content")
    faulty = FaultyStore(inner, [Fault(kind=Kind.ERROR, verb=verb, times=None, retryable=False)])
    with pytest.raises(Storage):
        CALLS[verb](RetryingStore(faulty, IMPATIENT))
    assert len(faulty.injected) == 1


def test_the_deadline_ends_the_patience(inner: Store) -> None:
    faulty = FaultyStore(inner, [Fault(kind=Kind.ERROR, times=None)])
    with pytest.raises(Storage):
        RetryingStore(faulty, Retries(attempts=100, first_delay=1.0, deadline=0.2)).size("a")
    assert len(faulty.injected) == 1


@pytest.mark.parametrize("times", [1, 2, 3, None])
def test_a_lost_answer_to_put_if_absent_is_resolved_by_looking(times: int | None, inner: Store) -> None:
    faulty = FaultyStore(inner, [Fault(kind=Kind.LOST_ANSWER, verb="put_if_absent", times=1)])
    if times != 1:
        # The first attempt arrived; none of the others does.
        later = Fault(kind=Kind.ERROR, verb="put_if_absent", at=2, times=times)
        faulty = FaultyStore(inner, [Fault(kind=Kind.LOST_ANSWER, verb="put_if_absent"), later])
    RetryingStore(faulty, IMPATIENT).put_if_absent("a", b"ours")
    assert bytes(inner.read_all("a")) == b"ours"


@pytest.mark.parametrize("later", [None, Kind.ERROR], ids=["answered", "never answered"])
def test_an_object_of_somebody_else_is_not_taken_for_ours(later: Kind | None, inner: Store) -> None:
    inner.put("a", b"theirs")
    faults = [Fault(kind=Kind.ERROR, verb="put_if_absent", times=None if later else 1)]
    with pytest.raises(AlreadyExists) as caught:
        RetryingStore(FaultyStore(inner, faults), IMPATIENT).put_if_absent("a", b"ours!!")
    assert (caught.value.uri or "").endswith("/a")
    assert bytes(inner.read_all("a")) == b"theirs"


def test_equal_bytes_are_refused_when_no_answer_was_lost(inner: Store) -> None:
    inner.put("a", b"same")
    with pytest.raises(AlreadyExists):
        RetryingStore(inner, IMPATIENT).put_if_absent("a", b"same")


def test_a_write_that_never_arrived_says_so(inner: Store) -> None:
    faulty = FaultyStore(inner, [Fault(kind=Kind.ERROR, verb="put_if_absent", times=None)])
    with pytest.raises(Storage, match="injected error"):
        RetryingStore(faulty, IMPATIENT).put_if_absent("a", b"ours")
    with pytest.raises(NotFound):
        inner.read_all("a")


@pytest.mark.parametrize("verb", ["put", "put_if_absent", "write", "close"])
def test_torn_writes_are_invisible_and_the_old_object_stays(verb: str, inner: Store) -> None:
    if verb != "put_if_absent":
        inner.put("a", b"old")
    store = FaultyStore(inner, [Fault(kind=Kind.TORN, verb=verb)])
    with pytest.raises(Storage, match="broke off"):
        write(store, "writer" if verb in ("write", "close") else verb, "a", b"x" * 1_000_000)
    assert paths(inner) == ([] if verb == "put_if_absent" else ["a"])
    write(store, "put" if verb == "put_if_absent" else "writer", "a", b"new")
    assert bytes(inner.read_all("a")) == b"new"


def test_abandoned_local_uploads_can_be_swept(tmp_path: Path) -> None:
    inner = LocalStore(tmp_path)
    store = FaultyStore(inner, [Fault(kind=Kind.TORN, verb="close")])
    with pytest.raises(Storage):
        write(store, "writer", "a", b"x" * 1_000_000)
    assert [entry.size for entry in inner.sweep(older_than=0)] == [1_000_000]
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_written_in_place_can_be_imitated(inner: Store) -> None:
    store = FaultyStore(inner, [Fault(kind=Kind.TORN, verb="put")], torn_visible=True)
    with pytest.raises(Storage):
        store.put("a", b"0123456789")
    assert bytes(inner.read_all("a")) == b"01234"


def test_short_reads_come_without_an_error(inner: Store) -> None:
    inner.put("a", b"0123456789")
    store = FaultyStore(inner, [Fault(kind=Kind.SHORT_READ, times=None)])
    assert [bytes(view) for view in store.read("a", [(0, 4), (4, 6)])] == [b"0123", b"456"]
    assert bytes(store.read_all("a")) == b"01234"
    assert bytes(store.read_tail("a", 4)[0]) == b"67"


def test_an_interrupted_listing_goes_on_where_it_stopped(inner: Store) -> None:
    for number in range(50):
        inner.put(f"f/{number:02}", b"")
    faults = [Fault(kind=Kind.ERROR, verb="list", times=3, entries=13)]
    faulty = FaultyStore(inner, faults)
    found = [entry.path for entry in RetryingStore(faulty, IMPATIENT).list_from("f/", "f/04")]
    assert found == [f"f/{number:02}" for number in range(5, 50)]
    assert len(faulty.injected) == 3


@pytest.mark.parametrize("after", [False, True])
def test_nothing_works_after_death_until_the_store_is_revived(after: bool, inner: Store) -> None:
    store = FaultyStore(inner, [Fault(kind=Kind.KILL, verb="close", after=after)])
    with pytest.raises(Killed), store.writer("a") as writer:
        writer.write(b"1")
    with pytest.raises(Killed):
        store.put("b", b"2")
    store.revive()
    assert paths(inner) == (["a"] if after else [])


def test_the_same_seed_brings_the_same_faults(inner: Store) -> None:
    def run(seed: int) -> list[object]:
        store = FaultyStore(MemoryStore(f"memory://{uuid.uuid4()}"), rate=0.3, seed=seed)
        for number in range(100):
            try:
                store.put(f"{number}", b"1")
            except Storage:
                continue
        return list(store.injected)

    assert run(1) == run(1) != run(2)
    assert 10 < len(run(1)) < 60


def test_a_pickled_schedule_begins_anew(inner: Store) -> None:
    store = FaultyStore(inner, [Fault(kind=Kind.ERROR, verb="put")])
    for place in (store, pickle.loads(pickle.dumps(store))):
        with pytest.raises(Storage):
            place.put("a", b"1")
        place.put("a", b"1")


def test_a_fault_for_an_unknown_verb_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"unknown verb 'putt'.*put_if_absent"):
        Fault(kind=Kind.ERROR, verb="putt")


def test_racers_under_random_faults_agree_on_one_winner(inner: Store) -> None:
    store = RetryingStore(FaultyStore(inner, rate=0.4, seed=3), Retries(attempts=60, first_delay=0.0))

    def race(racer: int) -> list[int]:
        won: list[int] = []
        for number in range(20):
            try:
                store.put_if_absent(f"{number}", f"{number} by {racer}".encode())
            except AlreadyExists:
                continue
            won.append(number)
        return won

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(race, range(6)))
    assert sorted(number for numbers in won for number in numbers) == list(range(20))
    for racer, numbers in enumerate(won):
        for number in numbers:
            assert bytes(inner.read_all(f"{number}")) == f"{number} by {racer}".encode()


DYING = """
import sys
from lancelet.storage.local import LocalStore
from lancelet.testing.faults import kill_at
root, verb, moment, durable = sys.argv[1:]
store = LocalStore(root, durable=durable == "True")
with kill_at(moment, exit_code=86):
    if verb == "writer":
        with store.writer("v/1") as writer:
            writer.write(b"new" * 100_000)
    elif verb == "copy":
        store.copy("source", "v/1")
    else:
        getattr(store, verb)("v/1", b"new" * 100_000)
"""


@pytest.mark.parametrize("moment", ["storage.staged", "storage.published"])
@pytest.mark.parametrize("verb", ["put", "put_if_absent", "writer", "copy"])
def test_a_process_killed_at_any_step_leaves_whole_objects(verb: str, moment: str, tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("source", b"new" * 100_000)
    if verb != "put_if_absent":
        store.put("v/1", b"old")
    arguments = [sys.executable, "-c", DYING, str(tmp_path), verb, moment, str(verb == "put")]
    assert subprocess.run(arguments, check=False).returncode == 86
    before = {"source"} if verb == "put_if_absent" else {"source", "v/1"}
    published = moment == "storage.published"
    assert set(paths(store)) == (before | {"v/1"} if published else before)
    if published:
        assert bytes(store.read_all("v/1")) == b"new" * 100_000
        assert list(store.temporaries()) == []
        return
    if verb != "put_if_absent":
        assert bytes(store.read_all("v/1")) == b"old"
    assert len(store.sweep(older_than=0)) == 1
    write(store, "put" if verb == "copy" else verb, "v/1", b"the next writer is not hindered")
    assert bytes(store.read_all("v/1")) == b"the next writer is not hindered"


def test_a_kill_between_link_and_clean_up_leaves_the_object_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(os, "unlink", lambda path: os._exit(86))
        store.put_if_absent("a", b"content")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 86
    assert bytes(store.read_all("a")) == b"content"
    assert len(store.sweep(older_than=0)) == 1
    assert bytes(store.read_all("a")) == b"content"


def test_writers_killed_at_random_tear_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    generator = random.Random(11)
    children: list[int] = []
    for writer in range(6):
        last = generator.randrange(1, 30)
        child = os.fork()
        if child == 0:
            with kill_at("storage.staged", at=last, exit_code=0):
                for number in range(40):
                    try:
                        store.put_if_absent(f"{number:02}", bytes([writer]) * 20_000)
                    except AlreadyExists:
                        continue
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    for entry in store.list_from(""):
        content = bytes(store.read_all(entry.path))
        assert content == content[:1] * 20_000
    store.sweep(older_than=0)
    assert sorted(os.listdir(tmp_path)) == paths(store)


def test_a_kill_point_that_raises_unwinds_the_stack(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with kill_at("storage.staged", at=2):
        store.put("a", b"1")
        with pytest.raises(Killed):
            store.put("b", b"2")
    assert os.listdir(tmp_path) == ["a"]
