"""Columns with values put in: new data files beside those of each fragment, aligned with its rows.

Rows come in the order of a scan, one for each that is not deleted. A file has a value for every physical row: deleted
rows take that of the live row after them, or before them at the end, so that columns without nulls stay so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.arrow import field_from_arrow, field_to_arrow, schema_from_arrow
from lancelet.format.blobs import file_schema, is_blob_v2
from lancelet.format.fields import Schema
from lancelet.format.fragments import TOMBSTONE, DataFile, Fragment
from lancelet.format.manifest import data_version
from lancelet.format.transaction import COMMIT_MESSAGE, Transaction
from lancelet.format.versions import FileVersion
from lancelet.ops.data_files import NewFile, Rows, batches_of, check_version, discard
from lancelet.query.scan import scan
from lancelet.query.stored import open_fragment
from lancelet.rows.deletions import DeletionVector
from lancelet.table.commit import commit
from lancelet.table.outcome import Conflict, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = [
    "ColumnsPlan",
    "add_columns",
    "add_null_columns",
    "cast_column",
    "next_field_id",
    "plan_add",
    "plan_cast",
    "run_add",
]

#: Live rows that are aligned and written at a time.
_WINDOW = 2**16


@dataclass(frozen=True, slots=True)
class ColumnsPlan:
    """The fields to write, and the table's schema with them. Pure."""

    schema: Schema
    stored: Schema
    version: FileVersion
    fragments: Sequence[Fragment]


def next_field_id(snapshot: Snapshot) -> int:
    """The id for the next new field: above those of the schema, of columns in files, and of any that are reserved."""
    manifest = snapshot.manifest
    held = (number for item in manifest.fragments for file in item.files for number in file.fields)
    highest = max((item.id for item in manifest.schema.walk()), default=-1)
    return max(highest, max(held, default=-1), manifest.max_allocated_field_id or -1) + 1


def plan_add(snapshot: Snapshot, schema: pa.Schema) -> ColumnsPlan:
    """New columns behind those there are; InvalidInput where a name is taken."""
    new = schema_from_arrow(schema).with_ids(next_field_id(snapshot))
    known = {item.name for item in snapshot.schema.fields}
    for item in new.fields:
        if item.name in known:
            raise InvalidInput(f"there is a column {item.name!r} already", column=item.name)
    version = data_version(snapshot.manifest)
    check_version(version, new)
    whole = replace(snapshot.schema, fields=(*snapshot.schema.fields, *new.fields))
    return ColumnsPlan(whole, Schema(new.fields), version, snapshot.manifest.fragments)


def plan_cast(snapshot: Snapshot, column: str, kind: pa.DataType) -> ColumnsPlan:
    """A top-level column as another type: it keeps its name and place, and gets a new id."""
    fields = snapshot.schema.fields
    old = next((item for item in fields if item.name == column), None)
    if old is None or is_blob_v2(old):
        raise InvalidInput(f"there is no column {column!r} that can be cast", column=column)
    made = field_from_arrow(pa.field(column, kind, old.nullable))
    made = replace(made, metadata={**old.metadata, **made.metadata})
    made = Schema((made,)).with_ids(next_field_id(snapshot)).fields[0]
    version = data_version(snapshot.manifest)
    check_version(version, Schema((made,)))
    whole = replace(snapshot.schema, fields=tuple(made if item is old else item for item in fields))
    return ColumnsPlan(whole, Schema((made,)), version, snapshot.manifest.fragments)


def run_add(plan: ColumnsPlan, snapshot: Snapshot, rows: Rows) -> tuple[Fragment, ...]:
    """Write a file for each fragment; returns the fragments with them. When that fails nothing is left behind."""
    feed, places = _Feed(rows), Places.of(snapshot)
    written: list[DataFile] = []
    result = []
    try:
        for item in plan.fragments:
            stored = open_fragment(places, item)
            item = replace(item, physical_rows=stored.physical_rows)
            if len(stored.deleted) < stored.physical_rows:
                written.append(_file(plan, snapshot, feed, stored.deleted, stored.physical_rows))
                item = replace(item, files=(*item.files, written[-1]))
            result.append(item)
        feed.check_end()
    except BaseException:
        discard(snapshot.store, written)
        raise
    return tuple(result)


def _file(plan: ColumnsPlan, snapshot: Snapshot, feed: _Feed, deleted: DeletionVector, rows: int) -> DataFile:
    file = NewFile(snapshot.store, plan.stored, plan.version)
    try:
        for batch in _aligned(feed, deleted, rows):
            file.write(batch)
        return file.finish()
    except BaseException:
        file.abort()
        raise


def _aligned(feed: _Feed, deleted: DeletionVector, rows: int) -> Iterator[pa.RecordBatch]:
    """The next live rows of a feed, with rows in the place of the deleted ones."""
    live = rows - len(deleted)
    for first in range(0, live, _WINDOW):
        last = min(first + _WINDOW, live)
        begin = int(deleted.to_physical([first])[0]) if first else 0
        end = int(deleted.to_physical([last])[0]) if last < live else rows
        table = feed.take(last - first)
        if end - begin > last - first:
            logical = deleted.to_logical(np.arange(begin, end, dtype=np.uint64))
            table = table.take(pa.array(np.clip(logical - first, 0, last - first - 1)))
        yield from table.to_batches()


class _Feed:
    """Rows handed out by number, whatever the batches that they come in."""

    def __init__(self, rows: Rows) -> None:
        self._schema = rows.schema
        self._batches = batches_of(rows, _WINDOW)
        self._rest: pa.RecordBatch | None = None
        self._taken = 0

    def take(self, count: int) -> pa.Table:
        """The next rows; InvalidInput where there are not so many."""
        pieces, missing = [], count
        while missing:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                found = f"values are given for {self._taken + count - missing} rows"
                raise InvalidInput(f"{found}, expected one for each row of the table")
            pieces.append(batch.slice(0, missing))
            self._rest = batch.slice(missing) if batch.num_rows > missing else None
            missing -= pieces[-1].num_rows
        self._taken += count
        return pa.Table.from_batches(pieces, self._schema)

    def check_end(self) -> None:
        """InvalidInput where rows are left."""
        if self._rest is not None or next(self._batches, None) is not None:
            raise InvalidInput(f"values are given for more than the {self._taken} rows of the table")


def _commit(
    snapshot: Snapshot, plan: ColumnsPlan, fragments: Sequence[Fragment], message: str | None, *, nulls: bool
) -> Outcome:
    kept = {item.id for item in plan.schema.walk()}
    fragments = tuple(
        replace(item, files=tuple(file for file in item.files if any(n in kept or n < TOMBSTONE for n in file.fields)))
        for item in fragments
    )
    properties = {} if message is None else {COMMIT_MESSAGE: message}
    operation = op.Merge(fragments, plan.schema, preserves_nullability=nulls)
    outcome = commit(snapshot, Transaction(snapshot.version, operation, properties=properties))
    if isinstance(outcome, Conflict):
        # Nobody will commit the new files any more.
        known = {file.path for item in plan.fragments for file in item.files}
        discard(snapshot.store, [file for item in fragments for file in item.files if file.path not in known])
    return outcome


def add_columns(snapshot: Snapshot, rows: Rows, *, message: str | None = None) -> Outcome:
    """Put columns in, with a row for each row of the table, in the order of a scan.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://widened")
    >>> made = create(store, pa.table({"x": [1, 2]}))
    >>> after = add_columns(open_snapshot(store), pa.table({"y": ["a", "b"]}))
    >>> scan(open_snapshot(store)).read_all().to_pydict()
    {'x': [1, 2], 'y': ['a', 'b']}
    """
    plan = plan_add(snapshot, rows.schema)
    fragments = run_add(plan, snapshot, rows)
    return _commit(snapshot, plan, fragments, message, nulls=_nullable(plan))


def add_null_columns(snapshot: Snapshot, schema: pa.Schema, *, message: str | None = None) -> Outcome:
    """Put columns in that are null in every row: nothing but the manifest changes."""
    plan = plan_add(snapshot, schema)
    for item in plan.stored.fields:
        if not item.nullable:
            raise InvalidInput(f"column {item.name!r} may not be null, but has no values", column=item.name)
    return _commit(snapshot, plan, tuple(plan.fragments), message, nulls=True)


def cast_column(snapshot: Snapshot, column: str, kind: pa.DataType, *, message: str | None = None) -> Outcome:
    """Store a column anew as another type; InvalidInput where a value of a live row does not fit."""
    plan = plan_cast(snapshot, column, kind)
    target = field_to_arrow(file_schema(plan.stored).fields[0])
    source = scan(snapshot, [column])
    schema = pa.schema([target])
    rows = pa.RecordBatchReader.from_batches(schema, (_cast(batch, schema, column) for batch in source))
    fragments = run_add(plan, snapshot, rows)
    # Rows that others write as the old type have no values in the new column.
    return _commit(snapshot, plan, fragments, message, nulls=False)


def _cast(batch: pa.RecordBatch, schema: pa.Schema, column: str) -> pa.RecordBatch:
    try:
        return pa.record_batch([batch.column(0).cast(schema.field(0).type)], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"the column cannot be cast to {schema.field(0).type}: {error}", column=column) from None


def _nullable(plan: ColumnsPlan) -> bool:
    return all(item.nullable for item in plan.stored.fields)
