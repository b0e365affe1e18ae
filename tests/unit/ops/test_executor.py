"""The local executor: order, memory, the first error, stopping, and what it tells while it works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial

import pytest

from lancelet.config import Options
from lancelet.errors import Corrupt, OverBudget
from lancelet.events import Event, subscribe
from lancelet.ops.cancellation import Cancellation, Cancelled, check_cancelled
from lancelet.ops.executor import run_plan
from lancelet.ops.job import Cost, Plan
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store

STORE = MemoryStore("memory://executor")


@dataclass(frozen=True)
class Piece:
    id: str
    work: Callable[[], object] = lambda: None
    memory: int = 0

    @property
    def cost(self) -> Cost:
        return Cost(memory=self.memory)

    def run(self, store: Store) -> object:
        return self.work()


def plan(*pieces: Piece) -> Plan[object]:
    return Plan("test", 1, pieces)


class Load:
    """Counts who is at work at once, and what they hold."""

    def __init__(self) -> None:
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def hold(self, amount: int) -> None:
        with self.lock:
            self.now += amount
            self.most = max(self.most, self.now)
        time.sleep(0.005)
        with self.lock:
            self.now -= amount


@pytest.mark.parametrize("threads", [1, 4])
def test_results_come_in_the_order_of_the_plan(threads: int) -> None:
    pieces = [Piece(str(number), partial(pow, number, 2)) for number in range(20)]
    results = run_plan(plan(*pieces), STORE, options=Options(threads=threads))
    assert [(result.task, result.value) for result in results] == [(str(n), n * n) for n in range(20)]


def test_an_empty_plan_has_no_results() -> None:
    assert run_plan(plan(), STORE) == ()


def test_no_more_threads_work_at_once_than_the_options_allow() -> None:
    load = Load()
    run_plan(plan(*(Piece(str(n), lambda: load.hold(1)) for n in range(12))), STORE, options=Options(threads=3))
    assert load.most <= 3


@pytest.mark.parametrize("sizes", [[6, 6, 6], [1, 9, 2, 8, 3, 7], [10, 10, 1, 1]])
def test_tasks_under_way_hold_no_more_than_the_budget(sizes: list[int]) -> None:
    load = Load()
    pieces = [Piece(str(n), partial(load.hold, size), size) for n, size in enumerate(sizes)]
    run_plan(plan(*pieces), STORE, options=Options(threads=8, memory_budget=10))
    assert max(sizes) <= load.most <= 10


def test_a_task_that_does_not_fit_alone_is_over_budget_before_anything_runs() -> None:
    ran: list[str] = []
    pieces = plan(Piece("small", lambda: ran.append("small")), Piece("large", memory=4097))
    with pytest.raises(OverBudget, match=r"task 'large' of test holds 4.0 KiB, more than the memory budget of 4.0 KiB"):
        run_plan(pieces, STORE, options=Options(memory_budget=4096))
    assert ran == []


def test_the_first_error_names_its_task_and_stops_the_others() -> None:
    ran: list[int] = []
    stopped = threading.Event()
    started = threading.Event()

    def wait_until_told() -> None:
        started.set()
        try:
            while True:
                check_cancelled()
                time.sleep(0.001)
        except Cancelled:
            stopped.set()
            raise

    def fail() -> None:
        started.wait()
        raise Corrupt("bad bytes", uri="a.lance")

    later = [Piece(f"later-{n}", partial(ran.append, n)) for n in range(10)]
    with pytest.raises(Corrupt, match="bad bytes") as caught:
        run_plan(plan(Piece("long", wait_until_told), Piece("bad", fail), *later), STORE, options=Options(threads=2))
    assert caught.value.__notes__ == ["raised by task 'bad' of test"]
    assert stopped.is_set()
    assert ran == []


def test_a_token_that_was_set_before_lets_nothing_run() -> None:
    ran: list[int] = []
    token = Cancellation()
    token.cancel("no longer wanted")
    with pytest.raises(CancelledError, match="no longer wanted"):
        run_plan(plan(Piece("a", lambda: ran.append(1))), STORE, cancellation=token)
    assert ran == []


def test_a_token_set_on_the_way_stops_the_job() -> None:
    ran: list[int] = []
    token = Cancellation()

    def work() -> None:
        ran.append(1)
        token.cancel()

    with pytest.raises(Cancelled):
        run_plan(plan(*(Piece(str(n), work) for n in range(50))), STORE, options=Options(threads=1), cancellation=token)
    assert ran == [1]


def test_an_interrupt_leaves_no_task_running() -> None:
    running = Load()

    def interrupt(event: Event) -> None:
        if event.name == "job.run.progress":
            raise KeyboardInterrupt

    pieces = [Piece(str(n), lambda: running.hold(1)) for n in range(30)]
    with pytest.raises(KeyboardInterrupt), subscribe(interrupt):
        run_plan(plan(*pieces), STORE, options=Options(threads=4))
    assert running.now == 0


def test_outside_of_a_job_nobody_is_cancelled() -> None:
    check_cancelled()


def test_events_tell_of_start_each_task_and_the_end() -> None:
    seen: list[Event] = []
    with subscribe(seen.append):
        run_plan(plan(Piece("a"), Piece("b")), STORE, options=Options(threads=1))
    assert [event.name for event in seen] == ["job.run.start", "job.run.progress", "job.run.progress", "job.run.end"]
    assert [event.facts.get("task") for event in seen[1:3]] == ["a", "b"]
    assert seen[2].facts["done"] == seen[2].facts["total"] == 2


def test_a_bar_is_drawn_where_it_is_asked_for_and_tqdm_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm", reason="progress bars need the tqdm package")
    run_plan(plan(Piece("a"), Piece("b")), STORE, progress=True)
    assert "2/2" in capfd.readouterr().err
    run_plan(plan(Piece("a"), Piece("b")), STORE)
    assert capfd.readouterr().err == ""
