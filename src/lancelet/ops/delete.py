"""Deleting rows by their addresses: new deletion files, and fragments with no row left taken out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.format.fragments import DeletionFile, Fragment
from lancelet.format.names import deletion_path
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions, commit_operation
from lancelet.ops.telling import tell_files
from lancelet.rows.addresses import UInt32s, as_uint64s, by_fragment
from lancelet.rows.deletion_files import write_deletions
from lancelet.rows.deletions import DeletionVector, union
from lancelet.storage.store import Store
from lancelet.table.deletions import deletions_of
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.paths import Places
from lancelet.table.snapshot import Snapshot

__all__ = [
    "DeletePlan",
    "DeleteResult",
    "commit_delete",
    "delete",
    "deletion_numbers",
    "discard_deletions",
    "merged",
    "plan_delete",
    "run_delete",
]


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
    #: How many rows lived in fragments that go without a look at their rows.
    unlisted_rows: int = 0

    @property
    def num_rows(self) -> int:
        """How many rows were deleted."""
        return sum(map(len, self.affected_rows.values())) + self.unlisted_rows


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
    """Write the deletion files; none is left when that fails. Rows that are deleted already count as nobody's."""
    updated: list[Fragment] = []
    gone: list[int] = []
    affected: dict[int, UInt32s] = {}
    try:
        for item, asked in zip(plan.fragments, plan.rows, strict=True):
            before = deletions_of(places, item)
            new = asked.rows if not len(before) else np.setdiff1d(asked.rows, before.rows, assume_unique=True)
            if not len(new):
                continue
            affected[item.id] = new
            after = union([before, DeletionVector(new)])
            if len(after) == item.physical_rows:
                gone.append(item.id)
            else:
                updated.append(replace(item, deletion_file=_written(places, plan.read_version, item.id, after)))
    except BaseException:
        discard_deletions(places.base(None), updated)
        raise
    return DeleteResult(tuple(updated), tuple(gone), affected)


def _written(places: Places, version: int, number: int, deleted: DeletionVector) -> DeletionFile:
    kind, data = write_deletions(deleted)
    # Numbers of deletion files are random, so that writers at one version do not meet.
    file = DeletionFile(kind, version, uuid4().int >> 64, len(deleted))
    path = deletion_path(number, file)
    tell_files([path])
    places.base(None).put(path, data)
    return file


def merged(results: Sequence[DeleteResult]) -> DeleteResult:
    """What several tasks left of fragments, each of its own.

    >>> merged([DeleteResult(gone=(1,)), DeleteResult(gone=(2,))]).gone
    (1, 2)
    """
    return DeleteResult(
        tuple(item for result in results for item in result.updated),
        tuple(number for result in results for number in result.gone),
        {number: rows for result in results for number, rows in result.affected_rows.items()},
        sum(result.unlisted_rows for result in results),
    )


def commit_delete(
    snapshot: Snapshot,
    result: DeleteResult,
    *,
    predicate: str = "",
    message: str | None = None,
    options: CommitOptions | None = None,
) -> Outcome:
    """Make the deletions a version; those of others from the same fragments are merged with ours.

    Deletion files that did not come into the table, since they were merged or the commit lost, are removed.
    """
    given = options or CommitOptions(message=message)
    operation = op.Delete(result.updated, result.gone, predicate)
    try:
        outcome = commit_operation(snapshot, operation, given, affected_rows=result.affected_rows)
    except NOT_COMMITTED:
        discard_deletions(snapshot.store, result.updated)
        raise
    discard_deletions(snapshot.store, result.updated, kept=deletion_numbers(outcome))
    return outcome


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
    return commit_delete(snapshot, result, predicate=predicate, message=message)


def discard_deletions(store: Store, fragments: Iterable[Fragment], *, kept: Iterable[int] = ()) -> None:
    """Remove the deletion files that were written for fragments, but for those with some numbers."""
    spared = set(kept)
    written = [(item.id, item.deletion_file) for item in fragments]
    gone = [deletion_path(number, file) for number, file in written if file and file.id not in spared]
    if gone:
        store.delete(gone)


def deletion_numbers(outcome: Outcome) -> set[int]:
    """The numbers of the deletion files that a commit put into the table."""
    if not isinstance(outcome, Committed) or not isinstance(outcome.transaction.operation, op.Delete | op.Update):
        return set()
    fragments = outcome.transaction.operation.updated_fragments
    return {item.deletion_file.id for item in fragments if item.deletion_file is not None}
