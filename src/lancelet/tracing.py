"""Traces: events handed to a function, or written as a file that Chrome and Perfetto show."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from lancelet.events import Event, subscribe

__all__ = ["TraceEvent", "capture_trace_events", "shutdown_tracing", "trace_to_chrome"]

_ENDS = (".end", ".error")
_listening = ExitStack()


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """Something that happened: its dotted name, and facts about it."""

    target: str
    args: dict[str, object]


def capture_trace_events(callback: Callable[[TraceEvent], None]) -> None:
    """Call a function with each event of this process from now on, until :func:`shutdown_tracing`.

    >>> from lancelet.events import emit
    >>> seen = []
    >>> capture_trace_events(seen.append)
    >>> emit("example.happened", rows=3)
    >>> shutdown_tracing()
    >>> seen
    [TraceEvent(target='example.happened', args={'rows': 3})]
    """
    _listening.enter_context(subscribe(lambda event: callback(TraceEvent(event.name, dict(event.facts)))))


def shutdown_tracing() -> None:
    """End all tracing; what was collected for files is written."""
    _listening.close()


def trace_to_chrome(*, file: str | None = None) -> None:
    """Write what happens from now on as a trace, when the process ends or at :func:`shutdown_tracing`.

    Without a name the file is ``trace-<microseconds>.json`` in the working directory.
    """
    trace = _ChromeTrace(file or f"trace-{time.time_ns() // 1000}.json")
    _listening.callback(trace.write)
    _listening.enter_context(subscribe(trace.add))
    atexit.register(shutdown_tracing)


class _ChromeTrace:
    """Events in Chrome's form: spans are complete events (X), the others instants (i); times in microseconds."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._events: list[dict[str, object]] = []

    def add(self, event: Event) -> None:
        """Take an event in; the beginning of a span is told again by its end."""
        if event.name.endswith(".start"):
            return
        seconds = event.facts.get("seconds")
        entry: dict[str, object] = {
            "name": event.name,
            "pid": os.getpid(),
            "tid": threading.get_ident(),
            "args": {key: str(value) for key, value in event.facts.items()},
        }
        if event.name.endswith(_ENDS) and isinstance(seconds, float):
            name = event.name.rpartition(".")[0]
            entry |= {"name": name, "ph": "X", "ts": (event.at - seconds) * 1e6, "dur": seconds * 1e6}
        else:
            entry |= {"ph": "i", "ts": event.at * 1e6, "s": "t"}
        self._events.append(entry)

    def write(self) -> None:
        """Write the file."""
        with open(self._path, "w") as file:
            json.dump({"traceEvents": self._events}, file)
