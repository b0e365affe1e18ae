"""How a case is measured: contenders in turn, fresh inputs each time, compared for equality before they are timed."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

__all__ = ["Case", "Measured", "Times", "measure", "once", "same"]

State = TypeVar("State")


def same(one: object, other: object) -> bool:
    """Whether two results are equal: arrays by their bytes (NaN equals itself), other things by ``==``."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return bool(one == other)


@dataclass(frozen=True, slots=True)
class Case(Generic[State]):
    """One question: how long each contender takes for the same work.

    ``fresh`` makes the input anew, outside the time that is taken: arrays that are written to, rows that were not read
    before. Its argument counts the repetitions, so that all contenders of one repetition get equal input. Contenders in
    ``limits`` show what the machine allows (a memcpy); their results are not compared.
    """

    name: str
    fresh: Callable[[int], State]
    contenders: Mapping[str, Callable[[State], object]]
    #: The contender that the others are compared with.
    baseline: str
    #: Bytes of the result, for GB/s; 0 where that says nothing.
    size: int = 0
    limits: Mapping[str, Callable[[State], object]] = field(default_factory=dict)
    equal: Callable[[object, object], bool] = same
    #: What of a result is compared: of a file that was written, its rows.
    compared: Callable[[object], object] = field(default=lambda result: result)
    #: Bytes that a contender has put out, where contenders differ in that.
    weigh: Callable[[object], int] | None = None
    #: What a contender does once in each process, outside the time that is taken: imports, opening of files.
    prepare: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    #: How many times as fast as the baseline lancelet is meant to be; 0 for no such aim.
    goal: float = 0
    #: CPU seconds used so far, by all processes that do the work.
    clock: Callable[[], float] = time.process_time


@dataclass(frozen=True, slots=True)
class Times:
    """Wall and CPU seconds of one contender; the memory it added to its process where it had one of its own."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]
    peak: tuple[int, ...] = ()
    #: Bytes put out, where the case weighs them.
    weight: int = 0

    @property
    def least(self) -> float:
        """The least wall time: what the work costs when nothing else is in its way."""
        return min(self.wall)

    @property
    def median(self) -> float:
        """The median wall time."""
        return statistics.median(self.wall)

    @property
    def least_cpu(self) -> float:
        """The least CPU time over all threads of the process."""
        return min(self.cpu)


@dataclass(frozen=True, slots=True)
class Measured:
    """A case with the times of its contenders."""

    family: str
    case: str
    baseline: str
    size: int
    times: Mapping[str, Times]
    limits: frozenset[str] = frozenset()
    goal: float = 0

    def cpu_ratio(self, contender: str) -> float:
        """How many times less CPU time than the baseline the contender needs, by the least of each."""
        return self.times[self.baseline].least_cpu / max(self.times[contender].least_cpu, 1e-9)

    def ratio(self, contender: str) -> float:
        """How many times as fast as the baseline the contender is, by least wall time."""
        return self.times[self.baseline].least / self.times[contender].least


def once(case: Case[State], contender: str, repetition: int) -> tuple[float, float, object]:
    """Wall seconds, CPU seconds and result of one run on fresh input."""
    state = case.fresh(repetition)
    run = case.contenders.get(contender) or case.limits[contender]
    began, cpu = time.perf_counter(), case.clock()
    result = run(state)
    return time.perf_counter() - began, case.clock() - cpu, result


def check(case: Case[State]) -> dict[str, int]:
    """Refuse to time contenders that do not give the same; what each put out, where the case weighs that."""
    weights = {}
    results = {}
    for name in dict.fromkeys([case.baseline, *case.contenders]):
        case.prepare.get(name, lambda: None)()
        result = once(case, name, 0)[2]
        weights[name] = case.weigh(result) if case.weigh else 0
        results[name] = case.compared(result)
        if name != case.baseline and not case.equal(results.pop(name), results[case.baseline]):
            raise SystemExit(f"bench: {case.name}: {name} and {case.baseline} give different results")
    return weights


def measure(family: str, case: Case[State], *, seconds: float = 1.0, least: int = 5, most: int = 200) -> Measured:
    """Time all contenders of a case in turn, in this process, for about so many seconds."""
    weights = check(case)
    names = [*case.contenders, *case.limits]
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    until = time.perf_counter() + seconds
    for repetition in range(1, most + 1):
        # Forwards and backwards in turn: nobody always runs on the cache that the same neighbour left.
        for name in names if repetition % 2 else reversed(names):
            took, used, _ = once(case, name, repetition)
            wall[name].append(took)
            cpu[name].append(used)
        if repetition >= least and time.perf_counter() > until:
            break
    times = {name: Times(tuple(wall[name]), tuple(cpu[name]), (), weights.get(name, 0)) for name in names}
    return Measured(family, case.name, case.baseline, case.size, times, frozenset(case.limits), case.goal)


def forget_peak() -> None:
    """Let :func:`peak_memory` count from now on, where the system can do that."""
    counters = Path("/proc/self/clear_refs")
    if counters.exists():
        counters.write_text("5")


def peak_memory() -> int:
    """Most bytes that this process has held at once."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux hands getrusage's figure on to the children of a process, so it would be the parent's here.
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
