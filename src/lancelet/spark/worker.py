"""Python workers of Spark: what one of them may take of its machine, which it shares with others."""

from __future__ import annotations

import os
from functools import lru_cache

from pyspark import TaskContext

from lancelet.config import available_memory

__all__ = ["prepare_worker", "task_property"]

_LEAST, _MOST = 128 * 2**20, 2**30


def _share(available: int, cores: int, limit: str) -> int:
    """Bytes that a task may keep at once: a quarter of its core's memory, or of what Spark lets a worker have.

    >>> _share(16 * 2**30, 4, "") == 2**30, _share(16 * 2**30, 4, "1024") == 2**28
    (True, True)
    """
    most = available // cores
    if limit.isdecimal() and int(limit) > 0:
        # spark.executor.pyspark.memory, of which each of an executor's workers gets its part.
        most = min(most, int(limit) * 2**20)
    return min(max(most // 4, _LEAST), _MOST)


@lru_cache(maxsize=1)
def _prepare(process: int) -> None:  # noqa: ARG001 - the key: workers are forked from a process that never ran a task
    cores = os.cpu_count() or 1
    share = _share(available_memory(), cores, os.environ.get("PYSPARK_EXECUTOR_MEMORY_MB", ""))
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
