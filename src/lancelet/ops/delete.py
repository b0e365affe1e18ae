"""Deleting rows by their addresses: new deletion files, and fragments with no row left taken out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.fragments import DeletionFile, Fragment
from lancelet.format.names import deletion_path
from lancelet.format.transaction import COMMIT_MESSAGE, Transaction
from lancelet.rows.addresses import UInt32s, as_uint64s, by_fragment
from lancelet.rows.deletion_files import write_deletions
from lancelet.rows.deletions import DeletionVector, union
from lancelet.table.commit import commit
from lancelet.table.deletions import deletions_of
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = ["DeletePlan", "DeleteResult", "commit_delete", "delete", "plan_delete", "run_delete"]


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """The fragments to delete rows from, and their physical offsets. Pure: whether a row lives is not known yet."""

    read_version: int
    fragments: tuple[Fragment, ...]
    rows: tuple[DeletionVector, ...]


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """What the deletion files written leave of the fragments."""

    updated: tuple[Fragment, ...] = ()
    gone: tuple[int, ...] = ()
    #: Rows that lived until now, by fragment.
    affected_rows: Mapping[int, UInt32s] = field(default_factory=dict, hash=False)

    @property
    def num_rows(self) -> int:
        """How many rows were deleted."""
        return sum(map(len, self.affected_rows.values()))


def plan_delete(snapshot: Snapshot, addresses: npt.ArrayLike) -> DeletePlan:
    """Which rows of which fragments addresses mean; InvalidInput where there is no such row."""
    fragments, rows = [], []
    known = snapshot.manifest.fragments
    for number, offsets, _ in by_fragment(as_uint64s(addresses).ravel()):
        place = known.place_of(number)
        if place is None:
            raise InvalidInput(f"there is no fragment {number}", uri=snapshot.uri, version=snapshot.version)
        item, asked = known[place], DeletionVector(offsets)
        if item.physical_rows is not None and int(asked.rows[-1]) >= item.physical_rows:
            found = f"there is no row {int(asked.rows[-1])} in fragment {number}, which has {item.physical_rows}"
            raise InvalidInput(found, uri=snapshot.uri, version=snapshot.version)
        fragments.append(item)
        rows.append(asked)
    return DeletePlan(snapshot.version, tuple(fragments), tuple(rows))


def run_delete(plan: DeletePlan, places: Places) -> DeleteResult:
    """Write the deletion files. Rows that are deleted already stay so, and count as nobody's."""
    updated: list[Fragment] = []
    gone: list[int] = []
    affected: dict[int, UInt32s] = {}
    for item, asked in zip(plan.fragments, plan.rows, strict=True):
        before = deletions_of(places, item)
        new = np.setdiff1d(asked.rows, before.rows, assume_unique=True)
        if not len(new):
            continue
        affected[item.id] = new
        after = union([before, DeletionVector(new)])
        if len(after) == item.physical_rows:
            gone.append(item.id)
        else:
            updated.append(replace(item, deletion_file=_written(places, plan.read_version, item.id, after)))
    return DeleteResult(tuple(updated), tuple(gone), affected)


def _written(places: Places, version: int, number: int, deleted: DeletionVector) -> DeletionFile:
    kind, data = write_deletions(deleted)
    # Numbers of deletion files are random, so that writers at one version do not meet.
    file = DeletionFile(kind, version, uuid4().int >> 64, len(deleted))
    places.base(None).put(deletion_path(number, file), data)
    return file


def commit_delete(
    snapshot: Snapshot, result: DeleteResult, *, predicate: str = "", message: str | None = None
) -> Outcome:
    """Make the deletions a version; those of others from the same fragments are merged with ours."""
    operation = op.Delete(result.updated, result.gone, predicate)
    properties = {} if message is None else {COMMIT_MESSAGE: message}
    transaction = Transaction(snapshot.version, operation, properties=properties)
    return commit(snapshot, transaction, affected_rows=result.affected_rows)


def delete(snapshot: Snapshot, addresses: npt.ArrayLike, *, predicate: str = "", message: str | None = None) -> Outcome:
    """Delete the rows at some addresses.

    >>> import pyarrow as pa
    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://deleted")
    >>> made = create(store, pa.table({"x": [1, 2, 3]}))
    >>> after = delete(open_snapshot(store), [1])
    >>> open_snapshot(store).count_rows()
    2
    """
    result = run_delete(plan_delete(snapshot, addresses), Places.of(snapshot))
    outcome = commit_delete(snapshot, result, predicate=predicate, message=message)
    # Files that were merged with those of others, or lost to them, are nobody's.
    kept = _deletion_files(outcome)
    written = [(item.id, item.deletion_file) for item in result.updated]
    snapshot.store.delete([deletion_path(number, file) for number, file in written if file and file.id not in kept])
    return outcome


def _deletion_files(outcome: Outcome) -> set[int]:
    """The numbers of the deletion files that a commit put into the table."""
    if not isinstance(outcome, Committed) or not isinstance(outcome.transaction.operation, op.Delete):
        return set()
    fragments = outcome.transaction.operation.updated_fragments
    return {item.deletion_file.id for item in fragments if item.deletion_file is not None}
