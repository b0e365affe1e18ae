"""Scanning: the rows of a snapshot that are not deleted, in order, a bounded window of them decoded at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr import Column, Expr, evaluate, keep
from lancelet.file.reading import read_columns
from lancelet.file.stream import Pace
from lancelet.file.workers import ahead as reading_ahead
from lancelet.format.blobs import file_schema
from lancelet.format.flags import STABLE_ROW_IDS
from lancelet.format.fragments import Fragment
from lancelet.query.reads import Reads, reads_of
from lancelet.query.request import (
    CREATED_AT,
    LAST_UPDATED_AT,
    ROW_ADDRESS,
    ROW_ID,
    ROW_OFFSET,
    ScanRequest,
    bound_schema,
    request_for,
)
from lancelet.query.stored import StoredFragment, column_of, open_fragment
from lancelet.rows.addresses import UInt64s, join
from lancelet.rows.segments import read_sequence
from lancelet.rows.sequences import RowIdSequence
from lancelet.rows.versions import VersionSequence, read_version_sequence
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["CREATED_AT", "LAST_UPDATED_AT", "ROW_ADDRESS", "ROW_ID", "ScanPlan", "plan_scan", "run_scan", "scan"]

_FIRST_VERSION = 1


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Which columns of which fragments are to be read. Pure: nothing is open yet."""

    request: ScanRequest
    #: The columns to hand out, in order.
    schema: pa.Schema
    outputs: tuple[tuple[str, Expr], ...]
    reads: Reads
    fragments: Sequence[Fragment]
    stable_row_ids: bool


def plan_scan(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
    """How a request is answered by one version of a table."""
    stored = file_schema(snapshot.schema)
    bound = bound_schema(snapshot.schema)
    outputs = request.columns
    if outputs is None:
        outputs = tuple((item.name, Column((item.name,), bound.field(item.name).type)) for item in stored.fields)
    names = [name for name, _ in outputs]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"column {name!r} is asked for more than once", column=name)
    for item in request.order_by or ():
        raise Unsupported(f"an order by {item.expr}")
    if request.include_deleted or request.ranges:
        raise Unsupported("deleted rows, or ranges of rows")
    wanted = [expr for _, expr in outputs] + ([] if request.filter is None else [request.filter])
    fragments: Sequence[Fragment] = snapshot.manifest.fragments
    if request.fragments is not None:
        fragments = [_fragment(snapshot, number) for number in request.fragments]
    stable = bool(snapshot.manifest.reader_flags & STABLE_ROW_IDS.value)
    schema = pa.schema([_output(name, expr, bound) for name, expr in outputs], bound.metadata)
    return ScanPlan(request, schema, outputs, reads_of(stored, wanted), fragments, stable)


def _output(name: str, expr: Expr, bound: pa.Schema) -> pa.Field:
    if not isinstance(expr, Column):
        return pa.field(name, expr.type)
    field = bound.field(expr.path[0])
    for step in expr.path[1:]:
        field = field.type.field(step)
    return field.with_name(name) if len(expr.path) == 1 else field.with_name(name).with_nullable(True)


def _fragment(snapshot: Snapshot, number: int) -> Fragment:
    place = snapshot.manifest.fragments.place_of(number)
    if place is None:
        raise InvalidInput(f"there is no fragment {number}", uri=snapshot.uri, version=snapshot.version)
    return snapshot.manifest.fragments[place]


def run_scan(plan: ScanPlan, places: Places) -> Iterator[pa.RecordBatch]:
    """The batches of a scan, none larger than the plan's size; the next window is read while one is handed out."""
    size, skip, left = plan.request.batch_size, plan.request.offset, plan.request.limit
    for table in _tables(plan, places):
        skipped = min(skip, table.num_rows)
        skip -= skipped
        table = table.slice(skipped, left)
        left = None if left is None else left - table.num_rows
        for start in range(0, table.num_rows, size):
            piece = table.slice(start, size)
            batches = piece.to_batches()
            yield batches[0] if len(batches) == 1 else piece.combine_chunks().to_batches()[0]
        if left == 0:
            return


def _tables(plan: ScanPlan, places: Places) -> Iterator[pa.Table]:
    windows = _windows(plan, places)
    ahead = _submit(plan, windows)
    while ahead is not None:
        table = ahead[1].result()
        ahead[0].pace.seen(max(ahead[0].stop - ahead[0].start, 1), table.nbytes)
        ahead = _submit(plan, windows)
        yield table


def scan(
    snapshot: Snapshot, request: ScanRequest | Sequence[str] | None = None, *, batch_size: int = 8192
) -> pa.RecordBatchReader:
    """The rows of a version as a stream: those that a request asks for, or some columns of all.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://scanned"), pa.table({"x": [1, 2], "y": ["a", "b"]}))
    >>> scan(open_snapshot(open_store("memory://scanned")), ["y", "_rowaddr"]).read_all().to_pydict()
    {'y': ['a', 'b'], '_rowaddr': [0, 1]}
    """
    if not isinstance(request, ScanRequest):
        request = request_for(snapshot, request, batch_size=batch_size)
    plan = plan_scan(snapshot, request)
    return pa.RecordBatchReader.from_batches(plan.schema, run_scan(plan, Places.of(snapshot)))


@dataclass(frozen=True, slots=True)
class _Window:
    """Physical rows of an open fragment that are read at once."""

    stored: StoredFragment
    lineage: _Lineage
    pace: Pace
    start: int
    stop: int
    #: Live rows of the table before the fragment.
    offset: int


@dataclass(frozen=True, slots=True)
class _Lineage:
    """Sequences of a fragment, where they are wanted and there are any."""

    row_ids: RowIdSequence | None
    created_at: VersionSequence | None
    last_updated_at: VersionSequence | None


def _submit(plan: ScanPlan, windows: Iterator[_Window]) -> tuple[_Window, Future[pa.Table]] | None:
    window = next(windows, None)
    return None if window is None else (window, reading_ahead().submit(_read, plan, window))


def _windows(plan: ScanPlan, places: Places) -> Iterator[_Window]:
    size, offset = plan.request.batch_size, 0
    for fragment in plan.fragments:
        stored = open_fragment(places, plan.reads.schema, fragment)
        lineage = _lineage(plan, stored)
        paces = [Pace.first(part.file, part.shapes, size) for part in stored.parts]
        # All parts are decoded for the same rows, and take their memory together.
        rows = min((pace.rows for pace in paces), default=size * 4) // max(len(paces), 1)
        pace = Pace(size, max(rows, size))
        start = 0
        while start < stored.physical_rows:
            stop = min(start + pace.rows, stored.physical_rows)
            if stored.deleted.live_count(start, stop):
                yield _Window(stored, lineage, pace, start, stop, offset)
            start = stop
        offset += stored.physical_rows - len(stored.deleted)


def _read(plan: ScanPlan, window: _Window) -> pa.Table:
    stored, rows = window.stored, slice(window.start, window.stop)
    found = [
        (held, column)
        for part in stored.parts
        for held, column in zip(part.fields, read_columns(part.file, part.shapes, rows), strict=True)
    ]
    count = window.stop - window.start
    columns = {
        item.name: column_of(item, [pair for pair in found if pair[0].id == item.id], count)
        for item in plan.reads.schema.fields
    }
    for name in plan.reads.system:
        columns[name] = pa.chunked_array([pa.array(_system(plan, window, name))])
    table = pa.table(columns) if columns else pa.table({ROW_ID: pa.nulls(count)})
    live = stored.deleted.live_mask(window.start, window.stop)
    if live is not None:
        table = table.filter(pa.array(live))
    if plan.request.filter is not None:
        table = table.filter(pa.array(keep(plan.request.filter, table)))
    return _outputs(plan, table)


def _outputs(plan: ScanPlan, table: pa.Table) -> pa.Table:
    if not plan.outputs:
        return table.select([])
    return pa.table([evaluate(expr, table) for _, expr in plan.outputs], schema=plan.schema)


def _system(plan: ScanPlan, window: _Window, name: str) -> npt.NDArray[np.uint64]:
    """A column of what is known of the rows of a window, by position."""
    start, stop = window.start, window.stop
    if name == ROW_OFFSET:
        return window.stored.deleted.to_logical(np.arange(start, stop)).astype(np.uint64) + np.uint64(window.offset)
    if name == ROW_ADDRESS or (name == ROW_ID and not plan.stable_row_ids):
        return join(window.stored.fragment.id, np.arange(start, stop, dtype=np.uint64))
    lineage = window.lineage
    if name == ROW_ID:
        if lineage.row_ids is None:
            number = window.stored.fragment.id
            raise InvalidInput(f"fragment {number} does not say which ids its rows have", fragment=number)
        return lineage.row_ids.slice(start, stop).to_ids()
    return _versions(lineage.created_at if name == CREATED_AT else lineage.last_updated_at, start, stop)


def _versions(sequence: VersionSequence | None, start: int, stop: int) -> UInt64s:
    if sequence is None:
        return np.full(stop - start, _FIRST_VERSION, np.uint64)
    return sequence.slice(start, stop).to_versions()


def _lineage(plan: ScanPlan, stored: StoredFragment) -> _Lineage:
    item, rows, names = stored.fragment, stored.physical_rows, plan.reads.system
    spilled = {
        ROW_ID: item.column_row_ids,
        CREATED_AT: item.column_created_at_versions,
        LAST_UPDATED_AT: item.column_last_updated_at_versions,
    }
    for name, column in spilled.items():
        if name in names and column is not None:
            raise Unsupported(f"column {name} of fragment {item.id} is in a data file", fragment=item.id)
    ids, created, updated = (
        item.inline_row_ids,
        item.inline_created_at_versions,
        item.inline_last_updated_at_versions,
    )
    return _Lineage(
        read_sequence(ids, rows=rows) if ROW_ID in names and ids is not None else None,
        read_version_sequence(created, rows=rows) if CREATED_AT in names and created is not None else None,
        read_version_sequence(updated, rows=rows) if LAST_UPDATED_AT in names and updated is not None else None,
    )
