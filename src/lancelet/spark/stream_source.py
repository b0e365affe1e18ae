"""The source of ``readStream.format("lance")``: what Spark asks of a stream, a few lines around plans each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lancelet.errors import InvalidInput
from lancelet.ops.changes import CHANGE_TYPE
from lancelet.spark.address import Address, opened
from lancelet.spark.options import ReadOptions, StreamOptions, read_options, stream_options
from lancelet.spark.reading import plan_reading
from lancelet.spark.stream_offsets import Offset
from lancelet.spark.stream_plan import StreamPlan
from lancelet.spark.stream_reading import TIMESTAMP, VERSION, StreamReading, run_piece
from lancelet.spark.types import kept_options

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

__all__ = ["LanceStreamReader", "make_stream_reader", "with_change_columns"]

#: What a stream says otherwise, or cannot do.
_HINTS = {
    "version": "say where it begins by starting_version",
    "tag": "say where it begins by starting_version",
    "timestamp": "say where it begins by starting_timestamp",
    "filter": "use where() on the frame",
    "limit": "say how much a batch may have by max_rows_per_batch",
    "offset": "leave it out",
    "fragments": "leave it out",
}


def with_change_columns(schema: StructType) -> StructType:
    """The columns of a table and those that say what happened to a row. Any value may be unknown in some version."""
    fields = [StructField(item.name, item.dataType, True, item.metadata) for item in schema.fields]
    told = [
        StructField(CHANGE_TYPE, StringType(), False),
        StructField(VERSION, LongType(), False),
        StructField(TIMESTAMP, TimestampType(), True),
    ]
    taken = {item.name for item in told} & set(schema.names)
    if taken:
        hint = "leave it out by the option columns"
        raise InvalidInput("the table has a column that changes have, too", column=min(taken), hint=hint)
    return StructType([*fields, *told])


def make_stream_reader(options: Mapping[str, str], pinned: Address | None, schema: StructType) -> LanceStreamReader:
    """The reader of a schema, which is that of the version that was pinned when it was told; else the user's."""
    given = dict(options) if "path" in options else {**kept_options(schema), **options}
    address, asked = read_options(given)
    stream = stream_options(given)
    _check(address, asked)
    chosen = asked.columns is not None or pinned is None
    if pinned is None:
        pinned = address.pinned(address.open())
    # The schema names all columns that are told, also those that the options ask for.
    reading = StreamReading(address, replace(asked, columns=None), schema, stream.mode == "changes")
    # Types that the user asked for in vain are told before a stream starts.
    plain = StructType([field for field in schema.fields if field.name in reading.names])
    plan_reading(pinned, replace(asked, columns=None, with_row_id=False, with_row_address=False), plain)
    return LanceStreamReader(reading, stream, pinned, chosen)


def _check(address: Address, asked: ReadOptions) -> None:
    given: dict[str, object] = {"version": address.version, "tag": address.tag, "timestamp": address.timestamp}
    given |= {
        "filter": asked.filter,
        "limit": asked.limit,
        "offset": asked.offset or None,
        "fragments": asked.fragments,
    }
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(f"a stream has no option {name}", uri=address.uri, hint=_HINTS[name])
    if isinstance(asked.columns, dict):
        raise InvalidInput("a stream computes no columns", uri=address.uri, hint="use select() on the frame")


class LanceStreamReader(DataSourceStreamReader):
    """Tells what happens to a table, version by version."""

    def __init__(self, reading: StreamReading, options: StreamOptions, pinned: Address, chosen: bool) -> None:
        self.reading, self.options, self.pinned, self.chosen = reading, options, pinned, chosen
        self._plan: StreamPlan | None = None
        self._target: Offset | None = None
        #: How far Spark has come, for versions of it that do not say so when they ask for more.
        self._came_to: Offset | None = None

    def __getstate__(self) -> tuple[StreamReading, StreamOptions, Address, bool]:
        return self.reading, self.options, self.pinned, self.chosen

    def __setstate__(self, state: tuple[StreamReading, StreamOptions, Address, bool]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    @property
    def plan(self) -> StreamPlan:
        """What the driver keeps for as long as the stream runs; tasks need none."""
        if self._plan is None:
            self._plan = StreamPlan(self.reading, self.options, opened(self.pinned)[0], chosen=self.chosen)
        return self._plan

    def initialOffset(self) -> dict[str, object]:
        """Where a stream without a checkpoint begins."""
        self._came_to = self.plan.first()
        return self._came_to.as_json()

    def latestOffset(
        self, start: Mapping[str, object] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, object]:
        """How far the next batch goes."""
        target = self._target or self.plan.last()
        begin = self._came_to if start is None else Offset.of(start)
        if begin is None:
            return target.as_json()
        return self.plan.admitted(begin, target, everything=type(limit).__name__ == "ReadAllAvailable").as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """What Spark asks for where the trigger does not say: as much as the options admit."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles, ReadMaxRows

        if self.options.max_rows_per_batch is not None:
            return ReadMaxRows(self.options.max_rows_per_batch)
        if self.options.max_bytes_per_batch is not None:
            return ReadMaxBytes(self.options.max_bytes_per_batch)
        if self.options.max_versions_per_batch is not None:
            return ReadMaxFiles(self.options.max_versions_per_batch)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, object]:
        """How far there is something to tell, for the query's progress."""
        return self.plan.last().as_json()

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on what is there now is all."""
        self._target = self.plan.last()

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition]:
        """What each task of a batch tells."""
        self._came_to = Offset.of(end)
        return [InputPartition(pieces) for pieces in self.plan.pieces(Offset.of(start), self._came_to)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; of none where there is none."""
        for piece in partition.value or ():
            yield from run_piece(self.reading, piece)

    def commit(self, end: Mapping[str, object]) -> None:
        """Nothing is kept for a batch that is done."""


def _with_trigger() -> None:
    """Say that the trigger AvailableNow is known, where Spark has it for such sources."""
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:
        return
    SupportsTriggerAvailableNow.register(LanceStreamReader)


_with_trigger()
