"""Reading ahead: tasks carried out by threads while the results before them are used, a bounded number at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from typing import TypeVar

from lancelet.file.workers import sharing

__all__ = ["carried_out"]

_Result = TypeVar("_Result")


def carried_out(
    tasks: Iterator[Callable[[], _Result]], threads: ThreadPoolExecutor | None, *, ahead: int, in_order: bool = True
) -> Iterator[_Result]:
    """The results of tasks, at most ``ahead`` of them under way or waiting to be used.

    Without threads, and where there is only one task, the caller's own thread does the work. What is under way when
    the caller gives up is let go.

    >>> list(carried_out(iter([lambda: 1, lambda: 2]), None, ahead=2))
    [1, 2]
    """
    first = list(islice(tasks, 2))
    if threads is None or ahead < 2 or len(first) < 2:
        for task in chain(first, tasks):
            yield task()
        return
    waiting: deque[Future[_Result]] = deque()
    try:
        for task in chain(first, tasks):
            waiting.append(threads.submit(_shared, task))
            if len(waiting) >= ahead:
                yield _next(waiting, in_order)
        while waiting:
            yield _next(waiting, in_order)
    finally:
        for future in waiting:
            future.cancel()


def _shared(task: Callable[[], _Result]) -> _Result:
    with sharing():
        return task()


def _next(waiting: deque[Future[_Result]], in_order: bool) -> _Result:
    """The result of the first task, or of the one that is done first."""
    if not in_order and not waiting[0].done():
        done = wait(waiting, return_when=FIRST_COMPLETED).done
        found = next(future for future in waiting if future in done)
        waiting.remove(found)
        return found.result()
    # The future is let go before its result is handed on: nothing else may keep the rows in memory.
    return waiting.popleft().result()
