"""Merged rows as new fragments: first those in the place of others, with what the source lacks, then new ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lancelet.format.arrow import schema_to_arrow
from lancelet.format.fragments import Fragment
from lancelet.format.operations import KeyFilter
from lancelet.ops.blob_carrier import BlobCarrier
from lancelet.ops.data_files import FragmentWriter
from lancelet.ops.destinations import base_uris, destinations
from lancelet.ops.fitting import conformed
from lancelet.ops.merge.key_filter import KeyFilterBuilder
from lancelet.ops.merge.plan import MergePlan
from lancelet.ops.merge.request import Matched
from lancelet.ops.merge.source import key_columns
from lancelet.ops.moving import no_rows, with_row_ids
from lancelet.query.facts import facts_of
from lancelet.query.request import ROW_ID
from lancelet.query.take import RowsBy, take
from lancelet.rows.addresses import UInt64s, as_uint64s
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["RowsOut", "one_array", "overlaid"]

#: Rows are completed in slices of about this many stored bytes.
_SLICE = 32 * 2**20
_MOST_ROWS = 2**17


class RowsOut:
    """Writes merged rows. As a context manager it removes what it wrote when the block raises."""

    def __init__(self, plan: MergePlan, snapshot: Snapshot, places: Places) -> None:
        self._plan, self._snapshot, self._places = plan, snapshot, places
        updates = plan.request.matched is Matched.UPDATE
        self._schema = plan.schema if updates else plan.given
        self._arrow = schema_to_arrow(self._schema)
        self._missing = [name for name in plan.missing if name in self._arrow.names]
        self._stable = facts_of(snapshot.manifest).stable_row_ids
        self._carrier = BlobCarrier(snapshot, places)
        self._ids = [no_rows()]
        self._filter = _filter_of(plan)
        bases = snapshot.manifest.base_paths
        self._writer = FragmentWriter(
            destinations(snapshot.store, bases, plan.targets),
            self._schema,
            plan.version,
            plan.request.limits,
            bases=base_uris(bases),
        )

    def __enter__(self) -> RowsOut:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._writer.__exit__(kind, error, trace)

    def update(self, rows: pa.Table, addresses: UInt64s) -> None:
        """Write rows in the place of those at some addresses; those of a fragment stand together."""
        for start in range(0, len(addresses), self._step):
            piece, mine = rows.slice(start, self._step), addresses[start : start + self._step]
            names = [*self._missing, *([ROW_ID] if self._stable else [])]
            old = take(self._snapshot, mine, names, by=RowsBy.ADDRESS, places=self._places) if names else None
            if old is not None and self._stable:
                self._ids.append(as_uint64s(old.column(ROW_ID).to_numpy()))
                old = old.drop_columns([ROW_ID])
            for batch in self._completed(piece, old, mine):
                self._writer.write(batch)

    @property
    def _step(self) -> int:
        if not self._missing:
            return _MOST_ROWS
        fragments = self._snapshot.manifest.fragments
        stored = sum(file.file_size or 0 for item in fragments for file in item.files)
        each = stored // max(int(fragments.physical_rows().sum()), 1) + 1
        return max(256, min(_MOST_ROWS, _SLICE // each))

    def _completed(self, rows: pa.Table, old: pa.Table | None, addresses: UInt64s) -> Iterator[pa.RecordBatch]:
        if old is None or not self._missing:
            yield from conformed(rows.to_batches(), self._arrow)
            return
        start = 0
        for kept in self._carrier.batches(old, addresses):
            piece = rows.slice(start, kept.num_rows)
            start += kept.num_rows
            given = set(piece.column_names)
            columns = []
            for field in self._arrow:
                own = one_array(piece.column(field.name)) if field.name in given else None
                before = kept.column(field.name) if field.name in self._missing else None
                columns.append(own if before is None else before if own is None else overlaid(own, before))
            yield from conformed([pa.record_batch(columns, names=self._arrow.names)], self._arrow)

    def insert(self, rows: pa.Table) -> None:
        """Write rows that are new; where the source lacks columns they are null."""
        if self._filter is not None and rows.num_rows:
            self._filter.add(key_columns(rows, self._plan.keys))
        for start in range(0, rows.num_rows, _MOST_ROWS):
            piece = rows.slice(start, _MOST_ROWS)
            for field in self._arrow:
                if field.name not in piece.column_names:
                    piece = piece.append_column(field.name, pa.nulls(piece.num_rows, field.type))
            for batch in conformed(piece.to_batches(), self._arrow):
                self._writer.write(batch)

    def finish(self) -> tuple[Fragment, ...]:
        """The new fragments; rows that took the place of others have their stable ids."""
        made = self._writer.finish()
        return with_row_ids(made, np.concatenate(self._ids)) if self._stable else tuple(made)

    def inserted(self) -> KeyFilter | None:
        """Which primary keys were put in; None where the key of the merge is not the primary key."""
        return None if self._filter is None else self._filter.build()


def _filter_of(plan: MergePlan) -> KeyFilterBuilder | None:
    primary = {item.id for item in plan.schema.walk() if item.primary_key}
    found = [plan.schema.find(".".join(key.path)) for key in plan.keys]
    ids = [item.id for item in found if item is not None]
    return KeyFilterBuilder(ids) if primary and set(ids) == primary else None


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def overlaid(given: pa.Array, before: pa.Array) -> pa.Array:
    """A struct of which some fields are given anew, and the others stay as they were.

    >>> overlaid(pa.array([{"x": 1}]), pa.array([{"x": 0, "y": 7}])).to_pylist()
    [{'x': 1, 'y': 7}]
    """
    if not pa.types.is_struct(given.type) or not pa.types.is_struct(before.type):
        return given
    names = [field.name for field in given.type]
    old = before.flatten()
    children = []
    for place, field in enumerate(before.type):
        if field.name in names:
            children.append(overlaid(given.field(names.index(field.name)), old[place]))
        else:
            children.append(old[place])
    fields = [pa.field(field.name, child.type) for field, child in zip(before.type, children, strict=True)]
    mask = given.is_null() if given.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
