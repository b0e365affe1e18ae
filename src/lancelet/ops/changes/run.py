"""Carrying out a plan of changes: one task's changed rows, read window by window and handed out as batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import Unsupported
from lancelet.ops.changes.matching import Matched, Matching
from lancelet.ops.changes.plan import ChangesPlan, ChangesTask, Side
from lancelet.ops.changes.request import CHANGE_TYPE, Pair
from lancelet.query.batches import batches_of
from lancelet.query.pace import window_bytes
from lancelet.query.plan import Piece, plan_scan
from lancelet.query.selection import Selection
from lancelet.query.stored import StoredFragment
from lancelet.query.window import Way, Window

__all__ = ["run_changes"]

Ints = npt.NDArray[np.int64]


def run_changes(plan: ChangesPlan, task: ChangesTask, pair: Pair) -> Iterator[pa.RecordBatch]:
    """The changed rows of a task's fragments, each in the order in which its fragment holds them.

    >>> from lancelet.ops.changes.plan import plan_changes
    >>> from lancelet.ops.write import append, create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://run-changes")
    >>> made = create(store, pa.table({"x": [1, 2]}))
    >>> first = open_snapshot(store)
    >>> made = append(first, pa.table({"x": [3]}))
    >>> pair = Pair.of(first, open_snapshot(store))
    >>> plan = plan_changes(pair)
    >>> [batch.to_pylist() for task in plan.tasks for batch in run_changes(plan, task, pair)]
    [[{'x': 3, '_change_type': 'insert'}]]
    """
    return batches_of(_Run(plan, task, pair).tables(), plan.scan_request(task.side))


class _Run:
    """A task being carried out."""

    def __init__(self, plan: ChangesPlan, task: ChangesTask, pair: Pair) -> None:
        self.plan, self.task = plan, task
        snapshot = pair.before if task.side is Side.BEFORE else pair.after
        assert snapshot is not None
        self.scan = plan_scan(snapshot, plan.scan_request(task.side))
        self.matching = Matching(plan, pair, task.side)
        target = window_bytes(self.scan.memory_budget, 1)
        self.way = Way(self.scan, self.scan.route, target, self.matching.own)

    def tables(self) -> Iterator[pa.Table]:
        """The changed rows of all fragments."""
        table = self.matching.own
        for number in self.task.fragments:
            stored = table.fragment(table.facts.place_of(number))
            for matched in self.matching.changes(stored):
                wanted = self._wanted(matched)
                if len(wanted.offsets):
                    yield from self._read(stored, wanted)

    def _wanted(self, matched: Matched) -> Matched:
        """Those of the rows whose kind of change was asked for."""
        single, shared = (kind in self.plan.request.kinds for kind in self.task.side.kinds)
        if single and shared:
            return matched
        kept = matched.shared if shared else ~matched.shared
        return Matched(matched.offsets[kept], matched.shared[kept])

    def _read(self, stored: StoredFragment, matched: Matched) -> Iterator[pa.Table]:
        first, last = int(matched.offsets[0]), int(matched.offsets[-1]) + 1
        rest = Selection(first, last, numbers=matched.offsets)
        piece = Piece(stored.fragment)
        while rest.count:
            now, rest = rest.split(self.way.first_pace.rows(stored))
            table = Window(self.way, stored, piece, now).find().table()
            self.way.first_pace.seen(table.num_rows, table.nbytes)
            shared = matched.shared[matched.offsets.searchsorted(now.numbers)]
            yield self._told(table, shared)

    def _told(self, table: pa.Table, shared: npt.NDArray[np.bool_]) -> pa.Table:
        """The rows with the columns of the later version, and what happened to them."""
        single, both = self.task.side.kinds
        schema, count = self.plan.schema, len(shared)
        columns = []
        for field in schema:
            if field.name == CHANGE_TYPE:
                kinds = pa.DictionaryArray.from_arrays(pa.array(shared.view(np.int8)), pa.array([single, both]))
                columns.append(kinds.cast(field.type))
            elif field.name in table.column_names:
                columns.append(_as_now(table.column(field.name), field, self.plan))
            else:
                columns.append(pa.nulls(count, field.type))
        return pa.Table.from_arrays(columns, schema=schema)


def _as_now(column: pa.ChunkedArray, field: pa.Field, plan: ChangesPlan) -> pa.ChunkedArray:
    """A column as it was, in the type that it has now."""
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        text = f"was {column.type} in version {plan.begin} and is {field.type} in {plan.end}: {error}"
        hint = "leave the column out, or compare version by version"
        raise Unsupported(f"a value {text}", column=field.name, hint=hint) from error
