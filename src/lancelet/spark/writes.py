"""Writes of DataFrames with all of Spark's save modes, and the figures of what was written."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame

from lancelet.errors import AlreadyExists, InvalidInput
from lancelet.ops.journal import JobJournal
from lancelet.ops.write import Mode
from lancelet.spark.address import Address
from lancelet.spark.options import WriteOptions
from lancelet.spark.sink import without_address
from lancelet.spark.write_commit import commit_writing, discard_writing
from lancelet.spark.writing import Writing, Written, plan_writing, write_rows

__all__ = ["WriteFigures", "write"]

SaveMode = Literal["error", "errorifexists", "create", "ignore", "append", "overwrite"]
_MODES = {
    "error": Mode.CREATE,
    "errorifexists": Mode.CREATE,
    "create": Mode.CREATE,
    "ignore": Mode.CREATE,
    "append": Mode.APPEND,
    "overwrite": Mode.OVERWRITE,
}


@dataclass(frozen=True, slots=True)
class WriteFigures:
    """What a write brought: the version that it made, and how much is in it."""

    version: int
    num_rows: int
    num_files: int
    num_bytes: int
    #: Seconds that all tasks took together.
    task_seconds: float


def write(
    frame: DataFrame,
    uri: str | os.PathLike[str],
    *,
    mode: SaveMode = "error",
    branch: str | None = None,
    max_rows_per_file: int = 2**20,
    max_bytes_per_file: int = 90 * 2**30,
    data_storage_version: str | None = None,
    enable_stable_row_ids: bool = False,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteFigures | None:
    """Write a frame into a table, with one commit at the end; None where ``ignore`` finds a table there.

    ``append`` and ``overwrite`` make a table that is missing; ``enable_stable_row_ids`` is for new tables. Columns
    are found by name. On classic Spark and Connect; the process that calls plans and commits.

        figures = lancelet.spark.write(frame, "s3://bucket/t", mode="append")
    """
    asked = _MODES.get(mode.lower())
    if asked is None:
        raise InvalidInput(f"mode is {mode!r}, expected one of {', '.join(_MODES)}")
    options = WriteOptions(
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_storage_version=data_storage_version,
        enable_stable_row_ids=enable_stable_row_ids,
        commit_message=commit_message,
    )
    address = Address(uri=os.fspath(uri), storage_options=dict(storage_options or {}), branch=branch).absolute()
    schema = without_address(frame.schema)
    try:
        writing = plan_writing(address, schema, options, mode=asked, properties=transaction_properties)
        return _carried_out(frame, writing)
    except AlreadyExists:
        if mode.lower() == "ignore":
            return None
        raise


def _carried_out(frame: DataFrame, writing: Writing) -> WriteFigures:
    with JobJournal(writing.address.store(), "spark write", job=writing.job) as journal:
        try:
            answers = frame.mapInArrow(partial(_write, writing), "written binary").collect()
        except BaseException:
            discard_writing(writing, journal=journal)
            raise
        written: list[Written] = [pickle.loads(bytes(row.written)) for row in answers]
        outcome = commit_writing(writing, written, journal=journal)
    return WriteFigures(
        outcome.version,
        sum(item.rows for item in written),
        sum(len(item.fragments) for item in written),
        sum(item.size for item in written),
        sum(item.seconds for item in written),
    )


def _write(writing: Writing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    written = write_rows(writing, batches)
    yield pa.RecordBatch.from_pydict({"written": pa.array([pickle.dumps(written)], pa.binary())})
