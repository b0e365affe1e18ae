"""Transactions of a dataset: those that made its versions, and commits of ones that users put together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Self, TypedDict

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.fragments.metadata import FragmentMetadata
from lancelet.dataset.location import StorageOptions, TableLocation, refuse_namespace, uri_of
from lancelet.dataset.operation import LanceOperation, Transaction
from lancelet.dataset.references import version_number
from lancelet.dataset.stored_operation import operation_to_stored, transaction_from_stored, transaction_to_stored
from lancelet.errors import InvalidInput, NotFound, Unsupported
from lancelet.format import operations as op
from lancelet.format.names import NamingScheme
from lancelet.format.transaction import COMMIT_MESSAGE
from lancelet.format.transaction import Transaction as Stored
from lancelet.ops.committing import CommitOptions, commit_transaction
from lancelet.storage.store import Store
from lancelet.table.commit import CommitLock, create_table
from lancelet.table.outcome import committed
from lancelet.table.snapshot import Snapshot, find_latest, open_snapshot

__all__ = ["COMMIT_TIMEOUT", "BulkCommitResult", "DatasetTransactions"]

COMMIT_TIMEOUT = timedelta(minutes=30)
_WITHOUT_VERSION = (LanceOperation.Overwrite, LanceOperation.Restore)


class BulkCommitResult(TypedDict):
    """A dataset at the version that several transactions made together, and the one they became."""

    dataset: DatasetTransactions
    merged: Transaction


class DatasetTransactions(DatasetCore):
    """What commits did, and commits."""

    def read_transaction(self, version: int) -> Transaction | None:
        """What made a version; None where its writer left no trace of that.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://transactions")
        >>> dataset.insert({"x": [3]})
        >>> [type(dataset.read_transaction(version).operation).__name__ for version in (1, 2)]
        ['Overwrite', 'Append']
        """
        number = version_number(version)
        here = self._snapshot
        found = here if number == here.version else open_snapshot(here.store, version=number, options=here.options)
        stored = found.transaction()
        return None if stored is None else transaction_from_stored(stored)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """What made the last so many versions up to the dataset's own, that first; versions cleaned up end the list."""
        if recent_transactions < 0:
            raise InvalidInput(f"recent_transactions is {recent_transactions}, expected at least 0")
        found: list[Transaction | None] = []
        version = self._snapshot.version
        while version > 0 and len(found) < recent_transactions:
            try:
                found.append(self.read_transaction(version))
            except NotFound:
                break
            version -= 1
        return found

    @classmethod
    def commit(
        cls,
        base_uri: str | os.PathLike[str] | DatasetTransactions,
        operation: LanceOperation.BaseOperation | Transaction,
        read_version: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: StorageOptions | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        namespace_client: object | None = None,
        table_id: list[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: dict[str, dict[str, str]] | None = None,
        commit_timeout: timedelta | None = COMMIT_TIMEOUT,
    ) -> Self:
        """Commit an operation that was worked out from ``read_version``; a dataset at the version that it made.

        Conflict where others have committed since what stands in its way. An Overwrite makes the table if there is
        none. Files that the operation names must be there.

        >>> import lancelet, pyarrow as pa
        >>> first = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://committed")
        >>> fragments = lancelet.fragment.write_fragments(pa.table({"x": [3]}), first)
        >>> append = lancelet.LanceOperation.Append(fragments)
        >>> lancelet.LanceDataset.commit(first, append, read_version=1).count_rows()
        3
        """
        refuse_namespace(namespace_client, table_id, namespace_client_managed_versioning)
        stored = _transaction(operation, read_version, commit_message)
        location = _location(base_uri, storage_options, base_store_params, commit_lock)
        options = CommitOptions(
            max_retries=max_retries,
            timeout=None if commit_timeout is None else commit_timeout.total_seconds(),
            commit_lock=location.commit_lock,
            detached=bool(detached),
        )
        read = None if stored.read_version == 0 and read_version is None else stored.read_version
        snapshot = _snapshot_of(base_uri, location, read)
        if snapshot is None:
            made = _create(location, stored, options, enable_v2_manifest_paths, bool(enable_stable_row_ids))
        else:
            transaction = replace(stored, read_version=snapshot.version)
            outcome = committed(commit_transaction(snapshot, transaction, options), snapshot.uri)
            made = open_snapshot(snapshot.store, version=outcome.version, options=location.options)
        return cls._open(location, made)

    @classmethod
    def commit_batch(
        cls,
        dest: str | os.PathLike[str] | DatasetTransactions,
        transactions: Sequence[Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: StorageOptions | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        base_store_params: dict[str, dict[str, str]] | None = None,
        commit_timeout: timedelta | None = COMMIT_TIMEOUT,
    ) -> BulkCommitResult:
        """Commit several appends as one: their fragments in the order given, from the earliest version they read.

        Properties are those of all, of which the last one's count where several have a key.
        """
        location = _location(dest, storage_options, base_store_params, commit_lock)
        merged = _merged(transactions)
        made = cls.commit(
            dest,
            merged,
            commit_lock=location.commit_lock,
            storage_options=location.storage_options,
            enable_v2_manifest_paths=enable_v2_manifest_paths,
            detached=detached,
            max_retries=max_retries,
            base_store_params=base_store_params,
            commit_timeout=commit_timeout,
        )
        return BulkCommitResult(dataset=made, merged=merged)


def _transaction(
    operation: LanceOperation.BaseOperation | Transaction, read_version: int | None, message: str | None
) -> Stored:
    if isinstance(operation, Transaction):
        if message is not None:
            raise InvalidInput("commit_message is given with a Transaction", hint="put it into the properties")
        return transaction_to_stored(operation)
    if not isinstance(operation, LanceOperation.BaseOperation):
        raise TypeError(f"operation must be a LanceOperation.BaseOperation or Transaction, got {type(operation)}")
    if read_version is None and not isinstance(operation, _WITHOUT_VERSION):
        raise InvalidInput("read_version is required for all operations except Overwrite and Restore")
    version = 0 if read_version is None else version_number(read_version)
    properties = {} if message is None else {COMMIT_MESSAGE: message}
    return Stored(version, operation_to_stored(operation), properties=properties)


def _location(
    target: str | os.PathLike[str] | DatasetCore,
    storage_options: StorageOptions | None,
    base_store_params: dict[str, dict[str, str]] | None,
    commit_lock: CommitLock | None,
) -> TableLocation:
    if isinstance(target, DatasetCore):
        return target.location.given(storage_options, base_store_params, commit_lock)
    if not isinstance(target, str | os.PathLike):
        raise TypeError(f"base_uri must be str, Path, or LanceDataset, got {type(target)}")
    return TableLocation(
        uri=uri_of(target),
        storage_options=storage_options,
        base_store_params=base_store_params,
        commit_lock=commit_lock,
    )


def _snapshot_of(target: object, location: TableLocation, version: int | None) -> Snapshot | None:
    """The version that a commit starts from; None where there is no table."""
    if isinstance(target, DatasetCore):
        here = target.snapshot
        if version == here.version:
            return here
        return open_snapshot(here.store, version=version or None, options=location.options)
    store = location.open()
    if version:
        return open_snapshot(store, version=version, options=location.options)
    return None if find_latest(store) is None else open_snapshot(store, options=location.options)


def _create(
    location: TableLocation, stored: Stored, options: CommitOptions, v2_names: bool | None, stable_row_ids: bool
) -> Snapshot:
    store: Store = location.open()
    if not isinstance(stored.operation, op.Overwrite):
        raise NotFound("there is no table", uri=location.uri, hint="an Overwrite makes one")
    if options.detached:
        raise Unsupported("the first version of a table cannot be detached", uri=location.uri)
    made = create_table(
        store,
        replace(stored, read_version=0),
        stable_row_ids=stable_row_ids,
        scheme=NamingScheme.V1 if v2_names is False else NamingScheme.V2,
        commit_lock=options.commit_lock,
    )
    return open_snapshot(store, version=committed(made, location.uri).version, options=location.options)


def _merged(transactions: Sequence[Transaction]) -> Transaction:
    if not transactions:
        raise InvalidInput("there are no transactions to commit")
    fragments: list[FragmentMetadata] = []
    properties: dict[str, str] = {}
    for item in transactions:
        if not isinstance(item.operation, LanceOperation.Append):
            found = type(item.operation).__qualname__
            raise Unsupported(f"only appends are committed together, one transaction is a {found}")
        fragments += item.operation.fragments
        properties.update(item.transaction_properties or {})
    read = min(item.read_version for item in transactions)
    return Transaction(read, LanceOperation.Append(fragments), transaction_properties=properties)
