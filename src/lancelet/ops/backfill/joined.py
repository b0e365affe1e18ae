"""Joined columns: new columns whose values come from other rows, found by the value of a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput, LanceletError, Storage
from lancelet.ops.backfill.fields import NewFields, new_fields
from lancelet.ops.join.spill import SpillFolder
from lancelet.ops.join.tables import KeyTable, Rows
from lancelet.query.request import ScanRequest, bound_schema, column_named
from lancelet.table.snapshot import Snapshot

__all__ = ["JoinRows", "Joined", "join_rows"]


@dataclass(frozen=True, slots=True)
class JoinRows:
    """Rows to be found by a key; of several with one key the last counts. Only the keys have to be in memory.

    >>> rows = join_rows(pa.table({"k": [1, 2, 2], "v": ["a", "b", "c"]}).to_reader(), "k", most=2**20)
    >>> found = rows.find(pa.array([2, None, 3, 1]))
    >>> found.tolist(), rows.take(found)["v"].to_pylist()
    ([2, -1, -1, 0], ['c', None, None, 'a'])
    """

    kind: pa.DataType
    keys: KeyTable
    schema: pa.Schema
    #: The other columns, and the number of the first row of each batch; behind them that of all rows.
    values: tuple[pa.RecordBatch, ...]
    starts: Rows
    #: Where the values are if they are not in memory; it goes with the last that needs it.
    folder: SpillFolder | None = None

    def find(self, keys: pa.Array) -> Rows:
        """For each key the row that has it; -1 where none does, and where the key is null."""
        found: Rows = np.full(len(keys), -1, np.int64)
        asked, rows = self.keys.match([keys])
        np.maximum.at(found, asked, rows)
        return found

    def take(self, rows: Rows) -> pa.RecordBatch:
        """The values of rows by their numbers; nulls for -1."""
        wanted = np.unique(rows[rows >= 0])
        cuts = np.searchsorted(wanted, self.starts)
        pieces = [
            batch.take(pa.array(wanted[first:last] - start))
            for batch, start, first, last in zip(self.values, self.starts[:-1], cuts[:-1], cuts[1:], strict=True)
            if last > first
        ]
        places = pa.array(np.searchsorted(wanted, rows), mask=rows < 0)
        taken = pa.Table.from_batches(pieces, self.schema).combine_chunks().take(places)
        return pa.record_batch([_whole(column) for column in taken.columns], names=taken.column_names)

    def check_key(self, name: str, kind: pa.DataType) -> None:
        """InvalidInput where the keys of the other side are of another type."""
        if self.kind != kind:
            found = f"the key is {self.kind} in the rows given, and {kind} in the table"
            raise InvalidInput(found, column=name, hint="cast one of them")


def join_rows(reader: pa.RecordBatchReader, key: str, *, most: int) -> JoinRows:
    """Rows by the values of one of their columns, which is not itself among the values; beyond ``most`` bytes on disk.

    >>> join_rows(pa.table({"k": [1]}).to_reader(), "q", most=0)
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: the rows given have no column 'q' to join on [column=q]; there are ['k']
    """
    if key not in reader.schema.names:
        found = f"the rows given have no column {key!r} to join on"
        raise InvalidInput(found, column=key, hint=f"there are {reader.schema.names}")
    others = [name for name in reader.schema.names if name != key]
    if not others:
        raise InvalidInput("the rows given have no column besides the one to join on", column=key)
    schema = pa.schema([reader.schema.field(name) for name in others])
    keys: list[pa.Array] = []

    def values() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            keys.append(batch.column(key))
            yield batch.select(others)

    held, folder = _held(values(), schema, most)
    sizes = np.array([0, *(batch.num_rows for batch in held)], np.int64)
    column = pa.concat_arrays(keys) if keys else pa.array([], reader.schema.field(key).type)
    return JoinRows(column.type, KeyTable([column]), schema, held, np.cumsum(sizes), folder)


def _held(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, most: int
) -> tuple[tuple[pa.RecordBatch, ...], SpillFolder | None]:
    """Batches in memory; all of them as views of a file where they are too large."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > most:
            return _mapped(chain(held, batches), schema)
    return tuple(held), None


def _mapped(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> tuple[tuple[pa.RecordBatch, ...], SpillFolder]:
    folder = SpillFolder()
    path = str(folder.path / "joined")
    try:
        # A stream: its dictionaries may change from batch to batch.
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(pa.record_batch(batch.columns, schema=schema))
        return tuple(pa.ipc.open_stream(pa.memory_map(path))), folder
    except OSError as error:
        folder.close()
        if isinstance(error, LanceletError):
            raise
        hint = "make room there, or name another folder by TMPDIR"
        raise Storage(f"rows cannot be put aside: {error}", uri=path, hint=hint) from error
    except BaseException:
        folder.close()
        raise


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
        schema = self.rows.schema
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
        return self.rows.take(self.rows.find(batch.column(0)))
