"""The sink of ``writeStream.format("lance")``: each batch of a query becomes one version, however often it is tried."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource as spark_datasource
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lancelet.errors import NotFound, Unsupported
from lancelet.ops.dead_attempts import DeadAttempts, remove_dead
from lancelet.ops.journal import ATTEMPTS, JobJournal, job_path, told_files
from lancelet.ops.numbered import Batch, commit_once
from lancelet.ops.write import Mode
from lancelet.spark.options import write_options
from lancelet.spark.sink import check_target, without_address
from lancelet.spark.worker import task_property
from lancelet.spark.write_commit import LEASE, commit_writing, discard_writing
from lancelet.spark.writing import Writing, Written, plan_writing, write_rows
from lancelet.storage.store import Store

__all__ = ["QUERY_ID", "LanceStreamWriter", "StreamWritten"]

#: By which name Spark tells tasks the id of their query, which stays the same when it is started again.
QUERY_ID = "sql.streaming.queryId"


if TYPE_CHECKING:
    _ArrowWriter = DataSourceStreamWriter
else:
    # Spark 4.0 has no such writers: it hands over rows.
    _ArrowWriter = getattr(spark_datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)
#: Rows that are made into one batch where Spark hands over rows.
_ROWS = 4096


@dataclass(frozen=True)
class StreamWritten(WriterCommitMessage):
    """What a task of a batch tells the driver, which has planned nothing itself."""

    written: Written
    writing: Writing
    query: str | None


class LanceStreamWriter(_ArrowWriter):
    """Writes the batches of one query into one table.

    Spark makes one where a batch is planned, which goes to the tasks, and another one where it is committed. The
    table is looked at, and the job written down, when it is sent to the tasks.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self._options, self._schema, self._overwrite = dict(options), schema, overwrite
        self.writing: Writing | None = None

    def __getstate__(self) -> tuple[Writing, StructType]:
        if self.writing is None:
            self.writing = self._planned()
        return self.writing, self._schema

    def __setstate__(self, state: tuple[Writing, StructType]) -> None:
        self.writing, self._schema = state

    def _planned(self) -> Writing:
        check_target(self._options, self._schema)
        address, asked = write_options(self._options)
        mode = Mode.OVERWRITE if self._overwrite else Mode.APPEND
        writing = plan_writing(address, without_address(self._schema), asked, mode=mode)
        store, operation = address.store(), "spark stream"
        place = self._options.get("checkpointlocation")
        if place is not None:
            # A checkpoint is of one query, and that runs once: other jobs of it are those of runs that have died.
            operation = f"spark stream {sha256(place.encode()).hexdigest()[:32]}"
            _remove_dead_runs(store, operation)
        JobJournal(store, operation, lease=LEASE, job=writing.job).beat()
        return writing

    def write(self, iterator: Iterator[Any]) -> StreamWritten:
        """Write the rows of a task, as files that nobody sees."""
        writing, schema = self.__getstate__()
        return StreamWritten(write_rows(writing, _batches(iterator, schema)), writing, task_property(QUERY_ID))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Make what the tasks wrote a version, unless the batch is one already; nothing where there were no rows."""
        told = [item for item in messages if isinstance(item, StreamWritten)]
        if not told:
            return
        writing, query = told[0].writing, told[0].query
        if query is None:
            raise Unsupported(
                "Spark does not tell tasks which query they are of, so that a batch cannot be told from another",
                uri=writing.address.uri,
                hint="use foreachBatch with lancelet.spark.write",
            )
        written = [item.written for item in told]
        if writing.exists and writing.asked is Mode.APPEND and not any(item.fragments for item in written):
            discard_writing(writing)
            return
        batch = Batch(query, batchId)
        writing = replace(writing, properties={**writing.properties, **batch.properties}, same=f"{query}/{batchId}")
        if commit_once(writing.address.store(), batch, lambda: commit_writing(writing, written)) is None:
            discard_writing(writing)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002 - as Spark calls it
        """Remove what the tasks wrote, unless a commit was begun: then the next attempt looks what became of it."""
        for writing in {
            item.writing.job: item.writing for item in messages if isinstance(item, StreamWritten)
        }.values():
            discard_writing(writing)


def _batches(items: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Batches as they come, or made of rows."""
    for first in items:
        if isinstance(first, pa.RecordBatch):
            yield first
            continue
        rows = [first, *islice(items, _ROWS - 1)]
        yield from LocalDataToArrowConversion.convert(rows, schema, False).to_batches()


def _remove_dead_runs(store: Store, operation: str) -> None:
    """Remove what earlier runs of a query have left, and see to it that they do not commit it any more."""
    jobs = [entry.path.rpartition("/")[2] for entry in store.list_from(f"{ATTEMPTS}/")]
    for job in [name.removesuffix(".json") for name in jobs if name.endswith(".json") and "-" not in name]:
        try:
            if json.loads(bytes(store.read_all(job_path(job)))).get("operation") != operation:
                continue
            entries = [entry.path for entry in store.list_from(f"{ATTEMPTS}/{job}-")]
            files = tuple(path for entry in entries for path in told_files(store, entry))
        except (NotFound, ValueError, AttributeError):
            # Gone meanwhile, or not an entry that is of ours.
            continue
        remove_dead(store, [DeadAttempts(job, 0.0, False, files)])
