"""DataFrames of Lance tables without a registered source: reads that prune columns and rows, and blobs fetched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from lancelet.errors import InvalidInput
from lancelet.spark.address import Address
from lancelet.spark.blob_references import fetched, windows
from lancelet.spark.choices import Choices
from lancelet.spark.options import ReadOptions
from lancelet.spark.reading import Reading, plan_reading, plan_splits, read_split
from lancelet.spark.splits import Split
from lancelet.spark.worker import prepare_worker
from lancelet.storage.store import Store

__all__ = ["fetch_blobs", "parallelism", "read", "read_frame", "split_frame"]

#: Tasks to aim for where a session does not say how many it runs at once.
_USUAL_TASKS = 8


def read(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    filter: str | None = None,
    version: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    timestamp: str | None = None,
    limit: int | None = None,
    offset: int = 0,
    fragments: Sequence[int] | None = None,
    with_row_id: bool = False,
    with_row_address: bool = False,
    batch_size: int = 8192,
    split_size: int = 64 * 2**20,
    tasks: int | None = None,
    time_type: Literal["long", "string", "time"] = "long",
    nanoseconds: Literal["exact", "truncate", "long"] = "exact",
    blobs: Literal["reference", "bytes"] = "reference",
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A version of a table as a DataFrame: only ``columns`` are read, and only rows for which ``filter`` holds.

    The version is that of now, and stays it, on Connect too, where ``format("lance")`` without the option ``version``
    is of the newest version each time that the frame is used. ``filter`` and the expressions of ``columns`` are
    Lance's SQL. The plan is made here, by the process that calls, and carried out by ``tasks`` or more tasks.

        names = lancelet.spark.read(spark, "s3://bucket/t", columns=["id", "name"], filter="id > 7")
    """
    asked = ReadOptions(
        columns=dict(columns) if isinstance(columns, Mapping) else None if columns is None else tuple(columns),
        filter=filter,
        limit=limit,
        offset=offset,
        fragments=None if fragments is None else tuple(fragments),
        batch_size=batch_size,
        split_size=split_size,
        with_row_id=with_row_id,
        with_row_address=with_row_address,
        choices=Choices(time=time_type, nanoseconds=nanoseconds, blobs=blobs),
    )
    address = Address(
        uri=os.fspath(uri),
        storage_options=dict(storage_options or {}),
        version=version,
        tag=tag,
        branch=branch,
        timestamp=timestamp,
    )
    return read_frame(spark, address.absolute(), asked, tasks=tasks)


def read_frame(spark: SparkSession, address: Address, asked: ReadOptions, *, tasks: int | None = None) -> DataFrame:
    """The same of an address; its version is pinned here."""
    reading = plan_reading(address.pinned(address.open()), asked)
    return split_frame(spark, reading, plan_splits(reading, tasks=tasks or parallelism(spark)))


def split_frame(spark: SparkSession, reading: Reading, splits: Sequence[Split]) -> DataFrame:
    """The rows of splits, each read by a task."""
    if not splits:
        return spark.createDataFrame([], reading.schema)
    numbers = spark.range(0, len(splits), 1, len(splits))
    return numbers.mapInArrow(partial(_read, reading, tuple(splits)), reading.schema)


def parallelism(spark: SparkSession) -> int:
    """About how many tasks a session runs at once."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        # Connect's sessions have no context to ask.
        return _USUAL_TASKS
    return max(spark.sparkContext.defaultParallelism, 1)


def _read(reading: Reading, splits: Sequence[Split], numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from read_split(reading, splits[number])


def fetch_blobs(frame: DataFrame, *columns: str, storage_options: Mapping[str, str] | None = None) -> DataFrame:
    """The frame with the bytes in place of references to blobs, in the columns named; all such columns if none is.

    Bytes are fetched by the tasks, objects by object and no more than a few at once, and go on in small batches.

        pictures = lancelet.spark.fetch_blobs(table.where("label = 'cat'"), "picture")
    """
    names = columns or tuple(field.name for field in frame.schema.fields if _refers(field))
    unfit = [name for name in names if name not in frame.columns or not _refers(frame.schema[name])]
    if unfit or not names:
        found = f"column {unfit[0]!r} holds no references to blobs" if unfit else "no column holds references to blobs"
        raise InvalidInput(found, hint="read the table with blobs='reference'")
    fields = [_of_bytes(field) if field.name in names else field for field in frame.schema.fields]
    run = partial(_fetch, names, dict(storage_options or {}))
    return frame.mapInArrow(run, spark_types.StructType(fields))


def _refers(field: spark_types.StructField) -> bool:
    kind = field.dataType
    return isinstance(kind, spark_types.StructType) and kind.names == ["uri", "position", "size"]


def _of_bytes(field: spark_types.StructField) -> spark_types.StructField:
    return spark_types.StructField(field.name, spark_types.BinaryType(), True, field.metadata)


def _fetch(
    names: Sequence[str], storage_options: Mapping[str, str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    prepare_worker()
    stores: dict[str, Store] = {}
    for batch in batches:
        yield from _fetched(batch, names, storage_options, stores)


def _fetched(
    batch: pa.RecordBatch, names: Sequence[str], storage_options: Mapping[str, str], stores: dict[str, Store]
) -> Iterator[pa.RecordBatch]:
    """The batch in pieces; each column's blobs are bounded by themselves, the finest cuts hold for all."""
    if not names:
        yield batch
        return
    place = batch.schema.get_field_index(names[0])
    for run in windows(batch.column(place)):
        piece = batch.slice(run.start, run.stop - run.start)
        made = fetched(piece.column(place), storage_options, stores).cast(pa.binary())
        field = pa.field(names[0], pa.binary(), True, metadata=batch.schema.field(place).metadata)
        yield from _fetched(piece.set_column(place, field, made), names[1:], storage_options, stores)
