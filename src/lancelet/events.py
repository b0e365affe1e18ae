"""Events: the one hook on which progress bars, logs and traces hang."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Event", "Span", "emit", "listening", "span", "subscribe"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: a dotted ``name`` (``"storage.retry"``), a time, and facts about it."""

    name: str
    facts: dict[str, object] = field(default_factory=dict)
    at: float = field(default_factory=time.time)


Listener = Callable[[Event], None]
# A tuple that is replaced, never changed: emit() needs no lock and a listener may unsubscribe while it is called.
_listeners: tuple[Listener, ...] = ()


@contextmanager
def subscribe(listener: Listener) -> Iterator[None]:
    """Call ``listener`` with each event of this process while the block runs.

    >>> seen = []
    >>> with subscribe(lambda event: seen.append(event.name)):
    ...     emit("example.happened", rows=3)
    >>> seen
    ['example.happened']
    """
    global _listeners
    _listeners = (*_listeners, listener)
    try:
        yield
    finally:
        kept = list(_listeners)
        kept.remove(listener)
        _listeners = tuple(kept)


def listening() -> bool:
    """Whether anybody would see an event; lets hot paths skip the making of one."""
    return bool(_listeners)


def emit(name: str, **facts: object) -> None:
    """Tell every listener. An error in a listener is the caller's to see: it is not swallowed."""
    if _listeners:
        event = Event(name, facts)
        for listener in _listeners:
            listener(event)


@dataclass(slots=True)
class Span:
    """A piece of work under way; :meth:`advance` reports its progress."""

    name: str
    total: int | None = None
    done: int = 0

    def advance(self, amount: int, **facts: object) -> None:
        """Report that ``amount`` more of the work is done."""
        self.done += amount
        emit(f"{self.name}.progress", done=self.done, total=self.total, **facts)


@contextmanager
def span(name: str, *, total: int | None = None, **facts: object) -> Iterator[Span]:
    """Announce ``name.start`` and, with the seconds it took, ``name.end`` or ``name.error``.

    >>> names = []
    >>> with subscribe(lambda event: names.append(event.name)), span("work", total=2) as work:
    ...     work.advance(2)
    >>> names
    ['work.start', 'work.progress', 'work.end']
    """
    emit(f"{name}.start", total=total, **facts)
    work, began = Span(name, total), time.perf_counter()
    try:
        yield work
    except BaseException as error:
        emit(f"{name}.error", seconds=time.perf_counter() - began, error=repr(error), **facts)
        raise
    emit(f"{name}.end", seconds=time.perf_counter() - began, done=work.done, total=total, **facts)
