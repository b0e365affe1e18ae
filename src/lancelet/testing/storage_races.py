"""Conformance checks with company: many threads, forked children and spawned processes on one store."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier

from lancelet.errors import AlreadyExists
from lancelet.storage.store import Store
from lancelet.testing.storage import StoreFactory, expect, names

__all__ = ["ACROSS_PROCESSES", "IN_ONE_PROCESS"]

RACERS = 8
ROUNDS = 30
#: Seconds after which a racer that did not come is given up.
PATIENCE = 120.0


def _content(racer: int, number: int) -> bytes:
    return f"round {number} belongs to racer {racer}".encode() * 50


def _race(store: Store, racer: int, wait: Callable[[], object]) -> list[int]:
    """Try for the object of each round; the rounds won."""
    won: list[int] = []
    for number in range(ROUNDS):
        wait()
        try:
            store.put_if_absent(f"race/{number:03}", _content(racer, number))
        except AlreadyExists:
            continue
        won.append(number)
    return won


def _expect_one_winner(store: Store, won: dict[int, list[int]]) -> None:
    winners = sorted((number, racer) for racer, numbers in won.items() for number in numbers)
    expect([number for number, _ in winners], list(range(ROUNDS)), "rounds won, each by one racer")
    for number, racer in winners:
        expect(bytes(store.read_all(f"race/{number:03}")), _content(racer, number), f"object of round {number}")
    expect(len(names(store)), ROUNDS, "objects after the race")


def _threads_race(factory: StoreFactory) -> None:
    store = factory()
    barrier = threading.Barrier(RACERS)
    with ThreadPoolExecutor(RACERS) as pool:
        futures = {racer: pool.submit(_race, store, racer, lambda: barrier.wait(PATIENCE)) for racer in range(RACERS)}
    _expect_one_winner(store, {racer: future.result() for racer, future in futures.items()})


def _concurrent_reads(factory: StoreFactory) -> None:
    store = factory()
    contents = {f"f/{number}": os.urandom(10_000) for number in range(20)}
    for path, content in contents.items():
        store.put(path, content)

    def read(seed: int) -> None:
        for step in range(40):
            path = f"f/{(seed * 7 + step) % 20}"
            at = seed * 31 + step
            views = store.read(path, [(at, 100), (9000, 1000)])
            expected = [contents[path][at : at + 100], contents[path][9000:]]
            expect([bytes(view) for view in views], expected, f"ranges of {path}")

    with ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(read, range(RACERS)))


def _readers_see_whole_objects(factory: StoreFactory) -> None:
    store = factory()
    versions = [bytes([65 + number]) * (1000 + 100 * number) for number in range(20)]
    store.put("current", versions[0])
    done = threading.Event()

    def watch() -> Iterator[bytes]:
        while not done.is_set():
            yield bytes(store.read_all("current"))

    with ThreadPoolExecutor(2) as pool:
        seen = [pool.submit(lambda: set(watch())) for _ in range(2)]
        for number in range(60):
            store.put("current", versions[number % 20])
        done.set()
    strange = set().union(*(future.result() for future in seen)) - set(versions)
    expect(len(strange), 0, "mixtures of two versions that readers saw")


def _racing_process(pickled: bytes, racer: int, barrier: Barrier) -> list[int]:
    store: Store = pickle.loads(pickled)
    return _race(store, racer, lambda: barrier.wait(PATIENCE))


def _answer(channel: Connection, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    """The body of a child: send what the work returns or raises."""
    try:
        channel.send((True, work(*arguments)))
    except Exception as error:  # noqa: BLE001 - sent to the parent, which raises it
        channel.send((False, error))


def _in_children(method: str, work: Callable[..., object], jobs: Sequence[tuple[object, ...]]) -> list[object]:
    """What ``work`` returns for each job's arguments, each in a child process of its own."""
    context = multiprocessing.get_context(method)
    children: list[tuple[BaseProcess, Connection]] = []
    for arguments in jobs:
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_answer, args=(there, work, arguments), daemon=True)  # type: ignore[attr-defined]
        child.start()
        there.close()
        children.append((child, here))
    try:
        return [_received(here) for _, here in children]
    finally:
        for child, here in children:
            child.join(1)
            child.kill()
            child.join()
            here.close()


def _received(channel: Connection) -> object:
    if not channel.poll(PATIENCE):
        raise AssertionError(f"a child process did not answer within {PATIENCE} s")
    try:
        succeeded, answer = channel.recv()
    except EOFError:
        raise AssertionError("a child process died without an answer") from None
    if not succeeded:
        raise AssertionError(f"a child process failed: {answer!r}") from answer
    return answer


def _processes_race(method: str, factory: StoreFactory) -> None:
    store = factory()
    barrier = multiprocessing.get_context(method).Barrier(RACERS)
    pickled = pickle.dumps(store)
    won = _in_children(method, _racing_process, [(pickled, racer, barrier) for racer in range(RACERS)])
    _expect_one_winner(store, {racer: list(rounds) for racer, rounds in enumerate(won)})  # type: ignore[call-overload]


def _spawned_processes_race(factory: StoreFactory) -> None:
    _processes_race("spawn", factory)


def _forked_processes_race(factory: StoreFactory) -> None:
    if "fork" in multiprocessing.get_all_start_methods():
        _processes_race("fork", factory)


def _use_in_child(store: Store, number: int) -> tuple[bytes, list[str]]:
    """What a forked child does with the very store that its parent used: read, write, list."""
    before = bytes(store.read("a", [(0, 4)])[0])
    store.put_if_absent(f"child/{number}", b"from the child")
    with store.writer(f"child/{number}.big") as writer:
        writer.write(bytes(100_000))
    return before, names(store, "a")


def _stores_work_after_fork(factory: StoreFactory) -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        return
    store = factory()
    store.put("a", b"from the parent")
    store.read_all("a")
    answers = _in_children("fork", _use_in_child, [(store, number) for number in range(2)])
    expect(answers, [(b"from", ["a"])] * 2, "what the children saw")
    expect(names(store, "child/"), ["child/0", "child/0.big", "child/1", "child/1.big"], "what they wrote")
    expect(bytes(store.read_all("child/1")), b"from the child", "object that a child wrote")


IN_ONE_PROCESS: tuple[tuple[str, Callable[[StoreFactory], None]], ...] = (
    ("of racing threads one wins", _threads_race),
    ("many threads read at once", _concurrent_reads),
    ("readers see whole objects", _readers_see_whole_objects),
)
ACROSS_PROCESSES: tuple[tuple[str, Callable[[StoreFactory], None]], ...] = (
    ("of racing spawned processes one wins", _spawned_processes_race),
    ("of racing forked processes one wins", _forked_processes_race),
    ("a store used before fork works after it", _stores_work_after_fork),
)
