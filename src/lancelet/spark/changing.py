"""Changing: rows that leave a table, take the place of others or are new, written by tasks before one commit.

A task gets all changes of the fragments that it gets any of, sorted by the addresses of the rows that they concern,
those of new rows last. So it writes the fragments' deletion files by itself, and sees each row that is changed twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import Enum
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.expr import Column
from lancelet.format.fields import Schema
from lancelet.format.manifest import data_version
from lancelet.format.operations import BloomKeys, KeyFilter
from lancelet.format.versions import FileVersion
from lancelet.ops.data_files import Limits, check_version
from lancelet.ops.delete import DeleteResult, plan_delete, run_delete
from lancelet.ops.journal import Attempt
from lancelet.ops.merge.plan import MergePlan
from lancelet.ops.merge.request import Matched, MergeRequest, WriteMode
from lancelet.ops.merge.rewrite_rows import RowsOut
from lancelet.ops.moving import MoveResult, no_rows
from lancelet.ops.telling import telling
from lancelet.rows.addresses import UInt64s
from lancelet.spark.address import Address, opened
from lancelet.spark.fitting import Fit, check_fit, fitted, stored_columns
from lancelet.spark.worker import prepare_worker
from lancelet.table.snapshot import Snapshot

__all__ = ["ADDRESS", "CLAUSE", "Action", "Changed", "Changing", "Clause", "change_rows", "plan_changing", "united"]

#: Columns of changes besides the values: the row that is concerned, null for new ones, and the number of the clause.
ADDRESS, CLAUSE = "__lancelet_address", "__lancelet_clause"
_MARKS = (pa.field(ADDRESS, pa.int64()), pa.field(CLAUSE, pa.int32(), False))


class Action(Enum):
    """What a clause does with a row."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Clause:
    """What becomes of the rows that a clause concerns, and which columns it gives values.

    The other columns of updated rows stay as they are, those of new rows are null.
    """

    action: Action
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changing:
    """What all tasks of a change have in common. It pickles."""

    address: Address
    job: str
    clauses: tuple[Clause, ...]
    #: The columns that any clause gives a value, and behind them the marks.
    fit: Fit
    #: How rows are written, for each set of columns that clauses give values.
    outs: Mapping[tuple[str, ...], MergePlan] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Changed:
    """What one attempt at a task brought."""

    attempt: str
    moved: MoveResult
    #: Rows by the number of the clause.
    rows: Mapping[int, int]
    inserted: KeyFilter | None
    seconds: float
    #: The address of a row that was to be changed twice; nothing is written then.
    twice: int | None = None


def plan_changing(
    address: Address,
    snapshot: Snapshot,
    job: str,
    clauses: Sequence[Clause],
    source: pa.Schema,
    *,
    keys: Sequence[str] = (),
    limits: Limits | None = None,
    data_storage_version: str | None = None,
) -> Changing:
    """How rows of changes are written; ``source`` are their columns as Spark has them, the marks last.

    ``keys`` are the columns of the primary key if no two new rows may have the same. InvalidInput or Unsupported where
    values do not fit their columns.
    """
    names = tuple(dict.fromkeys(name for clause in clauses for name in clause.columns))
    # Rows of clauses that give a column no value have null there: whether the others may is seen clause by clause.
    given = [item.with_nullable(True) for item in stored_columns(snapshot, names)]
    target = pa.schema([*given, *_MARKS])
    fit = Fit(target, tuple(range(len(target))), address.storage_options, converts=True)
    check_fit(source, fit)
    version = data_version(snapshot.manifest)
    if data_storage_version is not None:
        version = FileVersion.parse(data_storage_version)
    check_version(version, snapshot.schema)
    outs: dict[tuple[str, ...], MergePlan] = {}
    for columns in dict.fromkeys(clause.columns for clause in clauses if clause.action is not Action.DELETE):
        mine = [clause.action for clause in clauses if clause.columns == columns]
        if Action.INSERT in mine:
            _check_nulls(snapshot, columns)
        outs[columns] = _out(snapshot, columns, version, limits or Limits(), keys, updates=Action.UPDATE in mine)
    return Changing(address, job, tuple(clauses), fit, outs)


def _check_nulls(snapshot: Snapshot, columns: Sequence[str]) -> None:
    for item in snapshot.schema.fields:
        if not item.nullable and item.name not in columns:
            found = f"new rows get no value for column {item.name!r}, which may not be null"
            raise InvalidInput(found, uri=snapshot.uri, column=item.name)


def _out(
    snapshot: Snapshot,
    columns: Sequence[str],
    version: FileVersion,
    limits: Limits,
    keys: Sequence[str],
    *,
    updates: bool,
) -> MergePlan:
    """Rows with values in some columns, as merges write them."""
    whole = snapshot.schema
    named = tuple(item for item in whole.fields if item.name in columns)
    stored = stored_columns(snapshot, [item.name for item in named])
    bound = {item.name: item.type for item in stored}
    return MergePlan(
        request=MergeRequest(matched=Matched.UPDATE if updates else Matched.KEEP, insert=True, limits=limits),
        read_version=snapshot.version,
        keys=tuple(Column((name,), bound[name]) for name in keys if name in bound),
        schema=whole,
        given=Schema(named, whole.metadata),
        missing=tuple(item.name for item in whole.fields if item.name not in columns),
        source=stored,
        condition=None,
        unmatched=None,
        looked_at=(),
        mode=WriteMode.REWRITE_ROWS,
        version=version,
        targets=(None,),
    )


def change_rows(changing: Changing, batches: Iterable[pa.RecordBatch]) -> Changed:
    """Write the changes of one task. Files are told to the job's journal before they are begun."""
    prepare_worker()
    began = time.perf_counter()
    snapshot, places = opened(changing.address)
    attempt = Attempt(snapshot.store, changing.job, uuid4().hex)
    changes = _Changes(changing)
    try:
        with telling(attempt), ExitStack() as stack:
            outs = {
                columns: stack.enter_context(RowsOut(plan, snapshot, places)) for columns, plan in changing.outs.items()
            }
            for clause, rows, addresses in changes.parts(batches):
                if clause.action is Action.UPDATE:
                    outs[clause.columns].update(rows, addresses)
                elif clause.action is Action.INSERT:
                    outs[clause.columns].insert(rows)
            fragments = tuple(item for out in outs.values() for item in out.finish())
            removed = run_delete(plan_delete(snapshot, changes.leaving()), places)
    except _Twice as found:
        return Changed(attempt.id, MoveResult(DeleteResult()), {}, None, time.perf_counter() - began, found.address)
    filters = [inserted for out in outs.values() if (inserted := out.inserted()) is not None]
    seconds = time.perf_counter() - began
    return Changed(attempt.id, MoveResult(removed, fragments), dict(changes.rows), united(filters), seconds)


class _Twice(Exception):
    """A row is to be changed twice."""

    def __init__(self, address: int) -> None:
        super().__init__(address)
        self.address = address


class _Changes:
    """The changes of a task, parted by clauses, while what they take out of the table is noted."""

    def __init__(self, changing: Changing) -> None:
        self._fit, self._clauses, self._outs = changing.fit, changing.clauses, changing.outs
        self._deletes = np.array([item.action is Action.DELETE for item in changing.clauses])
        self._leaving = [no_rows()]
        #: The last row so far, and whether it is deleted: the next may be the same.
        self._last: tuple[int, bool] | None = None
        self.rows: Counter[int] = Counter()

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Clause, pa.Table, UInt64s]]:
        """Rows of one clause, with the addresses of those that they concern; _Twice where one comes again."""
        for batch in fitted(self._fit, batches):
            addresses = batch.column(ADDRESS)
            concerned = addresses.drop_null().to_numpy().astype(np.uint64)
            numbers = batch.column(CLAUSE).to_numpy()
            self._check(concerned, self._deletes[numbers[: len(concerned)]])
            self._leaving.append(np.unique(concerned))
            rows = pa.Table.from_batches([batch.drop_columns([ADDRESS, CLAUSE])])
            for number in np.unique(numbers).tolist():
                mine = np.flatnonzero(numbers == number)
                clause = self._clauses[number]
                self.rows[number] += len(mine)
                chosen = rows if len(mine) == len(numbers) else rows.take(pa.array(mine))
                known = clause.action is not Action.INSERT
                yield clause, self._without_nulls(clause, chosen), concerned[mine] if known else no_rows()

    def _without_nulls(self, clause: Clause, rows: pa.Table) -> pa.Table:
        """The columns that a clause gives values; InvalidInput where one has nulls that may have none."""
        if clause.action is Action.DELETE:
            return rows.select([])
        chosen = rows.select(clause.columns)
        fields = [self._outs[clause.columns].source.field(name) for name in clause.columns]
        for item, column in zip(fields, chosen.columns, strict=True):
            if column.null_count and not item.nullable:
                found = f"{column.null_count:,} values are null, and the column may not be"
                raise InvalidInput(found, column=item.name)
        return chosen.cast(pa.schema(fields, chosen.schema.metadata))

    def _check(self, addresses: UInt64s, deleted: npt.NDArray[np.bool_]) -> None:
        if not len(addresses):
            return
        if self._last is not None:
            addresses = np.concatenate((np.array([self._last[0]], np.uint64), addresses))
            deleted = np.concatenate(([self._last[1]], deleted))
        same = (addresses[1:] == addresses[:-1]) & ~(deleted[1:] & deleted[:-1])
        if same.any():
            raise _Twice(int(addresses[int(np.argmax(same))]))
        self._last = int(addresses[-1]), bool(deleted[-1])

    def leaving(self) -> UInt64s:
        """The addresses of all rows that leave, each once."""
        return np.unique(np.concatenate(self._leaving))


def united(filters: Sequence[KeyFilter]) -> KeyFilter | None:
    """One filter that holds the keys of all.

    >>> united([]) is None
    True
    """
    if not filters:
        return None
    bits = np.zeros(len(_bits(filters[0])), np.uint8)
    for item in filters:
        bits |= _bits(item)
    first = filters[0].keys
    return replace(filters[0], keys=replace(first, bitmap=bits.tobytes()) if isinstance(first, BloomKeys) else first)


def _bits(item: KeyFilter) -> npt.NDArray[np.uint8]:
    return np.frombuffer(item.keys.bitmap if isinstance(item.keys, BloomKeys) else b"", np.uint8)
