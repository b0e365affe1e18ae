"""Targets of merges: of the rows of a table their keys and addresses, and what conditions look at, window by window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.expr import Column, Expr
from lancelet.expr.tree import TRUE
from lancelet.ops.join.codes import Mask
from lancelet.ops.merge.plan import MergePlan
from lancelet.query.request import ROW_ADDRESS, ScanRequest, bound_schema
from lancelet.query.scan import plan_scan, tables_of
from lancelet.rows.addresses import UInt64s, as_uint64s
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["TargetRows", "scan_target", "target_rows"]

#: Names of the columns of a window: keys by number, what conditions look at by the names that it has.
_KEY, _GOES, _LOOKED = "k", "goes", "c"


@dataclass(frozen=True, slots=True)
class TargetRows:
    """Some rows of the table."""

    keys: list[pa.Array]
    addresses: UInt64s
    #: Which rows go where the source does not have them; None for all.
    goes: Mask | None
    #: What conditions look at, by name.
    looked_at: pa.Table

    def side(self, rows: pa.Array) -> pa.StructArray:
        """Some rows as conditions see them."""
        taken = self.looked_at.take(rows).combine_chunks()
        columns = [taken.column(place).combine_chunks() for place in range(taken.num_columns)]
        columns = [column.chunk(0) if isinstance(column, pa.ChunkedArray) else column for column in columns]
        if not columns:
            return pa.array([{}] * len(rows), pa.struct([]))
        return pa.StructArray.from_arrays(columns, names=taken.column_names)


def scan_target(plan: MergePlan, snapshot: Snapshot, places: Places) -> Iterator[pa.Table]:
    """All live rows in the order of their addresses."""
    request = ScanRequest(columns=_columns(plan, snapshot))
    yield from tables_of(plan_scan(snapshot, request), places)


def _columns(plan: MergePlan, snapshot: Snapshot) -> tuple[tuple[str, Expr], ...]:
    columns: list[tuple[str, Expr]] = [(f"{_KEY}{number}", key) for number, key in enumerate(plan.keys)]
    columns.append((ROW_ADDRESS, Column((ROW_ADDRESS,), pa.uint64())))
    if plan.unmatched is not None and plan.unmatched != TRUE:
        columns.append((_GOES, plan.unmatched))
    bound = bound_schema(snapshot.schema)
    columns.extend((f"{_LOOKED}.{name}", Column((name,), bound.field(name).type)) for name in plan.looked_at)
    return tuple(columns)


def target_rows(plan: MergePlan, table: pa.Table | pa.RecordBatch) -> TargetRows:
    """A window, taken apart."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    keys = [_array(table, f"{_KEY}{number}") for number in range(len(plan.keys))]
    goes = np.asarray(_array(table, _GOES).fill_null(False)) if _GOES in table.column_names else None
    names: Sequence[str] = [f"{_LOOKED}.{name}" for name in plan.looked_at]
    looked_at = table.select(names).rename_columns(list(plan.looked_at)) if names else pa.table({})
    return TargetRows(keys, as_uint64s(_array(table, ROW_ADDRESS).to_numpy()), goes, looked_at)


def _array(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else _whole(column)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
