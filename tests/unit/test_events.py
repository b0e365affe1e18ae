"""The hook: who is told, in what order, and what a span reports."""

from __future__ import annotations

import pytest

from lancelet.events import Event, emit, listening, span, subscribe


def test_nobody_is_told_when_nobody_listens() -> None:
    assert not listening()
    emit("nothing.happened")


def test_listeners_are_told_in_the_order_they_came_and_only_while_they_listen() -> None:
    told: list[str] = []
    with subscribe(lambda event: told.append(f"first {event.name}")):
        with subscribe(lambda event: told.append(f"second {event.name}")):
            emit("a")
        emit("b")
    emit("c")
    assert told == ["first a", "second a", "first b"]


def test_one_listener_twice_is_told_twice_and_leaves_once() -> None:
    told: list[Event] = []
    with subscribe(told.append):
        with subscribe(told.append):
            emit("a", rows=1)
        emit("b")
    assert [(event.name, event.facts) for event in told] == [("a", {"rows": 1}), ("a", {"rows": 1}), ("b", {})]


def test_an_error_in_a_listener_reaches_the_caller_and_the_listener_still_leaves() -> None:
    def fail(event: Event) -> None:
        raise RuntimeError(event.name)

    with pytest.raises(RuntimeError, match=r"work\.start"), subscribe(fail):
        emit("work.start")
    assert not listening()


def test_a_span_tells_start_progress_and_end_with_seconds() -> None:
    told: list[Event] = []
    with subscribe(told.append), span("work", total=3, uri="a") as work:
        work.advance(1, path="x")
        work.advance(2)
    assert [event.name for event in told] == ["work.start", "work.progress", "work.progress", "work.end"]
    assert told[1].facts == {"done": 1, "total": 3, "path": "x"}
    end = told[-1].facts
    assert (end["done"], end["total"], end["uri"]) == (3, 3, "a")
    assert isinstance(end["seconds"], float)


def test_a_span_that_fails_tells_the_error_and_passes_it_on() -> None:
    told: list[Event] = []
    with pytest.raises(KeyError), subscribe(told.append), span("work"):
        raise KeyError("gone")
    assert [event.name for event in told] == ["work.start", "work.error"]
    assert told[-1].facts["error"] == "KeyError('gone')"
