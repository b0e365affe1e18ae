"""Deleting rows by a condition: tasks that look for them and write deletion files, one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.expr import Call, Column, Expr, Literal, parse_filter
from lancelet.format.fragments import Fragment
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import CommitOptions
from lancelet.ops.delete import DeleteResult, commit_delete, merged, plan_delete, run_delete
from lancelet.ops.executor import run_plan
from lancelet.ops.job import Cost, Plan, Result, gather
from lancelet.ops.working import AtVersion, bytes_of, grouped, selected
from lancelet.query.request import ROW_ADDRESS, Filter, ScanRequest, bound_schema
from lancelet.query.scan import plan_scan, tables_of
from lancelet.query.stored import open_fragment
from lancelet.rows.addresses import UInt64s, as_uint64s
from lancelet.storage.store import Store
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["DeleteTask", "Deleted", "bound_filter", "commit_deletion", "delete_where", "plan_deletion", "truncate"]

_ADDRESS = Column((ROW_ADDRESS,), pa.uint64())


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """Look for the rows of some fragments for which a condition is true, and write what is deleted."""

    id: str
    cost: Cost
    at: AtVersion
    fragments: tuple[Fragment, ...]
    condition: Expr

    def run(self, store: Store) -> DeleteResult:
        """Write the deletion files."""
        snapshot = self.at.open(store)
        places = Places.of(snapshot)
        if _is_true(self.condition):
            live = sum(open_fragment(places, item).live_rows for item in self.fragments)
            return DeleteResult(gone=tuple(item.id for item in self.fragments), unlisted_rows=live)
        request = ScanRequest(
            columns=((ROW_ADDRESS, _ADDRESS),),
            filter=self.condition,
            fragments=tuple(item.id for item in self.fragments),
        )
        found: list[UInt64s] = []
        for table in tables_of(plan_scan(snapshot, request), places):
            found.extend(as_uint64s(np.asarray(chunk)) for chunk in table.column(0).chunks)
        if not found:
            return DeleteResult()
        return run_delete(plan_delete(snapshot, np.concatenate(found)), places)


def _is_true(condition: Expr) -> bool:
    return isinstance(condition, Literal) and condition.value.as_py() is True


def bound_filter(snapshot: Snapshot, condition: Filter) -> Expr:
    """A condition over the columns of a table, whatever it is stated as.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://bound"), pa.table({"x": [1]}))
    >>> bound_filter(open_snapshot(open_store("memory://bound")), "x > 1").function
    '>'
    """
    if isinstance(condition, Column | Literal | Call):
        return condition
    return parse_filter(condition, bound_schema(snapshot.schema))


def plan_deletion(
    snapshot: Snapshot, condition: Filter, *, fragments: Sequence[int] | None = None
) -> Plan[DeleteResult]:
    """Tasks that together delete the rows for which a condition is true; what is false or null stays."""
    bound = bound_filter(snapshot, condition)
    at = AtVersion.of(snapshot)
    tasks = tuple(
        DeleteTask(
            f"delete {number}", Cost(bytes_read=sum(map(bytes_of, group)), requests=len(group)), at, group, bound
        )
        for number, group in enumerate(grouped(selected(snapshot, fragments)))
    )
    return Plan("delete", snapshot.version, tasks)


def commit_deletion(
    snapshot: Snapshot,
    results: Sequence[DeleteResult],
    *,
    predicate: str = "",
    options: CommitOptions | None = None,
) -> Outcome:
    """Make what the tasks deleted a version; also where that is nothing."""
    return commit_delete(snapshot, merged(results), predicate=predicate, options=options)


@dataclass(frozen=True, slots=True)
class Deleted:
    """What became of a deletion."""

    committed: Committed
    num_deleted_rows: int
    num_attempts: int = 1


def delete_where(
    snapshot: Snapshot,
    condition: Filter,
    *,
    attempts: Attempts | None = None,
    options: CommitOptions | None = None,
) -> Deleted:
    """Delete the rows for which a condition is true, worked out anew where others changed the same rows first.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://deleted-where"), pa.table({"x": [1, 2, None]}))
    >>> delete_where(open_snapshot(open_store("memory://deleted-where")), "x > 1").num_deleted_rows
    1
    """
    text = condition if isinstance(condition, str) else str(bound_filter(snapshot, condition))

    def attempt(current: Snapshot) -> tuple[Outcome, int]:
        plan = plan_deletion(current, condition)
        results = _values(plan, run_plan(plan, current.store, options=current.options, progress=False))
        outcome = commit_deletion(current, results, predicate=text, options=options)
        return outcome, sum(result.num_rows for result in results)

    committed, count, made = until_committed(snapshot, attempt, attempts)
    return Deleted(committed, count, made)


def _values(plan: Plan[DeleteResult], results: Sequence[Result[DeleteResult]]) -> list[DeleteResult]:
    return [result.value for result in gather(plan, results).results]


def truncate(snapshot: Snapshot, *, options: CommitOptions | None = None) -> Committed:
    """Delete all rows; the columns stay.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://truncated"), pa.table({"x": [1, 2]}))
    >>> truncate(open_snapshot(open_store("memory://truncated"))).version
    2
    """
    return delete_where(snapshot, "true", options=options).committed
