"""What a stream tells of one version: which fragments it changed, planned by the driver and read by tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import types as spark

from lancelet.errors import InvalidInput, LanceletError
from lancelet.ops.changes import (
    CHANGE_TYPE,
    INSERT,
    KINDS,
    ChangesPlan,
    ChangesRequest,
    ChangesTask,
    Pair,
    Side,
    plan_changes,
    run_changes,
)
from lancelet.query.facts import facts_of
from lancelet.query.plan import outputs_of
from lancelet.query.request import ROW_ADDRESS, ScanRequest, bound_schema, column_named, request_for
from lancelet.query.scan import plan_scan, run_scan
from lancelet.spark.address import Address, opened
from lancelet.spark.blob_references import BlobColumn, blob_columns
from lancelet.spark.casts import Cast, cast_for
from lancelet.spark.options import ReadOptions
from lancelet.spark.reading import Reading, with_blob_fields, with_blobs
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.spark.splits import Split
from lancelet.spark.worker import prepare_worker
from lancelet.table.snapshot import Snapshot

__all__ = [
    "CHANGE_COLUMNS",
    "TIMESTAMP",
    "VERSION",
    "Change",
    "Piece",
    "StreamReading",
    "change_of",
    "check_columns",
    "missing_columns",
    "run_piece",
]

#: What is told of changes besides the rows: what happened, in which version, and when that was made.
VERSION, TIMESTAMP = "_commit_version", "_commit_timestamp"
CHANGE_COLUMNS = (CHANGE_TYPE, VERSION, TIMESTAMP)


@dataclass(frozen=True, slots=True)
class StreamReading:
    """What all tasks of a stream have in common. It pickles."""

    #: Of the newest version, whichever that is.
    address: Address
    asked: ReadOptions
    #: What Spark gets.
    schema: spark.StructType
    #: Whether updates and deletes are told, too.
    changes: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table that are told."""
        return tuple(name for name in self.schema.names if not (self.changes and name in CHANGE_COLUMNS))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of changes that are told."""
        return KINDS if self.changes else (INSERT,)


@dataclass(frozen=True, slots=True)
class Change:
    """What is told of one version: the fragments of either side that may hold such rows. Driver only."""

    #: The version before, None for all rows of the version.
    begin: Address | None
    end: Address
    plan: ChangesPlan
    parts: tuple[ChangesTask, ...]
    #: About how many bytes a row takes.
    width: float

    @property
    def whole(self) -> bool:
        """Whether all rows of the fragments were inserted, so that none need be compared."""
        return not self.plan.changed[Side.BEFORE]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some fragments of one version, to be told by a task. It pickles."""

    begin: Address | None
    end: Address
    #: Rows that were all inserted, or rows to be compared.
    task: Split | ChangesTask


def change_of(reading: StreamReading, begin: Address | None, end: Address, width: float) -> Change:
    """What is told of a version, given the one before it. Unsupported where nobody can tell which rows are new."""
    plan = _plan(reading, begin, end)
    rows: dict[int, int] = {}
    if not plan.changed[Side.BEFORE]:
        fragments = opened(end)[0].manifest.fragments
        live = (fragments.physical_rows() - fragments.deleted_rows()).tolist()
        rows = dict(zip(fragments.ids().tolist(), live, strict=True))
    parts = tuple(replace(item, rows=sum(rows[at] for at in item.fragments)) if rows else item for item in plan.tasks)
    return Change(begin, end, plan, parts, width)


def missing_columns(reading: StreamReading, end: Address) -> tuple[str, ...]:
    """The columns that the stream tells and a version does not have."""
    there = _names_in(reading, end)
    return tuple(name for name in reading.names if name not in there)


def check_columns(reading: StreamReading, end: Address) -> None:
    """InvalidInput where values of a column cannot be told as the stream's schema has them."""
    snapshot, _ = opened(end)
    request = _request(snapshot, _names_in(reading, end), reading.asked)
    _casts(
        reading, with_blob_fields(plan_scan(snapshot, request).schema, _blobs(snapshot, request), reading.asked.choices)
    )


def run_piece(reading: StreamReading, piece: Piece) -> Iterator[pa.RecordBatch]:
    """The rows of a piece, as batches of just the type that Spark expects."""
    prepare_worker()
    snapshot, places = opened(piece.end)
    names = _names_in(reading, piece.end)
    target = spark_arrow(reading.schema)
    if isinstance(piece.task, Split):
        request = replace(
            _request(snapshot, names, reading.asked),
            fragments=piece.task.fragments,
            ranges=piece.task.ranges or None,
        )
        plan = plan_scan(snapshot, request)
        side, schema, batches = piece.end, plan.schema, run_scan(plan, places)
    else:
        changes = _plan(reading, piece.begin, piece.end)
        request = changes.scan_request(piece.task.side)
        side = piece.end if piece.task.side is Side.AFTER or piece.begin is None else piece.begin
        schema, batches = changes.schema, run_changes(changes, piece.task, _pair(piece.begin, piece.end))
    found, found_places = opened(side)
    blobs = _blobs(found, request)
    # The columns are those of the later version; on the side before, some of its blobs may not have been there.
    later = _blobs(snapshot, _request(snapshot, names, reading.asked))
    casts = _casts(reading, with_blob_fields(schema, later, reading.asked.choices))
    absent = {item.name for item in later} - {item.name for item in blobs}
    form = Reading(side, request, reading.schema, blobs, reading.asked.choices, reading.asked.split_size)
    told = _Told(target, casts, absent, _facts(snapshot))
    for batch in batches:
        for part in with_blobs(batch, form, found, found_places) if blobs else (batch,):
            yield told.shown(part)


@dataclass(frozen=True, slots=True)
class _Told:
    """How rows of one version become those that Spark gets."""

    target: pa.Schema
    casts: dict[str, Cast | None]
    absent: set[str]
    facts: dict[str, pa.Scalar]

    def shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch under the stream's schema."""
        columns = []
        for field in self.target:
            if field.name in self.casts and field.name not in self.absent:
                cast, column = self.casts[field.name], batch.column(field.name)
                columns.append(column if cast is None else cast(column))
            elif field.name in self.facts and field.name in CHANGE_COLUMNS:
                columns.append(pa.repeat(self.facts[field.name], batch.num_rows).cast(field.type))
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.target)


def _facts(snapshot: Snapshot) -> dict[str, pa.Scalar]:
    made = snapshot.manifest.timestamp
    moment = pa.scalar(None if made is None else made // 1000, pa.timestamp("us", "UTC"))
    return {CHANGE_TYPE: pa.scalar(INSERT), VERSION: pa.scalar(snapshot.version, pa.int64()), TIMESTAMP: moment}


def _casts(reading: StreamReading, source: pa.Schema) -> dict[str, Cast | None]:
    """What makes columns as they were read into those that Spark expects; of those that are there."""
    truncate = reading.asked.choices.nanoseconds == "truncate"
    return {
        target.name: cast_for(source.field(target.name), target, truncate=truncate, narrow=True)
        for target in spark_arrow(reading.schema)
        if source.get_field_index(target.name) >= 0
    }


def _request(snapshot: Snapshot, names: tuple[str, ...], asked: ReadOptions) -> ScanRequest:
    request = request_for(snapshot, list(names), batch_size=asked.batch_size)
    request = replace(request, batch_bytes=asked.batch_bytes)
    if ROW_ADDRESS not in names and _blobs(snapshot, request):
        # References to blobs are made of where a row lies.
        address = (ROW_ADDRESS, column_named(ROW_ADDRESS, bound_schema(snapshot.schema)))
        request = replace(request, columns=(*outputs_of(facts_of(snapshot.manifest), request)[0], address))
    return request


def _blobs(snapshot: Snapshot, request: ScanRequest) -> tuple[BlobColumn, ...]:
    return blob_columns(snapshot.schema, request)


def _names_in(reading: StreamReading, address: Address) -> tuple[str, ...]:
    """The columns of the stream that a version has."""
    return _found_names(reading.names, address)


@lru_cache(maxsize=256)
def _found_names(names: tuple[str, ...], address: Address) -> tuple[str, ...]:
    snapshot, _ = opened(address)
    found = []
    for name in names:
        try:
            request_for(snapshot, [name])
        except LanceletError:
            continue
        found.append(name)
    if not found:
        raise InvalidInput(
            "the version has none of the columns of the stream", uri=snapshot.uri, version=snapshot.version
        )
    return tuple(found)


def _plan(reading: StreamReading, begin: Address | None, end: Address) -> ChangesPlan:
    """The changes of a version, with a task for each fragment."""
    asked = reading.asked
    request = ChangesRequest(
        columns=_names_in(reading, end),
        kinds=reading.kinds,
        batch_size=asked.batch_size,
        batch_bytes=asked.batch_bytes,
        rows_per_task=1,
    )
    return _planned(begin, end, request)


@lru_cache(maxsize=256)
def _planned(begin: Address | None, end: Address, request: ChangesRequest) -> ChangesPlan:
    """Planned once in each process."""
    pair, names = _pair(begin, end), request.columns or ()
    if ROW_ADDRESS not in names and _blobs(pair.after, request_for(pair.after, list(names))):
        request = replace(request, columns=(*names, ROW_ADDRESS))
    return plan_changes(pair, request)


def _pair(begin: Address | None, end: Address) -> Pair:
    before, before_places = (None, None) if begin is None else opened(begin)
    after, after_places = opened(end)
    return Pair(before, after, before_places, after_places)
