"""What happened to rows, through the table object: the changes that versions made, as a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from lancelet.errors import InvalidInput
from lancelet.spark.options import ReadOptions, StreamOptions
from lancelet.spark.reading import plan_reading
from lancelet.spark.stream_offsets import Offset
from lancelet.spark.stream_plan import StreamPlan
from lancelet.spark.stream_reading import Piece, StreamReading, run_piece
from lancelet.spark.stream_source import with_change_columns
from lancelet.spark.table_core import TableCore

__all__ = ["TableFeed"]


class TableFeed(TableCore):
    """What tells of versions row by row."""

    def changes(
        self, fromVersion: int, toVersion: int | None = None, columns: Sequence[str] | None = None
    ) -> DataFrame:
        """What versions from one to another, both included, did to rows: inserted, updated, deleted.

        Besides the columns of the last version there are ``_change_type`` (insert, update_preimage, update_postimage
        or delete), ``_commit_version`` and ``_commit_timestamp``. Version 1 inserted all of its rows. NotFound where a
        version was cleaned up; Unsupported where a table without stable row ids cannot tell which rows are new.

            table.changes(3).where("_change_type = 'delete'").show()
        """
        address = self._handle.address
        newest = address.open() if toVersion is None else replace(address.newest(), version=toVersion).open()
        if not 1 <= fromVersion <= newest.version:
            found = f"fromVersion is {fromVersion}, expected one from 1 to {newest.version}"
            raise InvalidInput(found, uri=newest.uri)
        followed = address.pinned(newest).newest()
        asked = ReadOptions(columns=None if columns is None else tuple(columns), choices=self._handle.choices)
        schema = with_change_columns(plan_reading(followed.pinned(newest), asked).schema)
        reading = StreamReading(followed, replace(asked, columns=None), schema, True)
        options = StreamOptions(mode="changes", starting_version=fromVersion)
        plan = StreamPlan(reading, options, newest, chosen=columns is not None)
        pieces = plan.pieces(plan.first(), Offset(newest.version))
        spark = self._handle.spark
        if not pieces:
            return spark.createDataFrame([], schema)
        numbers = spark.range(0, len(pieces), 1, len(pieces))
        return numbers.mapInArrow(partial(_run, reading, tuple(pieces)), schema)


def _run(
    reading: StreamReading, pieces: Sequence[tuple[Piece, ...]], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in pieces[number]:
                yield from run_piece(reading, piece)
