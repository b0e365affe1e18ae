"""The shape of every large job: a plan of tasks as pure data, results that any machine may bring, one commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lancelet.errors import InvalidInput
from lancelet.storage.store import Store
from lancelet.table.outcome import Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["Cost", "Gathered", "Job", "Plan", "Result", "Task", "gather", "readable_bytes"]

Value = TypeVar("Value")
ValueOut = TypeVar("ValueOut", covariant=True)


def readable_bytes(count: int) -> str:
    """A number of bytes as people say it.

    >>> readable_bytes(0), readable_bytes(1023), readable_bytes(1536), readable_bytes(20 * 2**30)
    ('0 B', '1023 B', '1.5 KiB', '20.0 GiB')
    """
    if count < 1024:
        return f"{count} B"
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min((count.bit_length() - 1) // 10, len(units) - 1)
    return f"{count / 1024**power:.1f} {units[power]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What some work is expected to take. ``memory`` is the most that it holds at once.

    >>> Cost(bytes_read=10, memory=5) + Cost(bytes_read=1, memory=7)
    Cost(bytes_read=11, bytes_written=0, requests=0, memory=7)
    """

    bytes_read: int = 0
    bytes_written: int = 0
    requests: int = 0
    memory: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 0:
                raise InvalidInput(f"the cost says {getattr(self, name)} for {name}, expected at least 0")

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            bytes_read=self.bytes_read + other.bytes_read,
            bytes_written=self.bytes_written + other.bytes_written,
            requests=self.requests + other.requests,
            memory=max(self.memory, other.memory),
        )

    def __str__(self) -> str:
        read, written, memory = map(readable_bytes, (self.bytes_read, self.bytes_written, self.memory))
        return f"reads {read}, writes {written}, {self.requests:,} requests, holds {memory}"


class Task(Protocol[ValueOut]):
    """A piece of a job that any process on any machine can carry out: it pickles, and reads and writes a store only.

    Idempotent: it may run twice, also at the same time, because it writes files of new names and nothing else.
    """

    @property
    def id(self) -> str:
        """What the piece is called: the same in every copy of the plan, and no other piece's name."""

    @property
    def cost(self) -> Cost:
        """What it is expected to take; its memory is what it may hold."""

    def run(self, store: Store) -> ValueOut:
        """Do the work; what it returns pickles, too."""


@dataclass(frozen=True, slots=True)
class Plan(Generic[ValueOut]):
    """What a job is going to do: pure data, printable; making it reads no data files.

    >>> print(Plan("compact", 7, ()))
    compact from version 7: 0 tasks
      reads 0 B, writes 0 B, 0 requests, holds 0 B
    """

    operation: str
    #: The version that the plan was made from.
    read_version: int
    tasks: tuple[Task[ValueOut], ...]

    def __post_init__(self) -> None:
        for name, count in Counter(task.id for task in self.tasks).items():
            if count > 1:
                raise InvalidInput(f"{count} tasks of the plan are called {name!r}, expected names that differ")

    @property
    def cost(self) -> Cost:
        """All tasks' together; the memory is that of the largest."""
        return sum((task.cost for task in self.tasks), Cost())

    def __str__(self) -> str:
        tasks = f"{len(self.tasks):,} task{'' if len(self.tasks) == 1 else 's'}"
        each = " at most, each" if len(self.tasks) > 1 else ""
        return f"{self.operation} from version {self.read_version}: {tasks}\n  {self.cost}{each}"


@dataclass(frozen=True, slots=True)
class Result(Generic[Value]):
    """What one run of a task brought."""

    task: str
    value: Value
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Gathered(Generic[Value]):
    """One result for each task, in the plan's order, and those of runs that were not needed."""

    results: tuple[Result[Value], ...]
    #: Of tasks that ran more than once: what they wrote belongs to no version.
    surplus: tuple[Result[Value], ...]


class Job(Protocol[Value]):
    """The three functions that make a job; whoever runs the tasks in between is no concern of theirs."""

    def plan(self, snapshot: Snapshot) -> Plan[Value]:
        """What is to be done."""

    def commit(self, snapshot: Snapshot, results: Sequence[Result[Value]]) -> Outcome:
        """Make it a version: one atomic put."""


def gather(plan: Plan[Value], results: Iterable[Result[Value]]) -> Gathered[Value]:
    """The first result of each task. InvalidInput where one is missing, or of a task that the plan does not have."""
    places = {task.id: place for place, task in enumerate(plan.tasks)}
    first: dict[str, Result[Value]] = {}
    surplus = []
    for result in results:
        if result.task not in places:
            raise InvalidInput(f"there is a result of task {result.task!r}, which the plan does not have")
        if first.setdefault(result.task, result) is not result:
            surplus.append(result)
    missing = [name for name in places if name not in first]
    if missing:
        raise InvalidInput(f"{len(missing)} of {len(places)} tasks have no result, {missing[0]!r} among them")
    return Gathered(tuple(sorted(first.values(), key=lambda result: places[result.task])), tuple(surplus))
