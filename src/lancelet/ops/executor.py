"""The local executor: a plan's tasks on threads, within the memory budget, with progress and a way to stop."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, TypeVar

from lancelet.config import Options, default_options
from lancelet.errors import OverBudget
from lancelet.events import emit, span
from lancelet.ops.cancellation import Cancellation, Cancelled
from lancelet.ops.job import Plan, Result, Task, readable_bytes
from lancelet.storage.store import Store

__all__ = ["run_plan"]

Value = TypeVar("Value")


class _Bar(Protocol):
    """As much of a progress bar as is needed."""

    def update(self, n: int) -> object: ...

    def close(self) -> None: ...


def run_plan(
    plan: Plan[Value],
    store: Store,
    *,
    options: Options | None = None,
    cancellation: Cancellation | None = None,
    progress: bool | None = None,
) -> tuple[Result[Value], ...]:
    """Carry out all tasks; their results in the plan's order. Nothing is committed here.

    Tasks start in order, on ``Options.threads`` threads, while what they say they hold fits ``memory_budget``; one
    that would not fit alone is OverBudget before anything runs. The first error is raised with the task's name in a
    note; the tasks that have not begun never do, and those under way are told to stop (:func:`check_cancelled`) and
    waited for. The same goes for an interrupt from the keyboard and for ``cancellation``. ``progress`` draws a bar
    if tqdm is installed; None: only on a terminal. Events tell of progress in any case.
    """
    given = options or default_options()
    token = cancellation or Cancellation()
    _check_budget(plan, given.memory_budget)
    facts = {"operation": plan.operation, "uri": store.uri}
    with _bar(plan, progress) as bar, span("job.run", total=len(plan.tasks), **facts) as work:
        found: dict[str, Result[Value]] = {}
        # Closed at once when the block ends early: then no task is left running when the error is seen.
        with closing(_completed(plan, store, given, token)) as results:
            for result in results:
                found[result.task] = result
                work.advance(1, operation=plan.operation, task=result.task, seconds=result.seconds)
                if bar is not None:
                    bar.update(1)
    return tuple(found[task.id] for task in plan.tasks)


def _check_budget(plan: Plan[Value], budget: int) -> None:
    for task in plan.tasks:
        if task.cost.memory > budget:
            found = f"task {task.id!r} of {plan.operation} holds {readable_bytes(task.cost.memory)}"
            hint = "raise Options.memory_budget (LANCELET_MEMORY_BUDGET), or plan for smaller tasks"
            raise OverBudget(f"{found}, more than the memory budget of {readable_bytes(budget)}", hint=hint)


def _completed(
    plan: Plan[Value], store: Store, options: Options, token: Cancellation
) -> Generator[Result[Value], None, None]:
    """Results as they come. Whoever leaves early leaves no task running."""
    waiting = deque(plan.tasks)
    under_way: dict[Future[Result[Value]], Task[Value]] = {}
    free = options.memory_budget
    threads = max(1, min(options.threads, len(waiting)))
    pool = ThreadPoolExecutor(threads, thread_name_prefix="lancelet-job")
    own = Cancellation()
    try:
        while waiting or under_way:
            token.check()
            while waiting and len(under_way) < threads and waiting[0].cost.memory <= free:
                task = waiting.popleft()
                free -= task.cost.memory
                under_way[pool.submit(_run, task, store, token, own)] = task
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                task = under_way.pop(future)
                free += task.cost.memory
                yield _result(future, task, plan.operation)
    except BaseException as error:
        own.cancel(f"the job ended by {type(error).__name__}")
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[Result[Value]], task: Task[Value], operation: str) -> Result[Value]:
    error = future.exception()
    if error is None:
        return future.result()
    if not isinstance(error, Cancelled):
        emit("job.task_failed", operation=operation, task=task.id, error=repr(error))
    error.add_note(f"raised by task {task.id!r} of {operation}")
    raise error


def _run(task: Task[Value], store: Store, token: Cancellation, own: Cancellation) -> Result[Value]:
    began = time.perf_counter()
    with _Either(token, own).watched():
        token.check()
        return Result(task.id, task.run(store), time.perf_counter() - began)


class _Either(Cancellation):
    """Set when the caller's token is, or the executor's own."""

    def __init__(self, *tokens: Cancellation) -> None:
        super().__init__()
        self._tokens = tokens

    @property
    def cancelled(self) -> bool:
        return any(token.cancelled for token in self._tokens)

    def check(self) -> None:
        for token in self._tokens:
            token.check()


@contextmanager
def _bar(plan: Plan[Value], progress: bool | None) -> Iterator[_Bar | None]:
    wanted = sys.stderr.isatty() if progress is None else progress
    if not wanted or find_spec("tqdm") is None:
        yield None
        return
    bar: _Bar = import_module("tqdm").tqdm(total=len(plan.tasks), desc=plan.operation, unit="task")
    try:
        yield bar
    finally:
        bar.close()
