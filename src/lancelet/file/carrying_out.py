"""Carrying out steps: every fetch is one read of the file, every set of tasks is shared among the threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from lancelet.encodings.v2_0.steps import Fetch, Steps
from lancelet.encodings.values import Bytes
from lancelet.file.workers import map_tasks
from lancelet.format.columns import Range

__all__ = ["Readable", "run_steps"]

_Result = TypeVar("_Result")

# Below this many bytes the hand-over to another thread costs more than it wins.
_WORTH_A_THREAD = 2**20


class Readable(Protocol):
    """What steps are carried out on."""

    def read(self, ranges: Sequence[Range]) -> list[Bytes]:
        """The bytes of each range."""


def run_steps(file: Readable, steps: Steps[_Result]) -> _Result:
    """The result of some steps."""
    fetched = 0
    try:
        step = next(steps)
        while True:
            if isinstance(step, Fetch):
                fetched += sum(size for _, size in step.ranges)
                step = steps.send(file.read(step.ranges))
            else:
                made = map_tasks(lambda task: task(), step.tasks, threads=fetched >= _WORTH_A_THREAD)
                fetched = 0
                step = steps.send(made)
    except StopIteration as end:
        result: _Result = end.value
        return result
