"""Merging: a frame joined with a table by Spark, what becomes of each pair told by clauses, written by its tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit, monotonically_increasing_id, when

from lancelet.errors import InvalidInput
from lancelet.events import emit
from lancelet.ops.attempts import Attempts
from lancelet.ops.moving import commit_move, field_ids
from lancelet.spark.changing import ADDRESS, CLAUSE, Action, Clause, united
from lancelet.spark.conditions import Expression, as_column, equal_keys, matching_name
from lancelet.spark.handle import Handle, addressed_rows
from lancelet.spark.jobs import Job
from lancelet.spark.row_changes import ChangeFigures, Changes, carried_out, changed
from lancelet.table.outcome import Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["Merge", "MergeClause", "Side", "merge_rows"]

#: The number of a row of the source, and its columns once more under names that nobody else has.
_ROW, _COPY = "__lancelet_row", "__lancelet_source_"
#: What Spark says where the executor is lost that kept rows of the source, and how often that may happen.
_LOST, _LOSSES = ("CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", "Checkpoint block"), 3


class Side(Enum):
    """Where the rows are that a clause concerns."""

    BOTH = "matched"
    SOURCE = "not matched"
    TABLE = "not matched by source"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """What becomes of rows on one side for which a condition is true, and that no clause before concerns."""

    side: Side
    action: Action
    condition: Expression | None = None
    #: New values by column; None for those of all columns of the source that the table has.
    values: Mapping[str, Expression] | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge: which rows of a source belong to which of the table, and what becomes of them."""

    source: DataFrame
    condition: Expression
    clauses: tuple[MergeClause, ...]


def merge_rows(
    handle: Handle,
    merge: Merge,
    *,
    attempts: Attempts | None = None,
    message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> ChangeFigures:
    """Carry a merge out. The source is evaluated once, however often others commit first.

    Once more where executors are lost that kept its rows: then nothing of what was worked out before is used.
    """
    _check_clauses(merge.clauses)
    names = list(merge.source.columns)
    source = _kept(merge)

    def attempt(job: Job, snapshot: Snapshot) -> tuple[Outcome, Changes]:
        nonlocal source
        clauses = [_Resolved.of(clause, snapshot, names, handle.name) for clause in merge.clauses]
        plan = [Clause(item.clause.action, tuple(item.values)) for item in clauses]
        keys = equal_keys(merge.condition, handle.name)
        for left in reversed(range(_LOSSES + 1)):
            frame = _frame(handle, snapshot, merge, source, clauses)
            try:
                changes = carried_out(job, snapshot, "merge", frame, plan, spread=col(_ROW), keys=keys)
                break
            except Exception as error:
                if not left or not any(name in str(error) for name in _LOST):
                    raise
                emit("spark.source_lost", uri=snapshot.uri, error=str(error))
                source = _kept(merge)
        job.journal.committing()
        fields = field_ids(snapshot.schema, [item.name for item in snapshot.schema.fields])
        inserted = united([part.inserted for part in changes.parts if part.inserted is not None])
        return commit_move(snapshot, changes.moved, fields, inserted=inserted, options=job.options), changes

    return changed(handle, "merge", attempt, attempts, message, properties)


def _check_clauses(clauses: Sequence[MergeClause]) -> None:
    if not clauses:
        hint = "say what becomes of matched rows, or of those that are not"
        raise InvalidInput("the merge is not to change anything", hint=hint)
    for number, clause in enumerate(clauses):
        if clause.condition is None and any(other.side is clause.side for other in clauses[number + 1 :]):
            found = f"a clause for rows that are {clause.side.value} stands behind one without a condition"
            raise InvalidInput(f"{found}, which leaves it none", hint="only the last of its kind may have no condition")


def _kept(merge: Merge) -> DataFrame:
    """The source evaluated, each row with a number; kept by the executors for as long as the frame is."""
    source = merge.source
    said = [merge.condition, *(text for clause in merge.clauses for text in _texts(clause))]
    if "source" not in source.columns and any(re.search(r"\bsource\s*\.", str(text)) for text in said):
        source = source.alias("source")
    kept = source.withColumn(_ROW, monotonically_increasing_id()).localCheckpoint()
    copies = [col(_quoted(name)).alias(f"{_COPY}{place}") for place, name in enumerate(merge.source.columns)]
    return kept.select("*", *copies) if any(clause.values is None for clause in merge.clauses) else kept


def _texts(clause: MergeClause) -> list[Expression]:
    values = list((clause.values or {}).values())
    return values if clause.condition is None else [clause.condition, *values]


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A clause over the columns of a version."""

    clause: MergeClause
    values: Mapping[str, Column]

    @staticmethod
    def of(clause: MergeClause, snapshot: Snapshot, source: Sequence[str], alias: str) -> _Resolved:
        """The clause with a value for each column that it sets."""
        names = [item.name for item in snapshot.schema.fields]
        if clause.action is Action.DELETE:
            return _Resolved(clause, {})
        if clause.values is not None:
            made = {matching_name(name, names, alias): as_column(value) for name, value in clause.values.items()}
            return _Resolved(clause, _in_order(made, names))
        made = {}
        for place, name in enumerate(source):
            alike = [name] if name in names else [item for item in names if item.lower() == name.lower()]
            if len(alike) == 1:
                made[alike[0]] = col(f"{_COPY}{place}")
        if not made:
            hint = f"the table has: {', '.join(names)}"
            raise InvalidInput("the source has none of the table's columns", uri=snapshot.uri, hint=hint)
        return _Resolved(clause, _in_order(made, names))

    def holds(self) -> Column:
        """Whether the clause concerns a row of the join."""
        there, given = col(ADDRESS).isNotNull(), col(_ROW).isNotNull()
        side = {Side.BOTH: there & given, Side.SOURCE: ~there & given, Side.TABLE: there & ~given}[self.clause.side]
        return side if self.clause.condition is None else side & as_column(self.clause.condition)


def _in_order(values: Mapping[str, Column], names: Sequence[str]) -> dict[str, Column]:
    return {name: values[name] for name in names if name in values}


def _frame(
    handle: Handle, snapshot: Snapshot, merge: Merge, source: DataFrame, clauses: Sequence[_Resolved]
) -> DataFrame:
    """Values, the address, the clause and the number of the row of the source, for each change."""
    said = [text for item in clauses for text in _texts(item.clause)]
    target = addressed_rows(handle, snapshot, [merge.condition, *said])
    chosen: Column | None = None
    for number, item in enumerate(clauses):
        chosen = when(item.holds(), number) if chosen is None else chosen.when(item.holds(), number)
    joined = _joined(target, source, as_column(merge.condition), {item.clause.side for item in clauses})
    marked = joined.withColumn(CLAUSE, chosen if chosen is not None else lit(None)).where(col(CLAUSE).isNotNull())
    names = dict.fromkeys(name for item in clauses for name in item.values)
    values = [_value(name, clauses).alias(f"v{place}") for place, name in enumerate(names)]
    return marked.select(*values, ADDRESS, col(CLAUSE).cast("int").alias(CLAUSE), _ROW)


def _joined(target: DataFrame, source: DataFrame, condition: Column, sides: set[Side]) -> DataFrame:
    if sides == {Side.SOURCE}:
        # Rows of the table are not needed, so that none need be paired.
        return source.join(target, condition, "left_anti").withColumn(ADDRESS, lit(None).cast("long"))
    outer = {(True, True): "full", (True, False): "right", (False, True): "left", (False, False): "inner"}
    return target.join(source, condition, outer[Side.SOURCE in sides, Side.TABLE in sides])


def _value(name: str, clauses: Sequence[_Resolved]) -> Column:
    """The value of a column in rows of all clauses."""
    found = [(number, item.values[name]) for number, item in enumerate(clauses) if name in item.values]
    if all(item.clause.values is None and name in item.values for item in clauses):
        # All of them take it as the source has it.
        return found[0][1]
    chosen: Column | None = None
    for number, value in found:
        holds = col(CLAUSE) == number
        chosen = when(holds, value) if chosen is None else chosen.when(holds, value)
    return chosen if chosen is not None else lit(None)
