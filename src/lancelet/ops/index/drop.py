"""Dropping an index: a version that does not have it. Its files stay for the versions that do, until a cleanup."""

from __future__ import annotations

from lancelet.format import operations as op
from lancelet.ops.attempts import Attempts, until_committed
from lancelet.ops.committing import CommitOptions, commit_operation
from lancelet.ops.index.describe import segments_named
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot

__all__ = ["drop_index"]


def drop_index(
    snapshot: Snapshot, name: str, *, attempts: Attempts | None = None, options: CommitOptions | None = None
) -> Committed:
    """Commit a version without an index; NoSuchIndex if there is none of the name."""

    def attempt(current: Snapshot) -> tuple[Outcome, None]:
        return commit_operation(current, op.CreateIndex((), segments_named(current, name)), options), None

    return until_committed(snapshot, attempt, attempts)[0]
