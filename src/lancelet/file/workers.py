"""The decoding threads: one small pool for the process, made again after a fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from lancelet.config import default_options

__all__ = ["ahead", "map_tasks", "pool", "sharing", "waiting"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

_WAITERS = 32


@lru_cache(maxsize=1)
def _pool_of(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - the key: a child must not use its parent's threads
    return ThreadPoolExecutor(default_options().threads, thread_name_prefix="lancelet")


def pool() -> ThreadPoolExecutor:
    """The process's decoding threads."""
    return _pool_of(os.getpid())


@lru_cache(maxsize=1)
def _readers_of(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - as above
    return ThreadPoolExecutor(default_options().threads, thread_name_prefix="lancelet-ahead")


def ahead() -> ThreadPoolExecutor:
    """The process's threads for reading ahead. They wait for the decoding threads, which must never wait for them."""
    return _readers_of(os.getpid())


@lru_cache(maxsize=1)
def _waiters_of(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - as above
    return ThreadPoolExecutor(_WAITERS, thread_name_prefix="lancelet-waiting")


def waiting() -> ThreadPoolExecutor:
    """The process's threads for work that mostly waits for a store far away; they too wait for the decoding threads."""
    return _waiters_of(os.getpid())


_shared = threading.local()


@contextmanager
def sharing() -> Iterator[None]:
    """Within the block this thread does its decoding itself: it is one of several that share the work out already."""
    before = getattr(_shared, "by_others", False)
    _shared.by_others = True
    try:
        yield
    finally:
        _shared.by_others = before


def map_tasks(run: Callable[[_Task], _Result], tasks: Sequence[_Task], *, threads: bool) -> list[_Result]:
    """``run`` over all tasks, in order; in the pool where that is worth it.

    >>> map_tasks(str, [1, 2], threads=False)
    ['1', '2']
    """
    if not threads or len(tasks) < 2 or getattr(_shared, "by_others", False) or default_options().threads < 2:
        return [run(task) for task in tasks]
    return list(pool().map(run, tasks))
