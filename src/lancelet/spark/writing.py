"""Writing: rows of Spark planned against a table, and written by tasks as files that nobody sees before the commit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import types as spark

from lancelet.errors import AlreadyExists, InvalidInput, NotFound
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.blobs import BLOB_KEY
from lancelet.format.fragments import Fragment
from lancelet.format.versions import DEFAULT_VERSION
from lancelet.ops.data_files import Limits
from lancelet.ops.write import Mode, WritePlan, plan_append, plan_create, plan_overwrite, run_write
from lancelet.spark.address import Address
from lancelet.spark.attempts import telling_store
from lancelet.spark.blob_references import is_reference
from lancelet.spark.fitting import Fit, check_fit, fitted, stored_columns
from lancelet.spark.options import WriteOptions
from lancelet.spark.spark_arrow import spark_arrow
from lancelet.spark.types import FIXED_SIZE, LANCE_TYPE, from_spark, to_spark
from lancelet.spark.worker import prepare_worker
from lancelet.storage.store import Store
from lancelet.table.snapshot import Snapshot, find_latest

__all__ = ["JOB", "Writing", "Written", "plan_writing", "write_rows"]

#: The property of a transaction that names the job which made it.
JOB = "lancelet.job"


@dataclass(frozen=True, slots=True)
class Writing:
    """What all tasks of a write have in common. It pickles."""

    #: The newest version when it was planned; without a version where there was no table.
    address: Address
    job: str
    #: What becomes of rows that are there, also where a table appears only after this was planned.
    asked: Mode
    plan: WritePlan
    #: The columns that tasks hand to the files' writer, blobs as bytes.
    target: pa.Schema
    #: For each of them the place of the rows' column.
    places: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    message: str | None = None
    #: What all writes have in common of which only one may become a version; None where each may.
    same: str | None = None

    @property
    def exists(self) -> bool:
        """Whether there was a table."""
        return self.address.version is not None

    @property
    def fit(self) -> Fit:
        """How rows become the table's."""
        return Fit(self.target, self.places, self.address.storage_options)


@dataclass(frozen=True, slots=True)
class Written:
    """What one attempt at a task has written: fragments that nobody sees before they are committed."""

    attempt: str
    fragments: tuple[Fragment, ...]
    rows: int
    seconds: float

    @property
    def size(self) -> int:
        """Bytes of the data files."""
        return sum(file.file_size or 0 for item in self.fragments for file in item.files)


def plan_writing(
    address: Address,
    schema: spark.StructType,
    options: WriteOptions,
    *,
    mode: Mode = Mode.APPEND,
    properties: Mapping[str, str] | None = None,
) -> Writing:
    """Where rows go and what they become; refused before a byte is written where they do not fit the table."""
    snapshot = _there(address)
    limits = Limits(rows_per_file=options.max_rows_per_file, bytes_per_file=options.max_bytes_per_file)
    if snapshot is None:
        target = _as_stored(schema)
        plan = plan_create(
            target,
            data_storage_version=options.data_storage_version or DEFAULT_VERSION,
            stable_row_ids=options.enable_stable_row_ids,
            limits=limits,
        )
        places = tuple(range(len(target)))
    elif mode is Mode.CREATE:
        hint = "append to it, overwrite it, or name another place"
        raise AlreadyExists("there is a table already", uri=snapshot.uri, version=snapshot.version, hint=hint)
    elif mode is Mode.OVERWRITE:
        target = _as_stored(_like_table(schema, snapshot))
        plan = plan_overwrite(snapshot, target, data_storage_version=options.data_storage_version, limits=limits)
        places = tuple(range(len(target)))
    else:
        target, places = _matched(schema, snapshot)
        plan = plan_append(snapshot, target, data_storage_version=options.data_storage_version, limits=limits)
    job = uuid4().hex
    made = Writing(
        address if snapshot is None else address.pinned(snapshot),
        job,
        mode,
        plan,
        target,
        places,
        {**(properties or {}), JOB: job},
        options.commit_message,
    )
    # Types that do not fit are told here, values that do not by the tasks.
    check_fit(spark_arrow(schema), made.fit)
    return made


def _there(address: Address) -> Snapshot | None:
    try:
        return address.open()
    except NotFound:
        if address.branch is not None or find_latest(address.main_store()) is not None:
            raise
        return None


def _as_stored(schema: spark.StructType) -> pa.Schema:
    """The columns of a new table; references to blobs become blobs."""
    fields = []
    for item, made in zip(schema.fields, from_spark(schema), strict=True):
        if is_reference(made) and (item.metadata or {}).get(BLOB_KEY) == "true":
            made = pa.field(made.name, pa.large_binary(), made.nullable, metadata=made.metadata)
        elif pa.types.is_binary(made.type) and (item.metadata or {}).get(BLOB_KEY) == "true":
            made = made.with_type(pa.large_binary())
        fields.append(made)
    return pa.schema(fields)


def _like_table(schema: spark.StructType, snapshot: Snapshot) -> spark.StructType:
    """The columns with the Lance types of the table's columns that Spark sees as of the same type.

    So a vector stays a vector when its rows are replaced by those of a query, which tells of an array alone.
    """
    known = {field.name: field for field in to_spark(schema_to_arrow(snapshot.schema)).fields}
    fields = []
    for item in schema.fields:
        like = known.get(item.name)
        said = item.metadata or {}
        if like is not None and like.dataType.simpleString() == item.dataType.simpleString():
            hints = {key: like.metadata[key] for key in (LANCE_TYPE, FIXED_SIZE) if key in like.metadata}
            if not any(key in said for key in (LANCE_TYPE, FIXED_SIZE)):
                item = spark.StructField(item.name, item.dataType, item.nullable, {**said, **hints})
        fields.append(item)
    return spark.StructType(fields)


def _matched(schema: spark.StructType, snapshot: Snapshot) -> tuple[pa.Schema, tuple[int, ...]]:
    """The table's columns that rows have, each with the place of theirs: by name, by letters alone where one fits."""
    found: dict[str, int] = {}
    known = {item.name: item for item in snapshot.schema.fields}
    for place, name in enumerate(schema.names):
        alike = [name] if name in known else [other for other in known if other.lower() == name.lower()]
        if len(alike) != 1:
            hint = f"it has: {', '.join(known)}"
            raise InvalidInput(f"the table has no column {name!r}", uri=snapshot.uri, column=name, hint=hint)
        if alike[0] in found:
            raise InvalidInput(f"two columns are given for {alike[0]!r}", uri=snapshot.uri, column=name)
        found[alike[0]] = place
    names = [name for name in known if name in found]
    return stored_columns(snapshot, names), tuple(found[name] for name in names)


def write_rows(writing: Writing, batches: Iterable[pa.RecordBatch], *, store: Store | None = None) -> Written:
    """Write the rows of one task. Files are told to the job's journal before they are begun."""
    prepare_worker()
    began = time.perf_counter()
    telling = telling_store(store or writing.address.store(), writing.job)
    counted = _Counted(fitted(writing.fit, batches))
    rows = pa.RecordBatchReader.from_batches(writing.target, counted)
    fragments = run_write(writing.plan, telling, rows)
    return Written(telling.attempt.id, fragments, counted.rows, time.perf_counter() - began)


class _Counted:
    """Batches, counted as they go by."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch
