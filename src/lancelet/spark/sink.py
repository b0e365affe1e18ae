"""The sink ``format("lance")``: what Spark's planner and its tasks call to write, each a few lines around plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructField, StructType

from lancelet.errors import InvalidInput
from lancelet.ops.journal import JobJournal
from lancelet.ops.write import Mode
from lancelet.spark.address import Address
from lancelet.spark.options import write_options
from lancelet.spark.types import ADDRESS
from lancelet.spark.write_commit import LEASE, commit_writing, discard_writing
from lancelet.spark.writing import Writing, Written, plan_writing, write_rows

__all__ = ["LanceWriter", "TaskWritten", "check_target", "make_writer", "without_address"]


@dataclass(frozen=True)
class TaskWritten(WriterCommitMessage):
    """What a task tells the driver."""

    written: Written


def make_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> LanceWriter:
    """The writer of a query's rows; the table is looked at, and the job written down, before a task starts."""
    check_target(options, schema)
    address, asked = write_options(options)
    mode = Mode.OVERWRITE if overwrite else Mode.APPEND
    writing = plan_writing(address, without_address(schema), asked, mode=mode)
    JobJournal(address.store(), "spark write", lease=LEASE, job=writing.job).beat()
    return LanceWriter(writing)


def check_target(options: Mapping[str, str], schema: StructType) -> None:
    """Refuse what would write to another table than the one that is meant, or make such a table in the catalog.

    Spark tells a source neither the name nor the path of the table that an INSERT names. The first column of such a
    table carries its address, but so does that of a table that the rows were selected from, and nothing tells them
    apart.
    """
    if "path" not in options:
        hint = "say it: INSERT INTO name WITH (path = '...') ..., or df.write.format('lance').save('...')"
        raise InvalidInput("Spark does not tell which table is meant", hint=hint)
    carried = _carried(schema)
    if carried in (None, Address(uri=options["path"]).absolute().uri) or options.get("copy", "").lower() == "true":
        return
    hint = (
        "set the option copy=true for save and INSERT, or use lancelet.spark.write; for saveAsTable, make the "
        "table by CREATE TABLE name USING lance LOCATION '...'"
    )
    raise InvalidInput(
        "the first column carries the address of the table in Spark's catalog that it was read from, which "
        "saveAsTable would give to the new table",
        uri=carried,
        column=schema.fields[0].name,
        hint=hint,
    )


def _carried(schema: StructType) -> str | None:
    """Where the table is whose address the first column carries."""
    kept = schema.fields[0].metadata.get(ADDRESS) if schema.fields else None
    return None if kept is None else str(json.loads(kept)["path"])


def without_address(schema: StructType) -> StructType:
    """The schema without the address of the table that its rows come from."""
    if not schema.fields or ADDRESS not in schema.fields[0].metadata:
        return schema
    first = schema.fields[0]
    kept = {key: value for key, value in first.metadata.items() if key != ADDRESS}
    return StructType([StructField(first.name, first.dataType, first.nullable, kept), *schema.fields[1:]])


class LanceWriter(DataSourceArrowWriter):
    """Writes the rows of one query into one table."""

    def __init__(self, writing: Writing) -> None:
        self.writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of a task, as files that nobody sees."""
        return TaskWritten(write_rows(self.writing, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make what the tasks wrote a version; nothing where there were no rows to append."""
        written = [item.written for item in messages if isinstance(item, TaskWritten)]
        if self.writing.exists and self.writing.asked is Mode.APPEND and not any(item.fragments for item in written):
            discard_writing(self.writing)
            return
        commit_writing(self.writing, written)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - as Spark calls it
        """Remove what the tasks wrote, unless a commit was begun: then a cleanup looks what became of it."""
        discard_writing(self.writing)
