"""Deltas of a dataset: what was inserted, updated and deleted between two of its versions, and who did it."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import pyarrow as pa

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.operation import Transaction
from lancelet.dataset.stored_operation import transaction_from_stored
from lancelet.errors import InvalidInput, NotFound
from lancelet.format.flags import STABLE_ROW_IDS
from lancelet.ops.changes import CHANGE_TYPE, DELETE, ChangesRequest, Pair, plan_changes, run_changes
from lancelet.query.request import CREATED_AT, LAST_UPDATED_AT, ROW_ID, request_for
from lancelet.query.scan import scan
from lancelet.table.snapshot import Snapshot, open_snapshot

__all__ = ["DatasetDelta", "DatasetDeltas", "NegativeVersion", "VersionGone"]

_DELETED = pa.schema({ROW_ID: pa.uint64()})


class NegativeVersion(InvalidInput, OverflowError):
    """A number below 0, or above 64 bits, where one of a version is expected."""


class VersionGone(NotFound, RuntimeError):
    """A version that rows are to be compared with does not exist, or not any more."""


class DatasetDeltas(DatasetCore):
    """What compares versions of a dataset."""

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """What changed after ``begin_version`` up to ``end_version``; ``compared_against`` up to the dataset's own.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://delta", enable_stable_row_ids=True)
        >>> dataset.insert({"x": [3]})
        >>> dataset.delta(compared_against=1).get_inserted_rows().read_all()["x"].to_pylist()
        [3]
        """
        if compared_against is not None:
            return DatasetDelta(DeltaRange(self, _number(compared_against), self.version))
        if begin_version is None and end_version is None:
            raise InvalidInput("neither compared_against nor begin_version and end_version are given")
        if begin_version is None or end_version is None:
            missing = "begin_version" if begin_version is None else "end_version"
            raise InvalidInput(f"{missing} is not given", hint="give both begin_version and end_version")
        return DatasetDelta(DeltaRange(self, _number(begin_version), _number(end_version)))


@dataclass(frozen=True, slots=True)
class DeltaRange:
    """A dataset, the version after which changes count, and the last whose changes do."""

    dataset: DatasetDeltas
    begin: int
    end: int


class DatasetDelta:
    """What changed between two versions, told by the rows of the version that the dataset is at.

    Inserted and updated rows are those that this version still has, chosen by the versions in which they were made
    and last changed: a table needs stable row ids for that. ``lancelet.ops.changes`` compares any two versions, also
    of tables without, and tells how rows were before.
    """

    def __init__(self, delta: DeltaRange) -> None:
        """Between two versions of a dataset; see ``LanceDataset.delta``."""
        self._dataset, self._begin, self._end = delta.dataset, delta.begin, delta.end

    def __repr__(self) -> str:
        return f"DatasetDelta({self._dataset.uri!r}, after version {self._begin} up to {self._end})"

    def list_transactions(self) -> list[Transaction]:
        """What made the versions after the first up to the last; one that left no trace of that is passed over.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://delta-transactions")
        >>> dataset.insert({"x": [3]})
        >>> [type(item.operation).__name__ for item in dataset.delta(compared_against=1).list_transactions()]
        ['Append']
        """
        if self._begin > self._end:
            # Of versions in the wrong order nothing is told, but they have to be there.
            self._opened(self._begin)
        found = (self._opened(version).transaction() for version in range(self._begin + 1, self._end + 1))
        return [transaction_from_stored(item) for item in found if item is not None]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Rows made after the first version, with their ids, and the versions that made and last changed them."""
        return self._rows(_between(CREATED_AT, self._begin, self._end))

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Rows that were there in the first version and were changed after it, as they are now."""
        changed = _between(LAST_UPDATED_AT, self._begin, self._end)
        return self._rows(f"{CREATED_AT} <= {self._begin} AND {changed}")

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """The ids of rows that the first version has and the last has not, whatever happened between."""
        if not self._begin:
            return pa.RecordBatchReader.from_batches(_DELETED, [])
        before = self._version(self._begin)
        if self._begin > self._end:
            raise InvalidInput(f"begin version {self._begin} is newer than end version {self._end}")
        pair = Pair.of(before, self._version(self._end))
        for snapshot in (before, pair.after):
            if not snapshot.manifest.reader_flags & STABLE_ROW_IDS.value:
                text = f"deleted row ids require stable row ids, version {snapshot.version} does not use them"
                raise InvalidInput(text, uri=snapshot.uri, version=snapshot.version)
        plan = plan_changes(pair, ChangesRequest(columns=(ROW_ID,), kinds=(DELETE,)))
        batches = (batch.drop_columns([CHANGE_TYPE]) for task in plan.tasks for batch in run_changes(plan, task, pair))
        return pa.RecordBatchReader.from_batches(
            _DELETED, (pa.record_batch(batch.columns, schema=_DELETED) for batch in batches)
        )

    def _version(self, version: int) -> Snapshot:
        try:
            return self._opened(version)
        except NotFound as error:
            raise VersionGone(error.message, uri=error.uri, version=version, hint=error.hint) from None

    def _opened(self, version: int) -> Snapshot:
        here = self._dataset.snapshot
        return here if version == here.version else open_snapshot(here.store, version=version)

    def _rows(self, condition: str) -> pa.RecordBatchReader:
        dataset = self._dataset
        known = [*(field.name for field in dataset.snapshot.schema.fields), ROW_ID, CREATED_AT, LAST_UPDATED_AT]
        columns = {name: f"`{name}`" for name in dict.fromkeys(known)}
        return scan(dataset.snapshot, request_for(dataset.snapshot, columns, filter=condition), places=dataset.places)


def _between(column: str, begin: int, end: int) -> str:
    return f"{column} > {begin} AND {column} <= {end}"


def _number(version: object) -> int:
    """The number of a version, or 0 for before the first."""
    number = operator.index(version)  # type: ignore[arg-type]
    if not 0 <= number < 2**64:
        raise NegativeVersion(f"there is no version {number}, expected 0 or more")
    return number
