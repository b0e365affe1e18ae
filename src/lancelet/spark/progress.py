"""Progress of Spark's tasks, told as events and drawn as a bar while the driver waits for their answers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from lancelet.events import Span, listening, span

__all__ = ["on_connect", "watched"]

#: Seconds between two looks at how far Spark is.
_PACE = 0.25
#: What a thread's jobs are called by, in Spark's own properties.
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"


def on_connect(spark: SparkSession) -> bool:
    """Whether a session speaks to a server: then it has no context to ask."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def watched(
    spark: SparkSession, operation: str, uri: str, *, total: int | None = None, progress: bool | None = None
) -> Iterator[None]:
    """Tell how many tasks are done that the block lets Spark carry out; without ``total`` Spark says how many.

    ``progress`` draws a bar if tqdm is installed; None: only on a terminal. Events tell of it in any case.
    """
    drawn = (sys.stderr.isatty() if progress is None else progress) and find_spec("tqdm") is not None
    bar: Any = import_module("tqdm").tqdm(total=total, desc=operation, unit="task") if drawn else None
    try:
        with span("job.run", total=total, operation=operation, uri=uri) as work:
            if bar is None and not listening():
                yield
                return
            tell = _Teller(work, operation, bar)
            with _handled(spark, tell) if on_connect(spark) else _polled(spark, operation, tell):
                yield
            tell(total or tell.total, total or tell.total)
    finally:
        if bar is not None:
            bar.close()


class _Teller:
    """Turns counts of tasks into events and the moves of a bar."""

    def __init__(self, work: Span, operation: str, bar: Any) -> None:
        self._work, self._operation, self._bar = work, operation, bar
        self.total = 0

    def __call__(self, done: int, total: int) -> None:
        self.total = max(self.total, total)
        # Stages that turn out not to be needed take their tasks with them: the count never goes back.
        more = done - self._work.done
        if more <= 0:
            return
        self._work.advance(more, operation=self._operation)
        if self._bar is not None:
            self._bar.total = max(self._bar.total or 0, total)
            self._bar.update(more)


@contextmanager
def _handled(spark: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """What a server says of the operations of this thread."""
    mine = threading.get_ident()

    def handler(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001
        if threading.get_ident() == mine and stages:
            found = list(stages)
            tell(sum(item.num_completed_tasks for item in found), sum(item.num_tasks for item in found))

    given: Any = handler
    spark.registerProgressHandler(given)
    try:
        yield
    finally:
        spark.removeProgressHandler(given)


@contextmanager
def _polled(spark: SparkSession, operation: str, tell: Callable[[int, int], None]) -> Iterator[None]:
    """What the context says of the jobs of this thread, which are a group of their own meanwhile."""
    context = spark.sparkContext
    before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION)}
    group, over = f"lancelet-{uuid4().hex}", threading.Event()
    context.setLocalProperty(_GROUP, group)
    context.setLocalProperty(_DESCRIPTION, before[_DESCRIPTION] or f"lancelet: {operation}")

    def poll() -> None:
        while not over.wait(_PACE):
            tell(*_tasks_of(spark, group))

    thread = threading.Thread(target=poll, name="lancelet-spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for name, value in before.items():
            context.setLocalProperty(name, value)  # type: ignore[arg-type]


def _tasks_of(spark: SparkSession, group: str) -> tuple[int, int]:
    """Tasks of a group of jobs: those that are done, and all that are known of."""
    tracker = spark.sparkContext.statusTracker()
    done = total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            found = tracker.getStageInfo(stage)
            if found is not None:
                done, total = done + found.numCompletedTasks, total + found.numTasks
    return done, total
