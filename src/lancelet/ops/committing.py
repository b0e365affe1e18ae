"""Committing what an operation worked out: what may be said with a commit, and what the table asks for after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from lancelet.errors import AlreadyExists, Conflict, InvalidInput, LanceletError, Unsupported
from lancelet.events import emit
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import Manifest
from lancelet.format.names import NamingScheme, manifest_path
from lancelet.format.operations import Operation
from lancelet.format.transaction import COMMIT_MESSAGE, Transaction
from lancelet.format.versions import FileVersion
from lancelet.storage.store import Store
from lancelet.table.cleanup import auto_cleanup
from lancelet.table.cleanup_policy import auto_cleanup_policy
from lancelet.table.commit import CommitLock, commit
from lancelet.table.conflicts import AffectedRows
from lancelet.table.outcome import Committed, Outcome
from lancelet.table.snapshot import Snapshot, read_snapshot

__all__ = ["NOT_COMMITTED", "CommitOptions", "commit_operation", "commit_transaction", "tidy_up"]


#: Errors after which it is certain that no version names what was written for it. After others nobody knows how the
#: commit ended, so that files stay until a cleanup finds that no version names them.
NOT_COMMITTED = (AlreadyExists, Conflict, InvalidInput, Unsupported)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """What is said with a commit, and how it is made.

    >>> CommitOptions(message="first rows", properties={"job": "7"}).all_properties()
    {'job': '7', '__lance_commit_message': 'first rows'}
    """

    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: How often a version is tried for that others take first.
    max_retries: int = 20
    #: Seconds for all of that; None as the options of the snapshot say.
    timeout: float | None = None
    commit_lock: CommitLock | None = None
    #: Whether the version stands beside the history.
    detached: bool = False

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise InvalidInput(f"max_retries is {self.max_retries}, expected at least 0")
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidInput(f"the timeout is {self.timeout} seconds, expected more than 0")

    def all_properties(self) -> dict[str, str]:
        """The properties, the message among them."""
        return {**self.properties, **({} if self.message is None else {COMMIT_MESSAGE: self.message})}


def commit_operation(
    snapshot: Snapshot,
    operation: Operation,
    options: CommitOptions | None = None,
    *,
    affected_rows: AffectedRows | None = None,
    data_version: FileVersion | None = None,
    reuse_index: IndexMetadata | None = None,
    index_coverage: Mapping[UUID, bytes] | None = None,
) -> Outcome:
    """Commit an operation that was worked out from a snapshot; clean up where the table asks for it then."""
    given = options or CommitOptions()
    transaction = Transaction(snapshot.version, operation, properties=given.all_properties())
    return commit_transaction(
        snapshot,
        transaction,
        given,
        affected_rows=affected_rows,
        data_version=data_version,
        reuse_index=reuse_index,
        index_coverage=index_coverage,
    )


def commit_transaction(
    snapshot: Snapshot,
    transaction: Transaction,
    options: CommitOptions | None = None,
    *,
    affected_rows: AffectedRows | None = None,
    data_version: FileVersion | None = None,
    reuse_index: IndexMetadata | None = None,
    index_coverage: Mapping[UUID, bytes] | None = None,
) -> Outcome:
    """The same with a transaction that says for itself all that is said with it."""
    given = options or CommitOptions()
    outcome = commit(
        snapshot,
        transaction,
        affected_rows=affected_rows,
        data_version=data_version,
        reuse_index=reuse_index,
        index_coverage=index_coverage,
        max_retries=given.max_retries,
        timeout=given.timeout,
        commit_lock=given.commit_lock,
        detached=given.detached,
    )
    if isinstance(outcome, Committed) and not given.detached:
        tidy_up(snapshot.store, outcome.manifest, snapshot.scheme)
    return outcome


def tidy_up(store: Store, committed: Manifest, scheme: NamingScheme) -> None:
    """Clean up as the config asks after a version was committed. The commit is in: whatever fails here is an event."""
    try:
        if auto_cleanup_policy(committed.config, committed.version) is None:
            return
        auto_cleanup(read_snapshot(store, manifest_path(committed.version, scheme), scheme))
    except LanceletError as error:
        emit("cleanup.failed", uri=store.uri, version=committed.version, error=repr(error))
