"""Joined columns: new columns whose values come from other rows, found by the value of a key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.ops.backfill.fields import NewFields, new_fields
from lancelet.ops.join.tables import KeyTable, Rows
from lancelet.query.request import ScanRequest, bound_schema, column_named
from lancelet.table.snapshot import Snapshot

__all__ = ["JoinRows", "Joined", "join_rows"]


@dataclass(frozen=True, slots=True)
class JoinRows:
    """Rows to be found by a key; of several with one key the last counts. They are held in memory.

    >>> join_rows(pa.table({"k": [1, 2, 2], "v": ["a", "b", "c"]}), "k").find(pa.array([2, None, 3, 1])).tolist()
    [2, -1, -1, 0]
    """

    kind: pa.DataType
    keys: KeyTable
    values: pa.Table

    def find(self, keys: pa.Array) -> Rows:
        """For each key the row that has it; -1 where none does, and where the key is null."""
        found: Rows = np.full(len(keys), -1, np.int64)
        asked, rows = self.keys.match([keys])
        np.maximum.at(found, asked, rows)
        return found

    def check_key(self, name: str, kind: pa.DataType) -> None:
        """InvalidInput where the keys of the other side are of another type."""
        if self.kind != kind:
            found = f"the key is {self.kind} in the rows given, and {kind} in the table"
            raise InvalidInput(found, column=name, hint="cast one of them")


def join_rows(rows: pa.Table, key: str) -> JoinRows:
    """Rows by the values of one of their columns, which is not itself among the values.

    >>> join_rows(pa.table({"k": [1]}), "q")
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: the rows given have no column 'q' to join on [column=q]; there are ['k']
    """
    if key not in rows.column_names:
        found = f"the rows given have no column {key!r} to join on"
        raise InvalidInput(found, column=key, hint=f"there are {rows.column_names}")
    values = rows.drop_columns([key])
    if not values.num_columns:
        raise InvalidInput("the rows given have no column besides the one to join on", column=key)
    column = _whole(rows[key])
    return JoinRows(column.type, KeyTable([column]), values)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


@dataclass(frozen=True, slots=True)
class Joined:
    """The other columns of rows that have a row's key; null where none has it."""

    rows: JoinRows
    on: str

    @property
    def serial(self) -> bool:
        """Anybody may look rows up."""
        return False

    def key(self) -> str:
        """The column: what was made of these rows is of use to this process alone, which has no others."""
        return f"joined on {self.on}"

    def fields(self, snapshot: Snapshot) -> NewFields:
        """The columns as they are in the rows given."""
        schema: pa.Schema = self.rows.values.schema
        taken = next((name for name in schema.names if snapshot.schema.find(name) is not None), None)
        if taken is not None:
            hint = "leave it out of the rows given, or rename it"
            raise InvalidInput(f"there is a column {taken!r} on both sides", column=taken, hint=hint)
        return new_fields(snapshot, schema)

    def request(self, snapshot: Snapshot) -> ScanRequest:
        """The key."""
        column = column_named(self.on, bound_schema(snapshot.schema))
        self.rows.check_key(self.on, column.type)
        return ScanRequest(columns=((self.on, column),), batch_size=2**16)

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The values for a batch of keys."""
        found = self.rows.find(batch.column(0))
        taken = self.rows.values.take(pa.array(found, mask=found < 0))
        return pa.record_batch([_whole(column) for column in taken.columns], names=taken.column_names)
