"""Deleting and updating rows by conditions in Spark's SQL: found and worked out by Spark, written by its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, lit, shiftright

from lancelet.errors import InvalidInput, Unsupported
from lancelet.ops.attempts import Attempts
from lancelet.ops.delete import commit_delete, merged
from lancelet.ops.deletion import commit_deletion, plan_deletion
from lancelet.ops.moving import MoveResult, commit_move, field_ids
from lancelet.spark.changing import ADDRESS, CLAUSE, Action, Changed, Changing, Clause, change_rows, plan_changing
from lancelet.spark.conditions import Expression, as_column, matching_name
from lancelet.spark.handle import Handle, addressed_rows
from lancelet.spark.jobs import ANSWER, Job, Made, as_answer, committed
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.table.outcome import Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["PATIENCE", "ChangeFigures", "Changes", "carried_out", "changed", "delete_rows", "figures_of", "update_rows"]

#: Jobs take long, and are worth more than a few seconds of patience.
PATIENCE = Attempts(retries=10, timeout=3600.0)


@dataclass(frozen=True, slots=True)
class ChangeFigures:
    """What a change brought: the version that it made, and how much is in it."""

    version: int
    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int
    #: New data files, and their bytes.
    num_files: int
    num_bytes: int
    num_attempts: int
    #: From the call to the commit, and what all tasks of the last attempt took together.
    seconds: float
    task_seconds: float


@dataclass(frozen=True, slots=True)
class Changes:
    """What the tasks of a change have written, together."""

    moved: MoveResult
    rows: Mapping[Action, int]
    parts: tuple[Changed, ...] = ()


def carried_out(
    job: Job,
    snapshot: Snapshot,
    operation: str,
    frame: DataFrame,
    clauses: Sequence[Clause],
    *,
    spread: Column | None = None,
    keys: Sequence[str] = (),
) -> Changes:
    """Let Spark write the changes that the rows of a frame stand for.

    Its columns are values for those that the clauses name, in their order, then the address and the clause. Changes
    of a fragment go to one task; those without an address are spread by ``spread``.
    """
    changing = plan_changing(job.address, snapshot, job.journal.job, clauses, spark_arrow(frame.schema), keys=keys)
    fragment = shiftright(col(ADDRESS), 32)
    parted = frame.repartition(fragment if spread is None else coalesce(fragment, spread))
    chosen = parted.select(*frame.columns[: len(changing.fit.target)])
    ordered = chosen.sortWithinPartitions(col(ADDRESS).asc_nulls_last())
    answers = job.collect(ordered.mapInArrow(partial(_change, changing), ANSWER), operation)
    parts = tuple(answer for answer in answers if isinstance(answer, Changed))
    job.used.update(part.attempt for part in parts)
    _check(parts, snapshot)
    counts: Counter[Action] = Counter()
    for part in parts:
        for number, rows in part.rows.items():
            counts[clauses[number].action] += rows
    removed = merged([part.moved.removed for part in parts])
    return Changes(
        MoveResult(removed, tuple(item for part in parts for item in part.moved.new_fragments)), counts, parts
    )


def _change(changing: Changing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield as_answer(change_rows(changing, batches))


def _check(parts: Sequence[Changed], snapshot: Snapshot) -> None:
    for part in parts:
        if part.twice is not None:
            number, offset = part.twice >> 32, part.twice & 0xFFFFFFFF
            found = "several rows of the source are to change one row of the table"
            hint = "let the source have each key once, or make the conditions of the clauses narrower"
            raise InvalidInput(f"{found}: row {offset} of fragment {number}", uri=snapshot.uri, hint=hint)
    touched = Counter(number for part in parts for number in _touched(part))
    if any(count > 1 for count in touched.values()):
        number = next(number for number, count in touched.items() if count > 1)
        found = f"Spark handed changes of fragment {number} to several tasks"
        raise Unsupported(found, uri=snapshot.uri, fragment=number, hint="report the settings of the session")


def _touched(part: Changed) -> list[int]:
    removed = part.moved.removed
    return [*(item.id for item in removed.updated), *removed.gone]


def figures_of(made: Made[Changes]) -> ChangeFigures:
    """The figures of a change that was committed."""
    changes = made.value
    files = [file for item in changes.moved.new_fragments for file in item.files]
    rows = changes.rows
    return ChangeFigures(
        made.committed.version,
        rows.get(Action.INSERT, 0),
        rows.get(Action.UPDATE, 0),
        rows.get(Action.DELETE, 0),
        len(files),
        sum(file.file_size or 0 for file in files),
        made.attempts,
        made.seconds,
        sum(part.seconds for part in changes.parts),
    )


def delete_rows(
    handle: Handle, condition: Expression | None, *, attempts: Attempts | None = None, message: str | None = None
) -> ChangeFigures:
    """Delete the rows for which a condition is true; what is false or null stays. All rows without a condition."""

    def attempt(job: Job, snapshot: Snapshot) -> tuple[Outcome, Changes]:
        if condition is None:
            return _all_deleted(job, snapshot)
        rows = addressed_rows(handle, snapshot, [], condition=condition)
        frame = rows.where(as_column(condition)).select(ADDRESS, lit(0).alias(CLAUSE))
        changes = carried_out(job, snapshot, "delete", frame, [Clause(Action.DELETE)])
        job.journal.committing()
        return commit_delete(snapshot, changes.moved.removed, predicate=str(condition), options=job.options), changes

    return changed(handle, "delete", attempt, attempts, message)


def _all_deleted(job: Job, snapshot: Snapshot) -> tuple[Outcome, Changes]:
    """Fragments go without a look at their rows: there is nothing that tasks could do."""
    plan = plan_deletion(snapshot, "true")
    results = [task.run(snapshot.store) for task in plan.tasks]
    job.journal.committing()
    removed = merged(results)
    changes = Changes(MoveResult(removed), {Action.DELETE: removed.num_rows})
    return commit_deletion(snapshot, results, predicate="true", options=job.options), changes


def update_rows(
    handle: Handle,
    condition: Expression | None,
    values: Mapping[str, Expression],
    *,
    attempts: Attempts | None = None,
    message: str | None = None,
) -> ChangeFigures:
    """Give columns new values in the rows for which a condition is true; expressions see the values before."""
    if not values:
        raise InvalidInput("no column is given a new value", hint="name a column and an expression for it")

    def attempt(job: Job, snapshot: Snapshot) -> tuple[Outcome, Changes]:
        names = [item.name for item in snapshot.schema.fields]
        given = {matching_name(name, names, handle.name): value for name, value in values.items()}
        rows = addressed_rows(handle, snapshot, list(given.values()), condition=condition)
        if condition is not None:
            rows = rows.where(as_column(condition))
        made = [as_column(value).alias(f"v{place}") for place, value in enumerate(given.values())]
        frame = rows.select(*made, ADDRESS, lit(0).alias(CLAUSE))
        changes = carried_out(job, snapshot, "update", frame, [Clause(Action.UPDATE, tuple(given))])
        job.journal.committing()
        fields = field_ids(snapshot.schema, list(given))
        return commit_move(snapshot, changes.moved, fields, options=job.options), changes

    return changed(handle, "update", attempt, attempts, message)


def changed(
    handle: Handle,
    operation: str,
    attempt: Callable[[Job, Snapshot], tuple[Outcome, Changes]],
    attempts: Attempts | None,
    message: str | None,
    properties: Mapping[str, str] | None = None,
) -> ChangeFigures:
    """Carry a change out, and tell its figures."""
    made = committed(
        handle.spark,
        handle.address,
        operation,
        attempt,
        attempts=attempts or PATIENCE,
        progress=handle.progress,
        message=message,
        properties=properties,
    )
    return figures_of(made)
