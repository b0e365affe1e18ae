"""Windows: a bounded stretch of a fragment answered at once, first the columns that decide, then those handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr import Column, Expr, evaluate
from lancelet.query.keys import plain
from lancelet.query.layouts import Projection
from lancelet.query.opened import OpenTable
from lancelet.query.pace import Pace
from lancelet.query.picking import pick
from lancelet.query.plan import Piece, Route, ScanPlan
from lancelet.query.selection import SINGLE, Selection, as_bits, from_bits
from lancelet.query.stored import StoredFragment
from lancelet.query.system import system_column

__all__ = ["Found", "Way", "Window", "output_table", "true_rows"]

_Columns = Mapping[str, pa.ChunkedArray | pa.Array]


class Way:
    """A route that is being taken: how its columns are read, and how many rows of them at once."""

    def __init__(self, plan: ScanPlan, route: Route, target: int, table: OpenTable) -> None:
        self.plan, self.route = plan, route
        self.steps = [(table.projection(step.reads, as_keys=True), step.condition) for step in route.steps]
        self.rest = table.projection(route.rest)
        least = plan.request.batch_size
        self.rest_pace = Pace(self.rest, target, least=least)
        self.first_pace = Pace(self.steps[0][0], target, least=least) if self.steps else self.rest_pace


@dataclass(frozen=True, slots=True)
class _Held:
    """Columns that were read to decide, of the whole range or of the rows that were left then."""

    columns: _Columns
    #: None for the whole range.
    of: Selection | None

    def of_rows(self, selection: Selection, names: Sequence[str]) -> dict[str, pa.ChunkedArray | pa.Array]:
        """Some of the columns, for the rows that are left now."""
        if self.of is None:
            if selection.whole:
                return {name: self.columns[name] for name in names}
            places = selection.numbers - selection.start
            return {name: pick(self.columns[name], places) for name in names}
        if selection.count == self.of.count:
            return {name: self.columns[name] for name in names}
        places = self.of.numbers.searchsorted(selection.numbers)
        return {name: pick(self.columns[name], places) for name in names}

    def within(self, before: Selection, start: int, stop: int) -> _Held:
        """The columns for a smaller range than that of the selection before."""
        if self.of is None:
            return _Held(self._slice(start - before.start, stop - before.start), None)
        first, last = self.of.numbers.searchsorted([start, stop])
        return _Held(self._slice(int(first), int(last)), self.of.within(start, stop))

    def _slice(self, first: int, last: int) -> _Columns:
        return {name: column.slice(first, last - first) for name, column in self.columns.items()}


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a window that fulfil the conditions, their remaining columns not read yet."""

    window: Window
    selection: Selection
    held: tuple[_Held, ...]

    @property
    def first_bytes(self) -> int:
        """Bytes of the columns that were read first."""
        return sum(column.nbytes for column in self.held[0].columns.values()) if self.held else 0

    def split(self, most: int) -> tuple[Found, Found | None]:
        """As many of the rows as can be read at once, where that is so many rows at most, and the others."""
        first, others = self.selection.split(most)
        if not others.count:
            return self, None
        return self._within(first.start, first.stop), self._within(others.start, others.stop)

    def _within(self, start: int, stop: int) -> Found:
        held = tuple(item.within(self.selection, start, stop) for item in self.held)
        return Found(self.window, self.selection.within(start, stop), held)

    def table(self) -> pa.Table:
        """The columns that the plan hands out."""
        window, way = self.window, self.window.way
        plan = way.plan
        if not self.selection.count:
            return plan.schema.empty_table()
        columns = window.read(way.rest, self.selection)
        for held, step in zip(self.held, way.route.steps, strict=True):
            wanted = [
                item.name
                for item in step.reads.schema.fields
                if item.name not in columns and item in plan.reads.schema.fields
            ]
            if wanted:
                columns.update(_values(held.of_rows(self.selection, wanted), step.reads.arrow))
        for name in plan.reads.system:
            columns[name] = window.system(name, self.selection, way.rest)
        return output_table(plan.schema, plan.outputs, columns, self.selection.count)


@dataclass(frozen=True, slots=True)
class Window:
    """Rows of an open fragment that are looked at together."""

    way: Way
    stored: StoredFragment
    piece: Piece
    selection: Selection

    def find(self) -> Found:
        """The rows that fulfil all conditions and, unless they are asked for, are not deleted."""
        selection, held = self.selection, []
        if not self.way.plan.request.include_deleted:
            selection = selection.without(self.stored.deleted)
        for projection, condition in self.way.steps:
            if not selection.count:
                break
            selection, columns = self._decided(projection, condition, selection)
            held.append(columns)
        return Found(self, selection, tuple(held))

    def _decided(self, projection: Projection, condition: Expr, selection: Selection) -> tuple[Selection, _Held]:
        """The rows for which a condition is true, and the columns that said so."""
        whole = Selection(selection.start, selection.stop)
        if selection.share >= SINGLE:
            columns = self._with_system(projection, whole)
            try:
                return selection.met(true_rows(condition, columns, whole.count)), _Held(columns, None)
            except InvalidInput:
                # Of a row that is not wanted a value may be one that cannot be computed with.
                if selection.whole:
                    raise
                places = selection.numbers - selection.start
                columns = {name: pick(column, places) for name, column in columns.items()}
        else:
            columns = self._with_system(projection, selection)
        return selection.kept(true_rows(condition, columns, selection.count)), _Held(columns, selection)

    def _with_system(self, projection: Projection, selection: Selection) -> _Columns:
        columns = self.read(projection, selection)
        for name in projection.reads.system:
            columns[name] = self.system(name, selection, projection)
        return columns

    def read(self, projection: Projection, selection: Selection) -> dict[str, pa.ChunkedArray | pa.Array]:
        """Stored columns of a selection: one by one where few rows are wanted, else the range, cut down."""
        if not projection.reads.schema.fields:
            return {}
        if selection.whole or selection.share < SINGLE:
            return dict(self.stored.read(projection, selection.rows))
        columns = self.stored.read(projection, slice(selection.start, selection.stop))
        places = selection.numbers - selection.start
        return {name: pick(column, places) for name, column in columns.items()}

    def system(self, name: str, selection: Selection, projection: Projection) -> pa.Array:
        """A column of what is known of rows."""
        before = self.piece.live_before or 0
        stable = self.way.plan.stable_row_ids
        return system_column(self.stored, name, selection.rows, projection, stable=stable, live_before=before)


def _values(columns: _Columns, schema: pa.Schema) -> _Columns:
    """Columns of which some may have been read as keys, with values of their own types."""
    return {
        name: plain(column) if column.type != schema.field(name).type and pat.is_dictionary(column.type) else column
        for name, column in columns.items()
    }


def true_rows(condition: Expr, columns: _Columns, count: int) -> pa.BooleanArray:
    """For each row whether a condition is true."""
    if len(columns) == 1:
        ((name, column),) = columns.items()
        if pat.is_dictionary(column.type) and (found := _true_by_key(condition, name, column)) is not None:
            return found
    rows = _rows(columns, count)
    result = evaluate(condition, rows)
    if isinstance(result, pa.ChunkedArray):
        result = result.chunk(0) if result.num_chunks == 1 else result.combine_chunks()
    return pc.fill_null(result, False) if result.null_count else result


def _true_by_key(condition: Expr, name: str, column: pa.ChunkedArray | pa.Array) -> pa.BooleanArray | None:
    """The same, each value of a dictionary looked at once; None where some value cannot be computed with."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if sum(len(chunk.dictionary) for chunk in chunks) > len(column):
        return None
    masks = []
    try:
        for chunk in chunks:
            # Behind the values stands a null, for the rows that have none.
            values = pa.concat_arrays([chunk.dictionary, pa.nulls(1, chunk.dictionary.type)])
            known = from_bits(true_rows(condition, {name: values}, len(values)))
            keys = chunk.indices.fill_null(0) if chunk.null_count else chunk.indices
            mask = (
                known[: len(values) - 1].take(keys.to_numpy(), mode="clip")
                if len(values) > 1
                else np.zeros(len(chunk), np.bool_)
            )
            if chunk.null_count:
                mask[np.asarray(chunk.is_null())] = known[-1]
            masks.append(mask)
    except InvalidInput:
        return None
    return as_bits(masks[0] if len(masks) == 1 else np.concatenate([np.zeros(0, np.bool_), *masks]))


def output_table(schema: pa.Schema, outputs: Sequence[tuple[str, Expr]], columns: _Columns, count: int) -> pa.Table:
    """What is handed out, computed of columns of so many rows."""
    if not outputs:
        return _rows({}, count).select([])
    made: list[pa.ChunkedArray | pa.Array] = []
    rows: pa.Table | None = None
    for _, expr in outputs:
        if isinstance(expr, Column) and len(expr.path) == 1:
            made.append(columns[expr.path[0]])
            continue
        if rows is None:
            rows = _rows(columns, count)
        made.append(evaluate(expr, rows))
    return pa.Table.from_arrays(made, schema=schema)


def _rows(columns: _Columns, count: int) -> pa.Table:
    if columns:
        return pa.table(dict(columns))
    # A table without columns has no rows, but conditions without columns have a value for each.
    return pa.table({"": pa.nulls(count)})
