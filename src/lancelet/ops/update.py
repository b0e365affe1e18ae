"""Updating rows: those for which a condition is true are written again with other values in some columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr import Column, Expr, parse_value
from lancelet.format.arrow import field_to_arrow, schema_to_arrow
from lancelet.format.fields import Field
from lancelet.format.fragments import Fragment
from lancelet.format.manifest import data_version
from lancelet.format.versions import FileVersion
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.blob_carrier import BlobCarrier
from lancelet.ops.blob_input import blob_values
from lancelet.ops.committing import CommitOptions
from lancelet.ops.data_files import FragmentWriter, Limits, check_version
from lancelet.ops.delete import merged, plan_delete, run_delete
from lancelet.ops.deletion import bound_filter
from lancelet.ops.destinations import base_uris
from lancelet.ops.executor import run_plan
from lancelet.ops.fitting import conformed
from lancelet.ops.job import Cost, Plan, gather
from lancelet.ops.moving import MoveResult, commit_move, field_ids, no_rows, with_row_ids
from lancelet.ops.working import TASK_BYTES, AtVersion, bytes_of, grouped, selected
from lancelet.query.facts import facts_of
from lancelet.query.request import ROW_ADDRESS, ROW_ID, Filter, ScanRequest, bound_schema
from lancelet.query.scan import plan_scan, tables_of
from lancelet.rows.addresses import UInt64s, as_uint64s
from lancelet.storage.store import Store
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["UpdateTask", "Updated", "bound_values", "commit_update", "plan_update", "update"]


@dataclass(frozen=True, slots=True)
class UpdateTask:
    """Write the rows of some fragments again for which a condition is true, and take the old ones out."""

    id: str
    cost: Cost
    at: AtVersion
    fragments: tuple[Fragment, ...]
    #: None for all rows.
    condition: Expr | None
    values: tuple[tuple[str, Expr], ...]
    version: FileVersion
    limits: Limits

    def run(self, store: Store) -> MoveResult:
        """Write the new fragments and the deletion files; nothing is left of them when that fails."""
        snapshot = self.at.open(store)
        places = Places.of(snapshot)
        schema, bases = snapshot.schema, base_uris(snapshot.manifest.base_paths)
        addresses, ids = [no_rows()], [no_rows()]
        with FragmentWriter(store, schema, self.version, self.limits, bases=bases) as writer:
            rewriting = _Rewriting(snapshot, places, self)
            for rows, moved, known in rewriting.tables():
                addresses.append(moved)
                ids.append(known)
                for batch in rewriting.batches(rows, moved):
                    writer.write(batch)
            made = writer.finish()
            removed = run_delete(plan_delete(snapshot, np.concatenate(addresses)), places)
        stable = facts_of(snapshot.manifest).stable_row_ids
        return MoveResult(removed, with_row_ids(made, np.concatenate(ids)) if stable else tuple(made))


class _Rewriting:
    """The rows to write again, with their new values."""

    def __init__(self, snapshot: Snapshot, places: Places, task: UpdateTask) -> None:
        self._places = places
        self._schema = snapshot.schema
        self._stable = facts_of(snapshot.manifest).stable_row_ids
        self._carrier = BlobCarrier(snapshot, places)
        self._arrow = schema_to_arrow(snapshot.schema)
        bound, changed = bound_schema(snapshot.schema), dict(task.values)
        self._fields = {item.name: item for item in snapshot.schema.fields if item.name in changed}
        system = (ROW_ADDRESS, ROW_ID) if self._stable else (ROW_ADDRESS,)
        columns = [(name, changed.get(name) or Column((name,), bound.field(name).type)) for name in self._arrow.names]
        columns += [(name, Column((name,), pa.uint64())) for name in system]
        ids = tuple(item.id for item in task.fragments)
        self._plan = plan_scan(
            snapshot, ScanRequest(columns=tuple(columns), filter=task.condition, fragments=ids, batch_size=2**16)
        )

    def tables(self) -> Iterator[tuple[pa.Table, UInt64s, UInt64s]]:
        """Windows of rows, where they came from, and their stable ids if they have any."""
        for table in tables_of(self._plan, self._places):
            moved = _words(table, ROW_ADDRESS)
            known = _words(table, ROW_ID) if self._stable else no_rows()
            yield table.select(self._arrow.names), moved, known

    def batches(self, rows: pa.Table, moved: UInt64s) -> Iterator[pa.RecordBatch]:
        """The rows as a writer takes them."""
        for place, name in enumerate(rows.column_names):
            if name in self._fields:
                rows = rows.set_column(place, name, new_values(rows.column(name), self._fields[name]))
        yield from conformed(self._carrier.batches(rows, moved), self._arrow)


def _words(table: pa.Table, name: str) -> UInt64s:
    return as_uint64s(table.column(name).to_numpy())


def new_values(values: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """Values as a column's type; InvalidInput where one does not fit, or is null and may not be.

    >>> new_values(pa.chunked_array([["1", "2"]]), Field("x", "int8")).type
    DataType(int8)
    """
    if values.null_count and not field.nullable:
        raise InvalidInput(f"column {field.name!r} would get nulls, which it may not have", column=field.name)
    if field.extension_name is not None:
        return _extended(values, field)
    kind = field_to_arrow(field).type
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        hint = f"the column is of type {kind}"
        raise InvalidInput(f"a new value does not fit: {error}", column=field.name, hint=hint) from None


def _extended(values: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """Values of an extension's column: bytes for blobs, what the writer makes of them for others."""
    if field.logical_type == "struct" and not pa.types.is_struct(values.type):
        return pa.chunked_array([blob_values(chunk.cast(pa.large_binary())) for chunk in values.chunks])
    return values


def bound_values(snapshot: Snapshot, values: Mapping[str, str | Expr]) -> tuple[tuple[str, Expr], ...]:
    """New values by column, over the columns of a table. InvalidInput where there is no such column."""
    if not values:
        raise InvalidInput("no column is given a new value", hint="name a column and an expression for it")
    schema = bound_schema(snapshot.schema)
    known = {item.name for item in snapshot.schema.fields}
    for name in values:
        if name not in known:
            nested = snapshot.schema.find(name) is not None
            found = f"{name!r} is part of a column" if nested else f"there is no column {name!r}"
            hint = "set the whole struct" if nested else f"there are: {', '.join(sorted(known))}"
            raise InvalidInput(f"{found}, which cannot be set", column=name, hint=hint)
    return tuple((name, parse_value(what, schema) if isinstance(what, str) else what) for name, what in values.items())


def plan_update(
    snapshot: Snapshot,
    values: Mapping[str, str | Expr],
    where: Filter | None = None,
    *,
    data_storage_version: str | FileVersion | None = None,
    limits: Limits | None = None,
    fragments: Sequence[int] | None = None,
    task_bytes: int = TASK_BYTES,
) -> Plan[MoveResult]:
    """Tasks that together give columns new values where a condition is true; expressions see the values before."""
    version = data_version(snapshot.manifest)
    if data_storage_version is not None:
        version = FileVersion.parse(data_storage_version)
    check_version(version, snapshot.schema)
    bound = bound_values(snapshot, values)
    condition = None if where is None else bound_filter(snapshot, where)
    tasks = tuple(
        UpdateTask(
            f"update {number}",
            Cost(bytes_read=sum(map(bytes_of, group)), bytes_written=sum(map(bytes_of, group)), requests=len(group)),
            AtVersion.of(snapshot),
            group,
            condition,
            bound,
            version,
            limits or Limits(),
        )
        for number, group in enumerate(grouped(selected(snapshot, fragments), task_bytes))
    )
    return Plan("update", snapshot.version, tasks)


def commit_update(
    snapshot: Snapshot,
    columns: Sequence[str],
    results: Sequence[MoveResult],
    *,
    options: CommitOptions | None = None,
) -> Outcome:
    """Make what the tasks wrote a version; ``columns`` are those that got new values."""
    whole = MoveResult(
        merged([result.removed for result in results]),
        tuple(item for result in results for item in result.new_fragments),
    )
    return commit_move(snapshot, whole, field_ids(snapshot.schema, columns), options=options)


@dataclass(frozen=True, slots=True)
class Updated:
    """What became of an update."""

    committed: Committed
    num_updated_rows: int
    num_attempts: int = 1


def update(
    snapshot: Snapshot,
    values: Mapping[str, str | Expr],
    where: Filter | None = None,
    *,
    data_storage_version: str | FileVersion | None = None,
    limits: Limits | None = None,
    attempts: Attempts | None = None,
    options: CommitOptions | None = None,
) -> Updated:
    """Give columns new values where a condition is true, worked out anew where others changed the same rows first.

    >>> from lancelet.ops.write import create
    >>> from lancelet.query.scan import scan
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://updated")
    >>> made = create(store, pa.table({"x": [1, 2, 3]}))
    >>> update(open_snapshot(store), {"x": "x * 10"}, "x > 1").num_updated_rows
    2
    >>> scan(open_snapshot(store)).read_all()["x"].to_pylist()
    [1, 20, 30]
    """

    def attempt(current: Snapshot) -> tuple[Outcome, int]:
        plan = plan_update(current, values, where, data_storage_version=data_storage_version, limits=limits)
        done = gather(plan, run_plan(plan, current.store, options=current.options, progress=False))
        results = [result.value for result in done.results]
        outcome = commit_update(current, list(values), results, options=options)
        return outcome, sum(result.removed.num_rows for result in results)

    committed, count, made = until_committed(snapshot, attempt, attempts)
    return Updated(committed, count, made)
