"""Making an index: planned as segments over groups of fragments, built by tasks, committed as one new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from lancelet.format import operations as op
from lancelet.format.indexes import IndexMetadata
from lancelet.index.kinds import kind_named
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import NOT_COMMITTED, CommitOptions, commit_operation
from lancelet.ops.executor import run_plan
from lancelet.ops.index.columns import check_name, default_name, indexed_column
from lancelet.ops.index.errors import NotIndexable
from lancelet.ops.index.segments import discard_segment, groups_of, plan_segments
from lancelet.ops.job import Plan, Result
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["commit_create_index", "create_scalar_index", "plan_create_index"]


def plan_create_index(
    snapshot: Snapshot,
    path: str,
    kind: str,
    *,
    name: str | None = None,
    replace: bool = True,
    train: bool = True,
    fragments: Sequence[int] | None = None,
    segments: int = 1,
    parameters: Mapping[str, object] | None = None,
    uuid: UUID | None = None,
) -> Plan[IndexMetadata]:
    """An index of a type over a column, in so many segments; over some fragments only, if they are named.

    Without ``train`` the index is empty, and knows how it is to be built once there is reason to.
    """
    wanted = kind_named(kind)
    column = indexed_column(snapshot, path)
    indexes = snapshot.indexes()
    called = default_name(column, indexes, wanted.type_url) if name is None else name
    check_name(called, column, indexes, replace=replace)
    if not wanted.takes(column.type):
        found = f"a {wanted.name} index is over {wanted.taken}, the column is {column.type}"
        raise NotIndexable(found, column=column.path)
    groups = groups_of(snapshot, fragments, segments) if train else []
    return plan_segments(snapshot, column, wanted, called, groups or [()], parameters=dict(parameters or {}), uuid=uuid)


def commit_create_index(
    snapshot: Snapshot, results: Sequence[Result[IndexMetadata]], options: CommitOptions | None = None
) -> Outcome:
    """Make segments a version. They replace whatever index of their name there was."""
    new = tuple(result.value for result in results)
    names = {item.name for item in new}
    gone = tuple(item for item in snapshot.indexes() if item.name in names)
    return commit_operation(snapshot, op.CreateIndex(new, gone), options)


def create_scalar_index(
    snapshot: Snapshot,
    path: str,
    kind: str,
    *,
    name: str | None = None,
    replace: bool = True,
    train: bool = True,
    segments: int = 1,
    parameters: Mapping[str, object] | None = None,
    uuid: UUID | None = None,
    attempts: Attempts | None = None,
    options: CommitOptions | None = None,
) -> Committed:
    """Make an index over a column: planned, built here, and committed; built anew where others moved its rows.

    >>> import pyarrow as pa
    >>> from lancelet.ops.write import create
    >>> from lancelet.storage import open_store
    >>> from lancelet.table.snapshot import open_snapshot
    >>> store = open_store("memory://indexed")
    >>> made = create(store, pa.table({"x": [3, 1, 2]}))
    >>> create_scalar_index(open_snapshot(store), "x", "BTREE").version
    2
    >>> [item.name for item in open_snapshot(store).indexes()]
    ['x_idx']
    """

    def attempt(current: Snapshot) -> tuple[Outcome, None]:
        plan = plan_create_index(
            current,
            path,
            kind,
            name=name,
            replace=replace,
            train=train,
            segments=segments,
            parameters=parameters,
            uuid=uuid,
        )
        results = run_plan(plan, current.store, options=current.options)
        return _committed(current, results, options), None

    return until_committed(snapshot, attempt, attempts)[0]


def _committed(snapshot: Snapshot, results: Sequence[Result[IndexMetadata]], options: CommitOptions | None) -> Outcome:
    """Commit, and remove the files where it is certain that no version names them."""
    try:
        outcome = commit_create_index(snapshot, results, options)
    except NOT_COMMITTED:
        _discard(snapshot, results)
        raise
    if isinstance(outcome, Conflict):
        _discard(snapshot, results)
    return outcome


def _discard(snapshot: Snapshot, results: Sequence[Result[IndexMetadata]]) -> None:
    for result in results:
        discard_segment(snapshot.store, result.value.uuid)
