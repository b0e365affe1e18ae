"""Columns through the table object: put in by tasks of Spark, fragment by fragment, carried on after a failure."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelet.ops.attempts import until_committed
from lancelet.ops.backfill.backfill import BackfillPlan, commit_backfill, plan_backfill
from lancelet.ops.backfill.checkpoint import StoreCheckpoint
from lancelet.ops.backfill.filled import Filled
from lancelet.ops.backfill.values import Values
from lancelet.ops.committing import CommitOptions
from lancelet.ops.data_files import discard
from lancelet.ops.working import TASK_BYTES, bytes_of
from lancelet.spark.column_values import NewColumns, column_values
from lancelet.spark.frames import parallelism
from lancelet.spark.handle import Handle
from lancelet.spark.jobs import run_tasks
from lancelet.spark.row_changes import PATIENCE
from lancelet.spark.table_core import TableCore
from lancelet.table.outcome import Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["ColumnFigures", "TableColumns"]

#: Tasks for each that runs at once: one that takes long keeps fewer waiting.
_SHARES = 4


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """What new columns brought: the version that they made, and how much is in them."""

    version: int
    names: tuple[str, ...]
    num_fragments: int
    #: Fragments whose values an earlier run had left, and that were not computed again.
    num_fragments_kept: int
    num_files: int
    num_bytes: int
    num_attempts: int
    #: From the call to the commit, and what all tasks took together.
    seconds: float
    task_seconds: float


class TableColumns(TableCore):
    """What adds columns."""

    def addColumns(
        self,
        columns: NewColumns,
        *,
        readColumns: Sequence[str] | None = None,
        outputSchema: pa.Schema | None = None,
        batchSize: int = 1024,
        checkpoint: str | None = None,
        message: str | None = None,
    ) -> ColumnFigures:
        """Put columns in, computed by tasks of Spark, and commit them all at once.

        A column is given by an expression in Lance's SQL, or by a function that gets ``readColumns`` of a
        ``pyarrow.RecordBatch`` at a time, ``batchSize`` rows of one fragment, and returns the column's values. A
        function alone, as ``lancelet.batch_udf`` takes it, makes several columns. Without ``outputSchema`` functions
        are tried on the first rows to learn the types.

        Each fragment that is done is noted beside the table. The same call carries on from there after a failure,
        whichever process makes it; ``checkpoint`` is the name by which the notes are found, by default one made of
        the expressions and of the functions' code. Where others append, delete or compact meanwhile, what is done
        counts for every fragment that is still there; only new ones are computed.

            table.addColumns({"area": "width * height", "mean": lambda batch: means(batch["pixels"])})
        """
        handle = self._writable()
        values = column_values(
            columns, self.dataset(), read=readColumns, output_schema=outputSchema, batch_size=batchSize
        )
        kept = StoreCheckpoint(checkpoint or f"columns-{hashlib.sha256(values.key().encode()).hexdigest()[:24]}")
        return _carried_out(handle, values, values.names, kept, message)


def _carried_out(
    handle: Handle, values: Values, names: tuple[str, ...], checkpoint: StoreCheckpoint, message: str | None
) -> ColumnFigures:
    began = time.perf_counter()
    done: list[Filled] = []
    useless: list[Filled] = []
    counted = {"seconds": 0.0, "kept": 0}
    newest = handle.address.newest()
    first = newest.open()

    def attempt(current: Snapshot) -> tuple[Outcome, BackfillPlan]:
        known = {item.fragment for item in done}
        plan = plan_backfill(current, values, done=done, checkpoint=checkpoint, task_bytes=_task_bytes(handle, current))
        good = {item.fragment for item in plan.done}
        useless.extend(item for item in done if item.fragment not in good)
        counted["kept"] += len(good - known)
        done[:] = plan.done
        # Their files are the checkpoint's, not those of one run: no journal is told of them.
        for _, result in run_tasks(
            handle.spark, plan.plan, handle.address.pinned(current), None, progress=handle.progress
        ):
            done.extend(result.value)
            counted["seconds"] += result.seconds
        return commit_backfill(current, plan.fields, done, options=CommitOptions(message=message)), plan

    committed, _, attempts = until_committed(first, attempt, PATIENCE)
    discard(first.store, [item.file for item in useless if item.file is not None])
    checkpoint.clear(first.store)
    files = [item.file for item in done if item.file is not None]
    return ColumnFigures(
        committed.version,
        names,
        len(done),
        int(counted["kept"]),
        len(files),
        sum(file.file_size or 0 for file in files),
        attempts,
        time.perf_counter() - began,
        counted["seconds"],
    )


def _task_bytes(handle: Handle, snapshot: Snapshot) -> int:
    """Bytes of the fragments of a task: as many tasks as keep all of Spark busy to the end."""
    total = sum(map(bytes_of, snapshot.manifest.fragments))
    return min(TASK_BYTES, max(total // (_SHARES * parallelism(handle.spark)), 1))
