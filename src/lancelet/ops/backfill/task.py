"""Tasks of backfills: the new columns of some fragments, computed batch by batch and written, aligned with their rows.

The scan hands out live rows in the order of the fragment; a file has a value for every physical row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from lancelet.errors import InvalidInput, LanceletError
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.fragments import DataFile, Fragment
from lancelet.ops.backfill.aligned import Feed, aligned
from lancelet.ops.backfill.checkpoint import BatchCheckpoint, Checkpoint
from lancelet.ops.backfill.fields import NewFields
from lancelet.ops.backfill.filled import Filled, SourceKeys
from lancelet.ops.backfill.values import Values
from lancelet.ops.cancellation import check_cancelled
from lancelet.ops.data_files import NewFile, discard
from lancelet.ops.destinations import base_uris
from lancelet.ops.fitting import conformed
from lancelet.ops.job import Cost
from lancelet.ops.working import AtVersion
from lancelet.query.plan import ScanPlan, plan_scan
from lancelet.query.request import ScanRequest
from lancelet.query.scan import run_scan
from lancelet.query.stored import open_fragment
from lancelet.storage.store import Store
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["BackfillTask", "checked_batches", "write_columns"]


@dataclass(frozen=True, slots=True)
class BackfillTask:
    """Write the new columns of some fragments. Without a checkpoint nothing is left of them when that fails."""

    id: str
    cost: Cost
    at: AtVersion
    fragments: tuple[Fragment, ...]
    values: Values
    fields: NewFields
    checkpoint: Checkpoint | None = None

    def run(self, store: Store) -> tuple[Filled, ...]:
        """Read, compute and write, fragment by fragment."""
        snapshot = self.at.open(store)
        filling = _Filling(snapshot, self)
        made: list[Filled] = []
        try:
            for fragment in self.fragments:
                check_cancelled()
                made.append(filling.fill(fragment))
                if self.checkpoint is not None:
                    self.checkpoint.keep(snapshot.store, made[-1])
        except BaseException:
            if self.checkpoint is None:
                discard(snapshot.store, [item.file for item in made if item.file is not None])
            raise
        return tuple(made)


class _Filling:
    """The work of one task."""

    def __init__(self, snapshot: Snapshot, task: BackfillTask) -> None:
        self._snapshot, self._task = snapshot, task
        self._places = Places.of(snapshot)
        self._request: ScanRequest = task.values.request(snapshot)
        self._keys = SourceKeys(snapshot.schema, self._request, task.values.key(), task.fields)

    def fill(self, fragment: Fragment) -> Filled:
        """The new columns of a fragment."""
        stored = open_fragment(self._places, fragment)
        rows, deleted = stored.physical_rows, stored.deleted
        source = self._keys.of(fragment, rows)
        file = None
        if len(deleted) < rows:
            batches = self._values(fragment, f"{source} {fragment.deletion_file}")
            checked = checked_batches(batches, self._task.fields)
            first = next(checked, None)
            if first is None:
                raise InvalidInput("the fragment has live rows, but the scan found none", fragment=fragment.id)
            feed = Feed(first.schema, _chained(first, checked))
            file = write_columns(self._snapshot, self._task.fields, aligned(feed, deleted, rows))
        return Filled(fragment.id, file, rows, source or "", fragment.deletion_file)

    def _values(self, fragment: Fragment, source: str) -> Iterator[pa.RecordBatch]:
        """The values of all live rows, those of batches known before taken from the checkpoint."""
        given, values = self._task.checkpoint, self._task.values
        checkpoint = given if isinstance(given, BatchCheckpoint) else None
        plan: ScanPlan = plan_scan(self._snapshot, _of_one(self._request, fragment.id))
        for number, batch in enumerate(run_scan(plan, self._places)):
            check_cancelled()
            known = None if checkpoint is None else checkpoint.batch(fragment.id, number, source)
            if known is None or known.num_rows != batch.num_rows:
                try:
                    known = values.of(batch)
                except LanceletError as error:
                    raise error.where(fragment=fragment.id) from None
                if checkpoint is not None:
                    checkpoint.keep_batch(fragment.id, number, source, known)
            yield known


def _of_one(request: ScanRequest, fragment: int) -> ScanRequest:
    return replace(request, fragments=(fragment,))


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def checked_batches(batches: Iterable[pa.RecordBatch], fields: NewFields) -> Iterator[pa.RecordBatch]:
    """Batches with columns as files get them; InvalidInput where a column that may not be null is."""
    never = [place for place, item in enumerate(fields.stored.fields) if not item.nullable]
    for batch in conformed(batches, schema_to_arrow(fields.stored)):
        for place in never:
            if batch.column(place).null_count:
                name = fields.stored.fields[place].name
                raise InvalidInput(f"column {name!r} may not be null, but a row has no value", column=name)
        yield batch


def write_columns(snapshot: Snapshot, fields: NewFields, batches: Iterator[pa.RecordBatch]) -> DataFile:
    """A file with columns of a fragment, for all its physical rows; no file appears when that fails."""
    bases = base_uris(snapshot.manifest.base_paths)
    file = NewFile(snapshot.store, fields.stored, fields.version, bases=bases)
    try:
        for batch in batches:
            file.write(batch)
        return file.finish()
    except BaseException:
        file.abort()
        raise
