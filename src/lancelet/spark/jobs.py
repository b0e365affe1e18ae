"""Jobs: the tasks of any plan carried out by Spark, told to the journal before they write, one commit at the end."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions
from lancelet.ops.job import Plan, Result, gather
from lancelet.ops.journal import REMOVING, JobJournal, claim_fate
from lancelet.spark.address import Address
from lancelet.spark.attempts import telling_store
from lancelet.spark.progress import watched
from lancelet.spark.worker import prepare_worker
from lancelet.spark.writing import JOB
from lancelet.storage.store import Store
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["ANSWER", "Job", "Made", "answers_of", "as_answer", "committed", "journalled", "run_tasks"]

Value = TypeVar("Value")

#: The columns of frames whose rows are what tasks answer.
ANSWER = "answer binary"


@dataclass(slots=True)
class Job:
    """One attempt at a job: where it works, its entry in the journal, and the attempts of tasks whose files count."""

    spark: SparkSession
    #: The version that it works on.
    address: Address
    store: Store
    journal: JobJournal
    progress: bool | None = None
    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    @property
    def options(self) -> CommitOptions:
        """What is said with the commit: which job made it, and what the caller has to say."""
        return CommitOptions(message=self.message, properties={**self.properties, JOB: self.journal.job})

    def run(self, plan: Plan[Value]) -> tuple[Value, ...]:
        """What the tasks of a plan bring, in its order; Spark carries them out."""
        answers = run_tasks(self.spark, plan, self.address, self.journal.job, progress=self.progress)
        self.used.update(attempt for attempt, _ in answers)
        gathered = gather(plan, [result for _, result in answers])
        return tuple(result.value for result in gathered.results)

    def collect(self, frame: DataFrame, operation: str) -> list[object]:
        """What the tasks of a frame of answers say."""
        with watched(self.spark, operation, self.store.uri, progress=self.progress):
            return answers_of(frame)


@dataclass(frozen=True, slots=True)
class Made(Generic[Value]):
    """What became of a job: its commit, what else is to be told of it, and what it took."""

    committed: Committed
    value: Value
    attempts: int
    seconds: float


def committed(
    spark: SparkSession,
    address: Address,
    operation: str,
    attempt: Callable[[Job, Snapshot], tuple[Outcome, Value]],
    *,
    attempts: Attempts | None = None,
    progress: bool | None = None,
    message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Made[Value]:
    """Work a job out from the newest version and commit it; again from the then newest where others came first.

    Each attempt has an entry of its own in the journal. Files of attempts and tasks that did not come into the table
    are removed, unless the store does not say what became of the commit: then a cleanup looks.
    """
    began = time.perf_counter()
    newest = address.newest()

    def once(snapshot: Snapshot) -> tuple[Outcome, Value]:
        with journalled(snapshot.store, f"spark {operation}") as journal:
            job = Job(spark, address.pinned(snapshot), snapshot.store, journal, progress, message, properties or {})
            try:
                outcome, value = attempt(job, snapshot)
            except NOT_COMMITTED:
                journal.close(used=())
                raise
            journal.close(used=job.used if isinstance(outcome, Committed) else ())
        return outcome, value

    done, value, count = until_committed(newest.open(), once, attempts)
    return Made(done, value, count, time.perf_counter() - began)


@contextmanager
def journalled(store: Store, operation: str) -> Iterator[JobJournal]:
    """A job's entry in the journal; what its tasks told is removed when the block raises before the commit began.

    The entries of attempts stay then, because tasks that were told to stop may be writing yet.
    """
    with JobJournal(store, operation) as journal:
        try:
            yield journal
        except BaseException:
            if claim_fate(store, journal.job, REMOVING) == REMOVING:
                journal.close(used=())
            raise


def run_tasks(
    spark: SparkSession, plan: Plan[Value], address: Address, job: str | None, *, progress: bool | None = None
) -> list[tuple[str, Result[Value]]]:
    """What the tasks of a plan bring, each with the id of the attempt that brought it: a task of Spark for each.

    Tasks work on the table's store, and tell the journal of ``job`` what they write, if there is one. On classic
    Spark and Connect; a task that fails is tried again as Spark is set.
    """
    if not plan.tasks:
        return []
    count = len(plan.tasks)
    tasks = tuple(_dumps(task) for task in plan.tasks)
    frame = spark.range(0, count, 1, count).mapInArrow(partial(_run, tasks, address, job), ANSWER)
    with watched(spark, plan.operation, address.uri, total=count, progress=progress):
        return answers_of(frame)  # type: ignore[return-value]


def _dumps(task: object) -> bytes:
    """A task as bytes, functions of the calling program among them."""
    made: bytes = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
    return made


def _run(
    tasks: Sequence[bytes], address: Address, job: str | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[object]:
    prepare_worker()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            task = pickle.loads(tasks[number])
            began = time.perf_counter()
            store = address.store()
            attempt = ""
            if job is not None:
                store = telling_store(store, job)
                attempt = store.attempt.id
            value = task.run(store)
            yield as_answer((attempt, Result(task.id, value, time.perf_counter() - began)))


def as_answer(value: object) -> pa.RecordBatch:
    """What a task says, as a row of a frame of answers.

    >>> as_answer((1, 2)).schema.names
    ['answer']
    """
    return pa.RecordBatch.from_pydict({"answer": pa.array([pickle.dumps(value)], pa.binary())})


def answers_of(frame: DataFrame) -> list[object]:
    """What tasks say that make the rows of a frame of answers, in the order of tasks."""
    return [pickle.loads(bytes(row.answer)) for row in frame.collect()]
