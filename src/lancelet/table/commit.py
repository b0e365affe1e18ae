"""Committing: write the transaction down, see what others committed, build the next manifest, put it if it is absent.

    list the versions after the one we know   read those there are   check for conflicts, rebase
    put _transactions/<read version>-<uuid>.txn
    put_if_absent _versions/<next>.manifest     the moment of truth: of all writers one succeeds
    put _versions/latest_version_hint.json      best effort

Whether an attempt whose answer was lost succeeded is seen by looking: the manifest at that version holds our
transaction, or another's, or is not there.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from uuid import UUID

from lancelet.errors import AlreadyExists, InvalidInput, LanceletError, NotFound, Storage, Unsupported
from lancelet.errors import Conflict as ConflictError
from lancelet.events import emit
from lancelet.format import operations as op
from lancelet.format.flags import SPILLED_LINEAGE, check_writable, flags_for
from lancelet.format.fragments import Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import Manifest, data_version
from lancelet.format.manifest_file import parse_manifest_file, write_manifest_file
from lancelet.format.names import (
    DETACHED,
    HINT,
    TRANSACTIONS,
    NamingScheme,
    manifest_path,
    new_detached_version,
    transaction_name,
    write_hint,
)
from lancelet.format.transaction import Transaction, write_transaction
from lancelet.format.versions import FileVersion
from lancelet.storage.paths import LOCAL_SCHEMES, split_uri
from lancelet.storage.store import Store
from lancelet.table.build import Built, Settings, first_manifest, next_manifest
from lancelet.table.clashes import touched_fragments
from lancelet.table.conflicts import AffectedRows, Ours, check_conflicts, operation_name
from lancelet.table.index_upkeep import FRAGMENT_REUSE
from lancelet.table.outcome import Committed, Conflict, Outcome
from lancelet.table.paths import Places
from lancelet.table.rebase import rebase
from lancelet.table.repair import repaired
from lancelet.table.snapshot import Snapshot, find_latest, newer_manifests, open_snapshot, read_snapshot
from lancelet.table.spilled import needed_lineage

__all__ = ["CommitLock", "commit", "create_table", "kept_dictionaries", "publish"]

#: Given the version about to be written, returns what holds off other writers that use the same lock.
CommitLock = Callable[[int], AbstractContextManager[object]]

_SHORTEST_WAIT, _LONGEST_WAIT = 0.002, 5.0


@dataclass(slots=True)
class _Attempts:
    """Bounded patience: how often, and until when, a version is tried for."""

    limit: int
    deadline: float
    #: About what one attempt takes: waits are counted in it.
    unit: float = _SHORTEST_WAIT
    made: int = 0
    began: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        """Count an attempt that begins now."""
        self.made += 1
        self.began = time.monotonic()

    def again(self) -> bool:
        """Wait at random, longer each time, and say whether there may be another attempt."""
        self.unit = max(self.unit, time.monotonic() - self.began)
        wait = random.uniform(0, min(self.unit * 2 ** min(self.made, 10), _LONGEST_WAIT))
        if self.made >= self.limit or time.monotonic() + wait > self.deadline:
            return False
        time.sleep(wait)
        return True


def commit(
    snapshot: Snapshot,
    transaction: Transaction,
    *,
    affected_rows: AffectedRows | None = None,
    data_version: FileVersion | None = None,
    reuse_index: IndexMetadata | None = None,
    index_coverage: Mapping[UUID, bytes] | None = None,
    max_retries: int = 20,
    timeout: float | None = None,
    commit_lock: CommitLock | None = None,
    detached: bool = False,
) -> Outcome:
    """Carry out a transaction that was worked out from ``snapshot``, on top of what others have committed since.

    ``affected_rows`` are the physical offsets of rows that a Delete or Update takes from its fragments: with them it
    may pass others that took other rows. ``max_retries`` 0 for an Overwrite means: only if nobody was faster.
    A detached version stands beside the history and conflicts with nothing.
    """
    if transaction.read_version != snapshot.version:
        found = f"the transaction was worked out from version {transaction.read_version}"
        raise InvalidInput(f"{found}, not from the snapshot's {snapshot.version}", uri=snapshot.uri)
    settings = Settings(
        timestamp=0, data_version=data_version, reuse_index=reuse_index, index_coverage=index_coverage or {}
    )
    if detached:
        return _commit_detached(snapshot, transaction, settings)
    if snapshot.version & DETACHED:
        raise InvalidInput(
            "no version of the history follows a detached one", uri=snapshot.uri, version=snapshot.version
        )
    patience = snapshot.options.retries.deadline if timeout is None else timeout
    attempts = _Attempts(max(max_retries, 1), time.monotonic() + patience)
    ours = Ours(transaction.operation, _read_fragments(snapshot, transaction.operation), affected_rows)
    strict = max_retries == 0 and isinstance(transaction.operation, op.Overwrite)
    current = snapshot
    while True:
        attempts.start()
        newest = _catch_up(current, ours, transaction, strict=strict)
        if not isinstance(newest, Snapshot):
            return newest
        current = newest
        if _told_otherwise(snapshot, current, transaction.operation, reuse_index):
            return _conflict(current, retryable=True, reason="both tell where rows went")
        rebased = rebase(ours, transaction, current)
        if rebased.clash is not None:
            return _conflict(current, retryable=rebased.clash.retryable, reason=rebased.clash.reason)
        built = _build(current, rebased.transaction, settings)
        if _publish(snapshot.store, built, rebased.transaction, scheme=current.scheme, lock=commit_lock):
            return Committed(built.manifest, rebased.transaction, attempts.made)
        emit("commit.lost", uri=snapshot.uri, version=built.manifest.version, attempt=attempts.made)
        if not attempts.again():
            break
    winner = _catch_up(current, ours, transaction, strict=False)
    if not isinstance(winner, Snapshot):
        return winner
    return _conflict(winner, retryable=True, reason=f"{attempts.made} attempts were all overtaken")


def _told_otherwise(
    snapshot: Snapshot, current: Snapshot, operation: op.Operation, reuse_index: IndexMetadata | None
) -> bool:
    """Whether ours writes the fragment reuse index anew, and is not made from the one that there is now."""
    changed = operation.new_indexes + operation.removed_indexes if isinstance(operation, op.CreateIndex) else ()
    if reuse_index is None and all(item.name != FRAGMENT_REUSE for item in changed):
        return False
    before, now = (
        {item.uuid for item in seen.indexes() if item.name == FRAGMENT_REUSE} for seen in (snapshot, current)
    )
    return before != now


def _publish(
    store: Store, built: Built, transaction: Transaction, *, scheme: NamingScheme, lock: CommitLock | None
) -> bool:
    if lock is None:
        return publish(store, built, transaction, scheme=scheme)
    version, done = built.manifest.version, False
    # A lock says by a Conflict that somebody else has the version, and is told by one if that is so.
    with suppress(ConflictError), lock(version):
        done = publish(store, built, transaction, scheme=scheme)
        if not done:
            raise ConflictError("another writer published the version first", version=version, retryable=True)
    return done


def _read_fragments(snapshot: Snapshot, operation: op.Operation) -> dict[int, Fragment]:
    if not isinstance(operation, op.Delete | op.Update):
        return {}
    fragments = snapshot.manifest.fragments
    places = {number: fragments.place_of(number) for number in touched_fragments(operation)}
    return {number: fragments[place] for number, place in places.items() if place is not None}


def _catch_up(current: Snapshot, ours: Ours, transaction: Transaction, *, strict: bool) -> Snapshot | Outcome:
    """The newest version, if ours may follow all between; else the conflict, or our own commit if it is in already."""
    newer = sorted(newer_manifests(current.store, current.version))
    if not newer:
        return current
    known = current.version
    for version, path, scheme in newer:
        try:
            seen = read_snapshot(current.store, path, scheme, options=current.options)
        except NotFound:
            # Cleaned up between the listing and the reading: what it did is lost.
            continue
        if version != known + 1:
            return _gap(ours, known + 1)
        theirs = seen.transaction()
        if theirs is not None and theirs.uuid == transaction.uuid and theirs.uuid:
            return Committed(seen.manifest, theirs)
        if strict:
            return _conflict(seen, retryable=False, reason="somebody else was faster")
        clash = check_conflicts(ours, [(version, theirs)])
        if clash is not None:
            return clash
        current, known = seen, version
    return current


def _gap(ours: Ours, version: int) -> Conflict:
    reason = f"{operation_name(ours.operation)} cannot be checked against a version that was cleaned up"
    return Conflict(False, version, operation_name(None), reason)


def _conflict(seen: Snapshot, *, retryable: bool, reason: str) -> Conflict:
    theirs = seen.transaction()
    return Conflict(retryable, seen.version, operation_name(None if theirs is None else theirs.operation), reason)


def _build(current: Snapshot, transaction: Transaction, settings: Settings, *, version: int | None = None) -> Built:
    """The next manifest, with the transaction's file written; nothing of it is visible yet."""
    check_writable(current.manifest)
    _check_dictionaries(current, transaction.operation)
    name = transaction_name(transaction.read_version, transaction.uuid)
    spilled = _spilled_lineage(current, transaction.operation)
    said = replace(settings, timestamp=time.time_ns(), transaction_file=name, spilled=spilled)
    restored, source = None, current
    if isinstance(transaction.operation, op.Restore):
        source = open_snapshot(current.store, version=transaction.operation.version, options=current.options)
        restored = Built(source.manifest, source.indexes())
    built = next_manifest(current.manifest, current.indexes(), transaction, said, version=version, restored=restored)
    manifest = repaired(current.store, current.manifest, built.manifest, transaction.operation)
    if manifest is not built.manifest:
        # What was counted may have emptied fragments.
        reader, writer = flags_for(manifest, indexes=built.indexes, transaction_file=True)
        manifest = replace(manifest, reader_flags=reader, writer_flags=writer)
    built = Built(manifest, built.indexes, kept_dictionaries(source, manifest), write_transaction(transaction))
    current.store.put(f"{TRANSACTIONS}/{name}", built.transaction)
    return built


def _spilled_lineage(current: Snapshot, operation: op.Operation) -> Mapping[int, Fragment]:
    if not current.manifest.reader_flags & SPILLED_LINEAGE.value:
        return {}
    return needed_lineage(Places.of(current), current.manifest.fragments, operation)


def _check_dictionaries(current: Snapshot, operation: op.Operation) -> None:
    """A schema of 0.1 says where in the manifest's file values are; those of another schema are not there."""
    schema = operation.schema if isinstance(operation, op.Overwrite) else None
    held = [] if schema is None else [item.name for item in schema.walk() if item.dictionary and item.dictionary.length]
    if held and data_version(current.manifest) is FileVersion.V0_1:
        raise Unsupported(
            "the values of the column are to be in the manifest, as 0.1 tables have it, and are not given",
            uri=current.uri,
            column=held[0],
            hint="write the rows into a new table",
        )


def kept_dictionaries(source: Snapshot, manifest: Manifest) -> bytes:
    """What a manifest made from another takes over of its file: the values of dictionary columns of 0.1 tables."""
    return source.file.dictionary_values() if data_version(manifest) is FileVersion.V0_1 else b""


def publish(store: Store, built: Built, transaction: Transaction, *, scheme: NamingScheme = NamingScheme.V2) -> bool:
    """Make a manifest the version that it says; False if somebody else's is.

    Raises what the store said where even looking does not tell whether it was made.
    """
    path = manifest_path(built.manifest.version, scheme)
    data = _manifest_file(built)
    try:
        store.put_if_absent(path, data)
    except AlreadyExists:
        if not _is_ours(store, path, data, transaction):
            return False
    except Storage as error:
        # The answer may have been lost on its way, or the request: the store knows.
        settled = _settle(store, path, data, transaction, error)
        if not settled:
            return False
    emit("commit.published", uri=store.uri, version=built.manifest.version)
    _hint(store, built.manifest.version)
    return True


def _manifest_file(built: Built) -> bytes:
    return write_manifest_file(
        built.manifest,
        indexes=built.indexes,
        transaction=built.transaction,
        dictionary_values=built.dictionary_values,
    )


def _hint(store: Store, version: int) -> None:
    """Tell which version is the newest, if that is easily done: nobody relies on it."""
    with suppress(LanceletError):
        if split_uri(store.uri)[0] in LOCAL_SCHEMES:
            # Some file systems write a file out at once when it is renamed over another: 1 to 3 ms for 15 bytes.
            store.delete([HINT])
        store.put(HINT, write_hint(version))


def _settle(store: Store, path: str, data: bytes, transaction: Transaction, error: Storage) -> bool:
    try:
        return _is_ours(store, path, data, transaction)
    except NotFound:
        # The request may still be on its way: only a second one that is answered shows how it ended.
        try:
            store.put_if_absent(path, data)
        except AlreadyExists:
            return _is_ours(store, path, data, transaction)
        except Storage:
            raise error.where(hint="the commit may or may not have been made; look before trying again") from None
        return True


def _is_ours(store: Store, path: str, data: bytes, transaction: Transaction) -> bool:
    found = store.read_all(path)
    if bytes(found) == data:
        return True
    theirs = parse_manifest_file(found).transaction()
    return theirs is not None and bool(transaction.uuid) and theirs.uuid == transaction.uuid


def _commit_detached(snapshot: Snapshot, transaction: Transaction, settings: Settings) -> Committed:
    built = _build(snapshot, transaction, settings, version=new_detached_version())
    data = _manifest_file(built)
    snapshot.store.put_if_absent(manifest_path(built.manifest.version), data)
    return Committed(built.manifest, transaction)


def create_table(
    store: Store,
    transaction: Transaction,
    *,
    stable_row_ids: bool = False,
    data_version: FileVersion | None = None,
    scheme: NamingScheme = NamingScheme.V2,
    commit_lock: CommitLock | None = None,
) -> Outcome:
    """Make the first version of a table. A table that is there, or that another makes meanwhile, is a conflict."""
    if (there := find_latest(store)) is not None:
        return _conflict(read_snapshot(store, there.path, there.scheme), retryable=False, reason="the table is there")
    name = transaction_name(transaction.read_version, transaction.uuid)
    settings = Settings(
        timestamp=time.time_ns(), transaction_file=name, stable_row_ids=stable_row_ids, data_version=data_version
    )
    built = first_manifest(transaction, settings)
    nothing = replace(built.manifest, version=0, max_fragment_id=None)
    counted = repaired(store, nothing, built.manifest, transaction.operation)
    built = replace(built, manifest=counted, transaction=write_transaction(transaction))
    store.put(f"{TRANSACTIONS}/{name}", built.transaction)
    if _publish(store, built, transaction, scheme=scheme, lock=commit_lock):
        return Committed(built.manifest, transaction)
    return _conflict(open_snapshot(store, version=1), retryable=False, reason="another made the table")
