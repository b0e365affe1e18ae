"""Schedules: writers on one store, their requests in every order, each of them killed at every request.

Stateless model checking: a run follows a script of choices and then the first choice there is; what else could have
been chosen is tried by later runs, until nothing is left. The writers are threads, but only one of them moves at a
time, so the same script makes the same run again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from lancelet.storage.delegating import Delegating
from lancelet.storage.store import Data, Entry, Store
from lancelet.testing.faults import Killed

__all__ = ["Choice", "Director", "Stepping", "drawn_runs", "every_run"]

#: Seconds after which a writer that neither asks for a step nor ends counts as stuck.
_STUCK = 60.0


@dataclass(frozen=True, slots=True)
class Choice:
    """What happens next: a writer's request is carried out, or the writer dies before it is."""

    writer: int
    dies: bool = False


class Stepping(Delegating):
    """A store whose requests that change or list anything wait until the director says whose turn it is.

    What reads find never changes while they are under way, so it makes no difference when they are made.
    """

    def __init__(self, inner: Store, director: Director, writer: int) -> None:
        super().__init__(inner)
        self._director, self._writer = director, writer

    def put(self, path: str, data: Data) -> None:
        """As the inner store, in turn."""
        self._director.step(self._writer)
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: Data) -> None:
        """As the inner store, in turn."""
        self._director.step(self._writer)
        self.inner.put_if_absent(path, data)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """As the inner store, in turn."""
        self._director.step(self._writer)
        return iter(list(self.inner.list_from(prefix, start_after)))

    def copy(self, source: str, target: str) -> None:
        """As the inner store, in turn."""
        self._director.step(self._writer)
        self.inner.copy(source, target)

    def delete(self, paths: Iterable[str]) -> None:
        """As the inner store, in turn."""
        self._director.step(self._writer)
        self.inner.delete(paths)


class Director:
    """Lets writers move one at a time, as a script says, and notes what else could have been said.

    ``deaths`` is how many writers may die in one run; ``draw`` chooses beyond the script, in place of the first choice.

    >>> from lancelet.storage.memory import MemoryStore
    >>> store = MemoryStore("memory://directed")
    >>> director = Director([Choice(1), Choice(0)])
    >>> results = director.carry_out(store, [lambda place: place.put("a", b"0"), lambda place: place.put("a", b"1")])
    >>> bytes(store.read_all("a")), director.taken
    (b'0', [Choice(writer=1, dies=False), Choice(writer=0, dies=False)])
    """

    def __init__(self, script: Sequence[Choice] = (), *, deaths: int = 0, draw: Random | None = None) -> None:
        self.taken: list[Choice] = []
        self.offered: list[tuple[Choice, ...]] = []
        self._script, self._deaths, self._draw = script, deaths, draw
        self._changed = threading.Condition()
        self._waiting: set[int] = set()
        self._ended: set[int] = set()
        self._dead: set[int] = set()
        self._turn: int | None = None

    def carry_out(self, store: Store, writers: Sequence[Callable[[Store], object]]) -> list[object]:
        """Run the writers, each on its view of the store; what each returned or raised, Killed among it."""
        results: list[object] = [None] * len(writers)

        def run(number: int) -> None:
            try:
                results[number] = writers[number](Stepping(store, self, number))
            except (Exception, Killed) as error:  # noqa: BLE001  what writers raise is part of the result
                results[number] = error
            finally:
                with self._changed:
                    self._ended.add(number)
                    self._turn = None
                    self._changed.notify_all()

        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(writers))]
        for number, thread in enumerate(threads):
            # One after the other, until each waits for its first step: nothing happens at the same time.
            thread.start()
            self._settle(number)
        while self._waiting:
            self._grant(self._choose())
        for thread in threads:
            thread.join()
        return results

    def step(self, writer: int) -> None:
        """Called by a writer before each request: returns when it may go on, or raises Killed."""
        with self._changed:
            if writer in self._dead:
                raise Killed("the process is dead")
            self._waiting.add(writer)
            if self._turn == writer:
                self._turn = None
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._turn == writer, _STUCK):
                raise TimeoutError(f"writer {writer} was never given its turn")
            self._waiting.discard(writer)
            if writer in self._dead:
                raise Killed("the process died here")

    def _settle(self, writer: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: writer in self._waiting | self._ended, _STUCK):
                raise TimeoutError(f"writer {writer} neither asks for a step nor ends")

    def _choose(self) -> Choice:
        offered = [Choice(writer) for writer in sorted(self._waiting)]
        if len(self._dead) < self._deaths:
            offered += [Choice(writer, dies=True) for writer in sorted(self._waiting)]
        at = len(self.taken)
        if at < len(self._script):
            chosen = self._script[at]
        else:
            chosen = offered[0] if self._draw is None else self._draw.choice(offered)
        self.taken.append(chosen)
        self.offered.append(tuple(offered))
        return chosen

    def _grant(self, choice: Choice) -> None:
        with self._changed:
            if choice.writer not in self._waiting:
                raise ValueError(f"the script says {choice}, but that writer does not wait for a step")
            if choice.dies:
                self._dead.add(choice.writer)
            self._turn = choice.writer
            self._changed.notify_all()
            # The turn comes back with the next request, or with the end.
            if not self._changed.wait_for(lambda: self._turn is None, _STUCK):
                raise TimeoutError(f"writer {choice.writer} neither asks for another step nor ends")


def every_run(run: Callable[[Director], object], *, deaths: int = 0) -> Iterator[Director]:
    """Carry out ``run`` under every schedule there is; each director that made one.

    >>> from lancelet.storage.memory import MemoryStore
    >>> def two_puts(store):
    ...     store.put("a", b"")
    ...     store.put("b", b"")
    >>> runs = every_run(lambda director: director.carry_out(MemoryStore("memory://every"), [two_puts, two_puts]))
    >>> len(list(runs))
    6
    """
    pending: list[tuple[Choice, ...]] = [()]
    while pending:
        script = pending.pop()
        director = Director(script, deaths=deaths)
        run(director)
        for at in range(len(script), len(director.taken)):
            before = tuple(director.taken[:at])
            pending.extend((*before, other) for other in director.offered[at] if other != director.taken[at])
        yield director


def drawn_runs(
    run: Callable[[Director], object], seed: int | str, count: int, *, deaths: int = 0
) -> Iterator[Director]:
    """Carry out ``run`` under ``count`` schedules drawn at random, the same for the same seed."""
    draw = Random(seed)
    for _ in range(count):
        director = Director(deaths=deaths, draw=draw)
        run(director)
        yield director
