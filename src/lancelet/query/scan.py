"""Scanning: the rows of a snapshot that are not deleted, in order, a bounded window of them decoded at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.errors import InvalidInput, Unsupported
from lancelet.file.reading import read_columns
from lancelet.file.shapes import project
from lancelet.file.stream import Pace
from lancelet.file.workers import ahead as reading_ahead
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.blobs import file_schema
from lancelet.format.fields import Schema
from lancelet.format.flags import STABLE_ROW_IDS
from lancelet.format.fragments import Fragment
from lancelet.query.stored import StoredFragment, column_of, open_fragment
from lancelet.rows.addresses import UInt64s, join
from lancelet.rows.segments import read_sequence
from lancelet.rows.sequences import RowIdSequence
from lancelet.rows.versions import VersionSequence, read_version_sequence
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["CREATED_AT", "LAST_UPDATED_AT", "ROW_ADDRESS", "ROW_ID", "ScanPlan", "plan_scan", "run_scan", "scan"]

#: Columns that no file holds: what is known of the rows themselves.
ROW_ID, ROW_ADDRESS = "_rowid", "_rowaddr"
CREATED_AT, LAST_UPDATED_AT = "_row_created_at_version", "_row_last_updated_at_version"
_SYSTEM = (ROW_ID, ROW_ADDRESS, CREATED_AT, LAST_UPDATED_AT)

_FIRST_VERSION = 1


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Which columns of which fragments are to be read. Pure: nothing is open yet."""

    #: The fields to read, as files hold them: blobs as the description of where they lie.
    schema: Schema
    #: The columns to hand out, in order.
    arrow: pa.Schema
    fragments: Sequence[Fragment]
    stable_row_ids: bool
    batch_size: int


def plan_scan(
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    *,
    batch_size: int = 8192,
    fragment_ids: Sequence[int] | None = None,
) -> ScanPlan:
    """A scan of some columns, all if none are named; dotted paths name nested ones.

    ``_rowid``, ``_rowaddr``, ``_row_created_at_version`` and ``_row_last_updated_at_version`` are to be had where
    they are named.
    """
    if batch_size < 1:
        raise InvalidInput(f"batch_size is {batch_size}, expected at least 1")
    stored = file_schema(snapshot.schema)
    names = [item.name for item in stored.fields] if columns is None else list(dict.fromkeys(columns))
    schema = project(stored, [name for name in names if name not in _SYSTEM])
    arrow = schema_to_arrow(schema)
    tops = dict.fromkeys(name if name in _SYSTEM else _top(schema, name) for name in names)
    out = [pa.field(name, pa.uint64(), True) if name in _SYSTEM else arrow.field(name) for name in tops]
    fragments: Sequence[Fragment] = snapshot.manifest.fragments
    if fragment_ids is not None:
        fragments = [_fragment(snapshot, number) for number in fragment_ids]
    stable = bool(snapshot.manifest.reader_flags & STABLE_ROW_IDS.value)
    return ScanPlan(schema, pa.schema(out, arrow.metadata), fragments, stable, batch_size)


def _top(schema: Schema, path: str) -> str:
    return path if any(item.name == path for item in schema.fields) else path.split(".")[0]


def _fragment(snapshot: Snapshot, number: int) -> Fragment:
    place = snapshot.manifest.fragments.place_of(number)
    if place is None:
        raise InvalidInput(f"there is no fragment {number}", uri=snapshot.uri, version=snapshot.version)
    return snapshot.manifest.fragments[place]


def run_scan(plan: ScanPlan, places: Places) -> Iterator[pa.RecordBatch]:
    """The batches of a scan, none larger than the plan's size; the next window is read while one is handed out."""
    windows = _windows(plan, places)
    ahead = _submit(plan, windows)
    while ahead is not None:
        table = ahead[1].result()
        ahead[0].pace.seen(max(ahead[0].stop - ahead[0].start, 1), table.nbytes)
        ahead = _submit(plan, windows)
        for start in range(0, table.num_rows, plan.batch_size):
            piece = table.slice(start, plan.batch_size)
            batches = piece.to_batches()
            yield batches[0] if len(batches) == 1 else piece.combine_chunks().to_batches()[0]


def scan(snapshot: Snapshot, columns: Sequence[str] | None = None, *, batch_size: int = 8192) -> pa.RecordBatchReader:
    """The rows of a version as a stream.

    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> made = create(open_store("memory://scanned"), pa.table({"x": [1, 2], "y": ["a", "b"]}))
    >>> scan(open_snapshot(open_store("memory://scanned")), ["y", "_rowaddr"]).read_all().to_pydict()
    {'y': ['a', 'b'], '_rowaddr': [0, 1]}
    """
    plan = plan_scan(snapshot, columns, batch_size=batch_size)
    return pa.RecordBatchReader.from_batches(plan.arrow, run_scan(plan, Places.of(snapshot)))


@dataclass(frozen=True, slots=True)
class _Window:
    """Physical rows of an open fragment that are read at once."""

    stored: StoredFragment
    lineage: _Lineage
    pace: Pace
    start: int
    stop: int


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
    for fragment in plan.fragments:
        stored = open_fragment(places, plan.schema, fragment)
        lineage = _lineage(plan, stored)
        paces = [Pace.first(part.file, part.shapes, plan.batch_size) for part in stored.parts]
        # All parts are decoded for the same rows, and take their memory together.
        rows = min((pace.rows for pace in paces), default=plan.batch_size * 4) // max(len(paces), 1)
        pace = Pace(plan.batch_size, max(rows, plan.batch_size))
        start = 0
        while start < stored.physical_rows:
            stop = min(start + pace.rows, stored.physical_rows)
            if stored.deleted.live_count(start, stop):
                yield _Window(stored, lineage, pace, start, stop)
            start = stop


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
        for item in plan.schema.fields
    }
    for name in plan.arrow.names:
        if name in _SYSTEM:
            columns[name] = pa.chunked_array([pa.array(_system(plan, window, name))])
    table = pa.table([columns[name] for name in plan.arrow.names], schema=plan.arrow)
    live = stored.deleted.live_mask(window.start, window.stop)
    return table if live is None else table.filter(pa.array(live))


def _system(plan: ScanPlan, window: _Window, name: str) -> npt.NDArray[np.uint64]:
    """A column of what is known of the rows of a window, by position."""
    start, stop = window.start, window.stop
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
    item, rows, names = stored.fragment, stored.physical_rows, plan.arrow.names
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
