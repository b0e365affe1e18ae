"""Many small requests at once: answers come in order, and only so many are under way or waiting to be taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["in_order"]

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def in_order(call: Callable[[_Item], _Answer], items: Iterable[_Item], *, concurrency: int) -> Iterator[_Answer]:
    """``call`` of each item, in order. The first is made alone: who stops there has paid for one.

    Calls that have not begun are dropped when the iterator is closed or a call fails.

    >>> list(in_order(len, ["a", "", "bcd"], concurrency=2))
    [1, 0, 3]
    """
    remaining = iter(items)
    for item in islice(remaining, 1):
        yield call(item)
    if concurrency == 1:
        yield from map(call, remaining)
        return
    second = list(islice(remaining, 1))
    if not second:
        return
    with ThreadPoolExecutor(concurrency, thread_name_prefix="lancelet-table") as pool:
        waiting: deque[Future[_Answer]] = deque(pool.submit(call, item) for item in second)
        try:
            waiting.extend(pool.submit(call, item) for item in islice(remaining, concurrency - 1))
            while waiting:
                answer = waiting.popleft().result()
                waiting.extend(pool.submit(call, item) for item in islice(remaining, 1))
                yield answer
        finally:
            for future in waiting:
                future.cancel()
