"""Faults on purpose: a store that fails as real ones do, by schedule or by seed, and sudden death at named moments."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import islice
from typing import TypeVar

from lancelet.errors import InvalidInput, LanceletError, Storage
from lancelet.events import Event, subscribe
from lancelet.storage.delegating import Delegating, DelegatingWriter
from lancelet.storage.locks import fork_safe_lock
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Data, Entry, Range, Store, Writer, as_bytes

__all__ = ["Fault", "FaultyStore", "Injected", "Killed", "Kind", "kill_at"]

Answer = TypeVar("Answer")


class Killed(BaseException):
    """The process died here. Not an Exception, so that no handler takes it for a failure to recover from."""


class Kind(StrEnum):
    """What goes wrong."""

    #: The call fails and has done nothing.
    ERROR = "error"
    #: The call is carried out and its answer, good or bad, is lost: an error.
    LOST_ANSWER = "lost answer"
    #: An error after ``seconds``; whether the call was carried out is drawn from the seed.
    TIMEOUT = "timeout"
    #: A write breaks off half-way and is not cleaned up.
    TORN = "torn"
    #: A read brings fewer bytes than were asked for, and no error.
    SHORT_READ = "short read"
    #: :class:`Killed` is raised, before the call or (``after``) when it is done; nothing works from then on.
    KILL = "kill"
    #: ``os._exit(exit_code)``, before the call or (``after``) when it is done.
    EXIT = "exit"


_READS = frozenset({"size", "read", "read_all", "read_tail"})
_WRITES = frozenset({"put", "put_if_absent", "write", "close", "copy", "delete"})
_VERBS = _READS | _WRITES | {"list", "writer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong: from the ``at``-th matching call on, ``times`` times (None: for ever).

    ``verb`` is a method of Store, or ``write`` or ``close`` of its writers, or ``*``; ``path`` a shell pattern. For a
    listing the path is its prefix, and the fault strikes after ``entries`` objects.

    >>> Fault(kind=Kind.LOST_ANSWER, verb="put_if_absent", path="_versions/*").times
    1
    """

    kind: Kind
    verb: str = "*"
    path: str = "*"
    at: int = 1
    times: int | None = 1
    after: bool = False
    retryable: bool = True
    seconds: float = 0.0
    entries: int = 0
    exit_code: int = 137

    def __post_init__(self) -> None:
        if self.verb not in _VERBS | {"*"}:
            raise InvalidInput(f"unknown verb {self.verb!r}", hint=f"known are {', '.join(sorted(_VERBS))}")

    def fits(self, verb: str, path: str) -> bool:
        """Whether the fault can strike this call."""
        if self.verb not in (verb, "*") or not fnmatchcase(path, self.path):
            return False
        if self.kind is Kind.TORN:
            return verb in ("put", "put_if_absent", "write", "close")
        return self.kind is not Kind.SHORT_READ or verb in ("read", "read_all", "read_tail")


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that struck."""

    kind: Kind
    verb: str
    path: str


class FaultyStore(Delegating):
    """A store to which ``faults`` happen, and besides, with probability ``rate``, one of ``kinds`` drawn by ``seed``.

    The same calls in the same order meet the same faults. ``injected`` tells what struck. A torn write is invisible,
    as it is on every store of lancelet: what remains is an abandoned upload. ``torn_visible`` makes half an object
    appear instead, as on a file system that is written in place. A pickled copy begins its schedule anew.

    >>> from lancelet.storage.memory import MemoryStore
    >>> store = FaultyStore(MemoryStore("memory://faulty"), [Fault(kind=Kind.LOST_ANSWER, verb="put")])
    >>> try:
    ...     store.put("a", b"1")
    ... except Storage as error:
    ...     print(error)
    put: the answer was lost [uri=memory://faulty/a]
    >>> bytes(store.read_all("a"))
    b'1'
    """

    def __init__(
        self,
        inner: Store,
        faults: Iterable[Fault] = (),
        *,
        seed: int = 0,
        rate: float = 0.0,
        kinds: Sequence[Kind] = (Kind.ERROR, Kind.LOST_ANSWER, Kind.TIMEOUT, Kind.TORN),
        torn_visible: bool = False,
    ) -> None:
        super().__init__(inner)
        self._faults, self._kinds = tuple(faults), tuple(kinds)
        self._seed, self._rate, self._torn_visible = seed, rate, torn_visible
        self._seen = [0] * len(self._faults)
        self._random = random.Random(seed)
        self._lock = fork_safe_lock()
        self._dead = False
        self.injected: list[Injected] = []

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.inner, self._faults, self._seed, self._rate, self._kinds, self._torn_visible)

    def revive(self) -> None:
        """Let a store work again after :data:`Kind.KILL`, as if a new process had opened it."""
        self._dead = False

    def size(self, path: str) -> int:
        """As the inner store, or not."""
        return self._meet("size", path, lambda: self.inner.size(path))

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """As the inner store, or not; a short read cuts the last range."""
        return self._meet("read", path, lambda: self.inner.read(path, ranges), short=_cut_last)

    def read_all(self, path: str) -> memoryview:
        """As the inner store, or not."""
        return self._meet("read_all", path, lambda: self.inner.read_all(path), short=_cut)

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """As the inner store, or not."""
        return self._meet(
            "read_tail",
            path,
            lambda: self.inner.read_tail(path, length),
            short=lambda found: (_cut(found[0]), found[1]),
        )

    def put(self, path: str, data: Data) -> None:
        """As the inner store, or not."""
        self._meet("put", path, lambda: self.inner.put(path, data), torn=lambda: self._tear(path, data))

    def put_if_absent(self, path: str, data: Data) -> None:
        """As the inner store, or not."""
        self._meet(
            "put_if_absent", path, lambda: self.inner.put_if_absent(path, data), torn=lambda: self._tear(path, data)
        )

    def writer(self, path: str) -> Writer:
        """As the inner store, or not."""
        return self._meet("writer", path, lambda: _FaultyWriter(self.inner.writer(path), self, path))

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """As the inner store, or not, or breaking off in the middle."""
        fault = self._strikes("list", prefix)
        yield from islice(self.inner.list_from(prefix, start_after), fault.entries if fault else None)
        if fault:
            raise self._failure(fault, "list", prefix)

    def copy(self, source: str, target: str) -> None:
        """As the inner store, or not."""
        self._meet("copy", target, lambda: self.inner.copy(source, target))

    def delete(self, paths: Iterable[str]) -> None:
        """As the inner store, or not."""
        named = list(paths)
        self._meet("delete", named[0] if named else "", lambda: self.inner.delete(named))

    def _meet(
        self,
        verb: str,
        path: str,
        call: Callable[[], Answer],
        *,
        torn: Callable[[], None] | None = None,
        short: Callable[[Answer], Answer] | None = None,
    ) -> Answer:
        """Carry out a call with whatever fault strikes it."""
        fault = self._strikes(verb, path)
        if fault is None:
            return call()
        if fault.kind is Kind.SHORT_READ and short is not None:
            return short(call())
        if fault.kind is Kind.TORN and torn is not None:
            torn()
            raise self._error(fault, verb, path, "the upload broke off")
        if fault.kind is Kind.LOST_ANSWER or fault.after or (fault.kind is Kind.TIMEOUT and self._draw() < 0.5):
            # An answer that is lost may have been a refusal, too.
            with suppress(LanceletError):
                call()
        raise self._failure(fault, verb, path)

    def _failure(self, fault: Fault, verb: str, path: str) -> Storage:
        """The error that a fault ends in, unless it ends the process."""
        if fault.kind is Kind.EXIT:
            os._exit(fault.exit_code)
        if fault.kind is Kind.KILL:
            self._dead = True
            raise Killed(f"{verb} {path}")
        if fault.kind is Kind.TIMEOUT:
            time.sleep(fault.seconds)
        texts = {Kind.LOST_ANSWER: "the answer was lost", Kind.TIMEOUT: "no answer in time"}
        return self._error(fault, verb, path, texts.get(fault.kind, "injected error"))

    def _error(self, fault: Fault, verb: str, path: str, text: str) -> Storage:
        return Storage(f"{verb}: {text}", uri=join_uri(self.uri, path), retryable=fault.retryable)

    def _tear(self, path: str, data: Data) -> None:
        if self._torn_visible:
            view = as_bytes(data)
            self.inner.put(path, view[: len(view) // 2])

    def _strikes(self, verb: str, path: str) -> Fault | None:
        """The fault that this call meets; counts the call."""
        with self._lock:
            if self._dead:
                raise Killed(f"{verb} {path}: the process is dead")
            found: Fault | None = None
            for number, fault in enumerate(self._faults):
                if fault.fits(verb, path):
                    self._seen[number] += 1
                    last = float("inf") if fault.times is None else fault.at + fault.times - 1
                    if found is None and fault.at <= self._seen[number] <= last:
                        found = fault
            if found is None and self._rate and self._random.random() < self._rate:
                drawn = Fault(kind=self._random.choice(self._kinds))
                found = drawn if drawn.fits(verb, path) else Fault(kind=Kind.ERROR)
            if found is not None:
                self.injected.append(Injected(found.kind, verb, path))
            return found

    def _draw(self) -> float:
        with self._lock:
            return self._random.random()


class _FaultyWriter(DelegatingWriter):
    """A writer to which faults happen. After a torn write it is an abandoned upload: nobody aborts it."""

    def __init__(self, inner: Writer, store: FaultyStore, path: str) -> None:
        super().__init__(inner)
        self._store, self._path = store, path
        self._abandoned = False

    def write(self, data: Data) -> None:
        self._store._meet("write", self._path, lambda: self.inner.write(data), torn=lambda: self._half(data))

    def close(self) -> int:
        return self._store._meet("close", self._path, self.inner.close, torn=self._abandon)

    def abort(self) -> None:
        if not self._abandoned and not self._store._dead:
            self.inner.abort()

    def _half(self, data: Data) -> None:
        view = as_bytes(data)
        self.inner.write(view[: len(view) // 2])
        self._abandon()

    def _abandon(self) -> None:
        self._abandoned = True
        if self._store._torn_visible:
            self._store.inner.put(self._path, bytes(self.inner.position // 2))


@contextmanager
def kill_at(name: str, *, at: int = 1, exit_code: int | None = None) -> Iterator[None]:
    """Die when the event ``name`` happens for the ``at``-th time while the block runs.

    With ``exit_code`` the process ends at once, as by ``kill -9``: no handler, no ``finally``. Without, Killed is
    raised from where the event is told, and the stack unwinds. A local write has the events ``storage.staged`` (all
    bytes in a temporary file, the name not taken yet) and ``storage.published``.

    >>> from lancelet.events import emit
    >>> with kill_at("example.step", at=2):
    ...     emit("example.step")
    """
    seen = 0

    def listener(event: Event) -> None:
        nonlocal seen
        seen += event.name == name
        if event.name == name and seen == at:
            if exit_code is not None:
                os._exit(exit_code)
            raise Killed(name)

    with subscribe(listener):
        yield


def _cut(view: memoryview) -> memoryview:
    return view[: len(view) // 2]


def _cut_last(views: list[memoryview]) -> list[memoryview]:
    return [*views[:-1], _cut(views[-1])] if views else views


def _rebuild(
    inner: Store, faults: tuple[Fault, ...], seed: int, rate: float, kinds: tuple[Kind, ...], torn_visible: bool
) -> FaultyStore:
    return FaultyStore(inner, faults, seed=seed, rate=rate, kinds=kinds, torn_visible=torn_visible)
