"""Reading: what Spark asks of a table, planned by the driver into splits, each carried out by one task as batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import types as spark

from lancelet.expr.tree import Column
from lancelet.query.facts import facts_of
from lancelet.query.plan import outputs_of
from lancelet.query.request import (
    ROW_ADDRESS,
    ROW_ID,
    SYSTEM_COLUMNS,
    Columns,
    ScanRequest,
    bound_schema,
    column_named,
    request_for,
)
from lancelet.query.scan import plan_scan, run_scan
from lancelet.spark.address import Address, opened
from lancelet.spark.blob_references import (
    REFERENCE,
    BlobColumn,
    blob_columns,
    fetched,
    marked,
    references_of,
    windows,
)
from lancelet.spark.casts import Cast, cast_batch, cast_for
from lancelet.spark.choices import Choices
from lancelet.spark.options import ReadOptions
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.spark.splits import Split, row_bytes, splits_of
from lancelet.spark.types import to_spark
from lancelet.spark.worker import prepare_worker
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["Reading", "natural_schema", "plan_reading", "plan_splits", "read_split", "with_blob_fields", "with_blobs"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What all tasks of a read have in common. It pickles."""

    address: Address
    request: ScanRequest
    #: What Spark gets.
    schema: spark.StructType
    blobs: tuple[BlobColumn, ...]
    choices: Choices
    split_size: int


def plan_reading(address: Address, asked: ReadOptions, wanted: spark.StructType | None = None) -> Reading:
    """A read of a pinned version; ``wanted`` is a schema that the user gave, or that Spark's catalog keeps.

    Columns of such a schema are found by name; their types may be any that hold all values of the column.
    """
    snapshot, _ = opened(address)
    request = replace(
        request_for(
            snapshot,
            _columns(snapshot, asked, wanted),
            filter=asked.filter,
            batch_size=asked.batch_size,
            fragments=asked.fragments,
        ),
        batch_bytes=asked.batch_bytes,
        limit=asked.limit,
        offset=asked.offset,
    )
    blobs = blob_columns(snapshot.schema, request)
    if blobs and not _names_address(request):
        # References are made of where a row lies.
        address_column = (_HIDDEN, column_named(ROW_ADDRESS, bound_schema(snapshot.schema)))
        request = replace(request, columns=(*outputs_of(facts_of(snapshot.manifest), request)[0], address_column))
    scanned = _visible(plan_scan(snapshot, request).schema)
    reading = Reading(
        address,
        request,
        wanted or natural_schema(with_blob_fields(scanned, blobs, asked.choices), asked.choices),
        blobs,
        asked.choices,
        asked.split_size,
    )
    # Types that the user asked for in vain are told before a task starts.
    _casts(reading, scanned)
    return reading


#: The name of the row addresses in a scan that nobody asked for them.
_HIDDEN = "\0row address"


def _names_address(request: ScanRequest) -> bool:
    return any(isinstance(expr, Column) and expr.path == (ROW_ADDRESS,) for _, expr in request.columns or ())


def _columns(snapshot: Snapshot, asked: ReadOptions, wanted: spark.StructType | None) -> Columns | None:
    named: Columns | None = list(asked.columns) if isinstance(asked.columns, tuple) else asked.columns
    extra = [name for name, on in ((ROW_ID, asked.with_row_id), (ROW_ADDRESS, asked.with_row_address)) if on]
    if extra and isinstance(named, Mapping):
        named = {**named, **{name: name for name in extra}}
    elif extra:
        known = named if named is not None else [item.name for item in snapshot.schema.fields]
        named = [*known, *(name for name in extra if name not in known)]
    if wanted is None:
        return named
    if isinstance(named, Mapping):
        return {name: named.get(name, f"`{name}`") for name in wanted.names}
    return list(wanted.names)


def _visible(schema: pa.Schema) -> pa.Schema:
    place = schema.get_field_index(_HIDDEN)
    return schema if place < 0 else schema.remove(place)


def natural_schema(schema: pa.Schema, choices: Choices) -> spark.StructType:
    """What stands in Spark for the columns of a scan, those that are known of rows among them."""
    made = to_spark(schema, choices)
    for field in made.fields:
        if field.name in SYSTEM_COLUMNS and schema.field(field.name).type == pa.uint64():
            # Row ids and addresses stay below 2^63; a decimal would be a nuisance.
            field.dataType, field.metadata = spark.LongType(), {}
    return made


def with_blob_fields(schema: pa.Schema, blobs: tuple[BlobColumn, ...], choices: Choices) -> pa.Schema:
    """A schema with what stands for blobs in place of their descriptions."""
    kind = REFERENCE if choices.blobs == "reference" else pa.large_binary()
    for blob in blobs:
        place = schema.get_field_index(blob.name)
        schema = schema.set(place, pa.field(blob.name, kind, True, metadata=marked(schema.field(place))))
    return schema


def _casts(reading: Reading, scanned: pa.Schema) -> list[Cast | None]:
    """What makes columns as they were scanned into those that Spark expects."""
    source = with_blob_fields(scanned, reading.blobs, reading.choices)
    truncate = reading.choices.nanoseconds == "truncate"
    return [
        cast_for(source.field(target.name), target, truncate=truncate, narrow=True)
        for target in spark_arrow(reading.schema)
    ]


def plan_splits(reading: Reading, *, tasks: int = 1) -> list[Split]:
    """What each task reads: about ``split_size`` bytes, or less so that there are ``tasks`` of them where it pays."""
    snapshot, _ = opened(reading.address)
    fragments = snapshot.manifest.fragments
    plan = plan_scan(snapshot, reading.request)
    width = row_bytes(fragments, bound_schema(snapshot.schema), plan.reads.arrow) + 8 * len(plan.reads.system)
    total = float(fragments.physical_rows().sum()) * width
    return splits_of(
        fragments,
        min(reading.split_size, max(int(total / max(tasks, 1)) + 1, _LEAST_SPLIT)),
        width,
        ids=reading.request.fragments,
        offset=reading.request.offset,
        limit=reading.request.limit,
        counted=reading.request.filter is None,
    )


#: Bytes below which a split is not worth a task of its own.
_LEAST_SPLIT = 4 * 2**20


def read_split(reading: Reading, split: Split) -> Iterator[pa.RecordBatch]:
    """The rows of a split, as batches of just the type that Spark expects."""
    prepare_worker()
    snapshot, places = opened(reading.address)
    request = replace(
        reading.request,
        fragments=split.fragments,
        ranges=split.ranges or None,
        limit=split.limit,
        offset=split.offset,
    )
    plan = plan_scan(snapshot, request)
    target = spark_arrow(reading.schema)
    casts = _casts(reading, _visible(plan.schema))
    for batch in run_scan(plan, places):
        for piece in with_blobs(batch, reading, snapshot, places) if reading.blobs else (batch,):
            yield cast_batch(piece.select(target.names), casts, target)


def with_blobs(batch: pa.RecordBatch, reading: Reading, snapshot: Snapshot, places: Places) -> Iterator[pa.RecordBatch]:
    """The batch with references in place of descriptions; or with bytes, and then in pieces of bounded size."""
    hidden = batch.schema.get_field_index(_HIDDEN)
    addresses = batch.column(hidden if hidden >= 0 else batch.schema.get_field_index(_address_name(reading.request)))
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for blob in reading.blobs:
        columns[blob.name] = references_of(columns[blob.name], addresses, blob, snapshot, places)
    if reading.choices.blobs == "reference":
        yield pa.RecordBatch.from_pydict(columns)
        return
    sizes = [windows(columns[blob.name]) for blob in reading.blobs]
    for run in _finest(sizes):
        piece = {name: column.slice(run.start, run.stop - run.start) for name, column in columns.items()}
        for blob in reading.blobs:
            piece[blob.name] = fetched(piece[blob.name], reading.address.storage_options)
        yield pa.RecordBatch.from_pydict(piece)


def _finest(runs: Sequence[Iterable[slice]]) -> Iterator[slice]:
    """Runs that no cut of any of the given ones goes through."""
    cuts = sorted({cut for some in runs for run in some for cut in (run.start, run.stop)})
    yield from (slice(start, stop) for start, stop in pairwise(cuts))


def _address_name(request: ScanRequest) -> str:
    return next(
        name for name, expr in request.columns or () if isinstance(expr, Column) and expr.path == (ROW_ADDRESS,)
    )
