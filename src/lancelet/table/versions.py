"""Versions: the history of a table, listed; and one of them found by its number or by a moment in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lancelet.config import Options, default_options
from lancelet.errors import InvalidInput, NotFound
from lancelet.format.fragment_list import Fragments
from lancelet.format.manifest import Manifest
from lancelet.format.manifest_file import ManifestFile, parse_manifest_file
from lancelet.format.names import DETACHED, VERSIONS, NamingScheme, manifest_path, parse_manifest_name
from lancelet.format.operations import Restore
from lancelet.format.transaction import COMMIT_MESSAGE, Transaction
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.parallel import in_order
from lancelet.table.snapshot import FoundManifest, Snapshot, find_manifests

__all__ = [
    "Summary",
    "VersionInfo",
    "detached_versions",
    "find_version",
    "list_versions",
    "newest_first",
    "restore_transaction",
    "time_of",
    "version_at",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a version consists of, counted from its manifest alone."""

    total_fragments: int
    total_data_files: int
    #: Bytes of the data files whose size the manifest tells.
    total_files_size: int
    total_deletion_files: int
    total_data_file_rows: int
    total_deletion_file_rows: int

    @property
    def total_rows(self) -> int:
        """Rows that are not deleted."""
        return self.total_data_file_rows - self.total_deletion_file_rows

    @staticmethod
    def of(fragments: Fragments) -> Summary:
        """The counts of a version's fragments.

        >>> from lancelet.format.fragments import Fragment
        >>> Summary.of(Fragments([Fragment(0, physical_rows=5), Fragment(1, physical_rows=2)])).total_rows
        7
        """
        rows = deleted = deletion_files = size = files = 0
        # The message rather than Fragment objects, and one pass: there may be 100,000 in each of many versions.
        for item in fragments.message().fragments:
            rows += item.physical_rows
            if item.HasField("deletion_file"):
                deletion_files += 1
                deleted += item.deletion_file.num_deleted_rows
            for file in item.files:
                files += 1
                size += file.file_size_bytes
        return Summary(len(fragments), files, size, deletion_files, rows, deleted)


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """One version in a listing of the history."""

    found: FoundManifest
    file: ManifestFile = field(repr=False)

    @property
    def version(self) -> int:
        """The version's number."""
        return self.found.version

    @property
    def manifest(self) -> Manifest:
        """All that the version consists of."""
        return self.file.manifest

    @property
    def timestamp(self) -> datetime:
        """When the version was made, by its writer's clock, in UTC; by the store's where the writer did not say."""
        return time_of(self.manifest, self.found)

    @property
    def summary(self) -> Summary:
        """What the version consists of."""
        return Summary.of(self.manifest.fragments)

    @property
    def message(self) -> str | None:
        """What its author said about the version, where the manifest's file holds that."""
        transaction = self.file.transaction()
        return None if transaction is None else transaction.message


def time_of(manifest: Manifest, found: FoundManifest) -> datetime:
    """When a version was made."""
    if manifest.timestamp is None:
        return datetime.fromtimestamp(found.modified, UTC)
    return _EPOCH + timedelta(microseconds=manifest.timestamp // 1000)


def newest_first(store: Store) -> Iterator[FoundManifest]:
    """The manifests of a table or branch, newest first; detached ones left out. One listing."""
    found = find_manifests(store)
    first = next(found, None)
    if first is None:
        return
    if first.scheme is NamingScheme.V2:
        yield first
        yield from found
    else:
        yield from sorted([first, *found], key=lambda item: -item.version)


def list_versions(store: Store, *, options: Options | None = None) -> Iterator[VersionInfo]:
    """The history, newest first: manifests are read side by side, and no more of them than are asked for.

    A version that is cleaned up while it is listed is left out.
    """

    def read(found: FoundManifest) -> VersionInfo | None:
        try:
            return VersionInfo(
                found, parse_manifest_file(store.read_all(found.path), uri=join_uri(store.uri, found.path))
            )
        except NotFound:
            return None

    concurrency = (options or default_options()).io_concurrency
    for item in in_order(read, newest_first(store), concurrency=concurrency):
        if item is not None:
            yield item


def find_version(store: Store, version: int) -> FoundManifest:
    """The manifest of a version, unread. NotFound if there is none."""
    for scheme in (NamingScheme.V2, NamingScheme.V1):
        path = manifest_path(version, scheme)
        try:
            return FoundManifest(version, path, scheme, store.size(path), 0.0)
        except NotFound:
            continue
    raise NotFound(f"there is no version {version} of the table", uri=store.uri, version=version)


def version_at(store: Store, moment: datetime, *, options: Options | None = None) -> int:
    """The newest version made at or before a moment. NotFound where all are later.

    A moment without a time zone is of this machine's.
    """
    wanted = moment.astimezone(UTC)
    some = False
    for item in list_versions(store, options=options):
        some = True
        if item.timestamp <= wanted:
            return item.version
    if not some:
        raise NotFound("there is no table", uri=store.uri)
    raise NotFound(f"{moment.isoformat(sep=' ')} is earlier than the first version of the table", uri=store.uri)


def detached_versions(store: Store) -> list[FoundManifest]:
    """The versions that stand beside the history; they are opened by their numbers."""
    # Digits sort before "d", so that no page of the listing is spent on the history's names.
    return [
        FoundManifest(named.version, entry.path, NamingScheme.V2, entry.size, entry.modified)
        for entry in store.list_from(f"{VERSIONS}/d")
        if (named := parse_manifest_name(entry.path)) is not None and named.detached and entry.path.count("/") == 1
    ]


def restore_transaction(latest: Snapshot, version: int, *, message: str | None = None) -> Transaction:
    """The transaction that makes an earlier version the newest again. NotFound where it is gone."""
    if version & DETACHED:
        raise InvalidInput(f"version {version} is detached, expected one of the table's history", uri=latest.uri)
    find_version(latest.store, version)
    properties = {} if message is None else {COMMIT_MESSAGE: message}
    return Transaction(latest.version, Restore(version), properties=properties)
