"""Python workers of Spark: what one of them may take of its machine, which it shares with others."""

from __future__ import annotations

import os
from functools import lru_cache

from pyspark import TaskContext

from lancelet.config import available_memory

__all__ = ["prepare_worker", "task_property"]

_LEAST, _MOST = 128 * 2**20, 2**30


@lru_cache(maxsize=1)
def _prepare(process: int) -> None:  # noqa: ARG001 - the key: workers are forked from a process that never ran a task
    cores = os.cpu_count() or 1
    share = min(max(available_memory() // (4 * cores), _LEAST), _MOST)
    os.environ.setdefault("LANCELET_MEMORY_BUDGET", str(share))
    # A task has one core; a second thread reads ahead while Spark takes what was read.
    os.environ.setdefault("LANCELET_THREADS", str(min(2, cores)))


def prepare_worker() -> None:
    """Keep to a share of the machine, unless the environment says how much (``spark.executorEnv.LANCELET_…``).

    Nothing happens in a process that is no worker of Spark.
    """
    if TaskContext.get() is not None:
        _prepare(os.getpid())


def task_property(name: str) -> str | None:
    """What Spark tells its tasks under a name; None where it tells nothing, or where no task runs."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)
