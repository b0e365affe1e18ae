"""Snapshots: one version of a table, opened: one listing to find the newest, one read for all that it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lancelet.config import Options, default_options
from lancelet.errors import Corrupt, LanceletError, NotFound, Unsupported
from lancelet.format.fields import Schema
from lancelet.format.flags import check_readable
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import Manifest
from lancelet.format.manifest_file import ManifestFile, parse_manifest_file
from lancelet.format.names import (
    TRANSACTIONS,
    VERSIONS,
    ManifestName,
    NamingScheme,
    manifest_path,
    parse_manifest_name,
)
from lancelet.format.transaction import Transaction, parse_transaction
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store, tells_names

__all__ = [
    "FoundManifest",
    "Snapshot",
    "find_latest",
    "find_manifests",
    "newer_manifests",
    "open_snapshot",
    "read_snapshot",
]

#: Names that are looked at for the other scheme: about a page of a listing, so that it costs no further request.
_PAGE = 900
_V2_LENGTH = len(manifest_path(1, NamingScheme.V2)) - len(VERSIONS) - 1


@dataclass(frozen=True, slots=True)
class FoundManifest:
    """A manifest in a listing."""

    version: int
    path: str
    scheme: NamingScheme
    #: Bytes, and seconds since the epoch by the store's clock; 0 where the manifest was found without a listing.
    size: int = 0
    modified: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table, or of a branch: ``store`` is rooted at the folder that holds ``_versions``.

    Everything in it stays true for ever; what it costs was paid at the opening, but for :meth:`transaction` of
    tables whose writers kept it in a file only.
    """

    store: Store
    file: ManifestFile
    path: str
    scheme: NamingScheme
    options: Options

    @property
    def uri(self) -> str:
        """Where the table is."""
        return self.store.uri

    @property
    def manifest(self) -> Manifest:
        """All that the version consists of."""
        return self.file.manifest

    @property
    def version(self) -> int:
        """The version's number."""
        return self.file.manifest.version

    @property
    def branch(self) -> str | None:
        """The branch that the version belongs to; None for the main one."""
        return self.file.manifest.branch

    @property
    def schema(self) -> Schema:
        """The table's fields and metadata."""
        return self.file.manifest.schema

    def indexes(self) -> tuple[IndexMetadata, ...]:
        """The indexes of the version."""
        return self.file.index_section().indexes

    def transaction(self) -> Transaction | None:
        """What made the version; None if its writer left no trace of that."""
        return self.file.transaction() or _transaction_in_file(self.store, self.manifest)

    def count_rows(self) -> int | None:
        """Rows that are not deleted; None where an old manifest does not say."""
        fragments = self.manifest.fragments
        if fragments.without_counts():
            return None
        return int(fragments.physical_rows().sum() - fragments.deleted_rows().sum())


def open_snapshot(store: Store, *, version: int | None = None, options: Options | None = None) -> Snapshot:
    """The newest version of the table in a store, or a given one. NotFound if there is none.

    >>> from lancelet.storage.memory import MemoryStore
    >>> try:
    ...     open_snapshot(MemoryStore("memory://nothing"))
    ... except NotFound as error:
    ...     print(error)
    there is no table [uri=memory://nothing]
    """
    given = options or default_options()
    if version is not None:
        return _open_version(store, version, given)
    while True:
        found = find_latest(store)
        if found is None:
            raise NotFound("there is no table", uri=store.uri)
        try:
            return read_snapshot(store, found.path, found.scheme, options=given)
        except NotFound:
            # Cleanup may remove an old version between the two requests, but never the newest there is.
            again = find_latest(store)
            if again is None or again.path == found.path:
                raise


def _open_version(store: Store, version: int, options: Options) -> Snapshot:
    for scheme in (NamingScheme.V2, NamingScheme.V1):
        path = manifest_path(version, scheme)
        try:
            return read_snapshot(store, path, scheme, options=options)
        except NotFound:
            continue
    raise NotFound(f"there is no version {version} of the table", uri=store.uri, version=version)


def read_snapshot(store: Store, path: str, scheme: NamingScheme, *, options: Options | None = None) -> Snapshot:
    """The version whose manifest is at a path. Unsupported where it uses what this release cannot read."""
    uri = join_uri(store.uri, path)
    file = parse_manifest_file(store.read_all(path), uri=uri)
    named = parse_manifest_name(path)
    if named is not None and named.version != file.manifest.version:
        found = f"the manifest says version {file.manifest.version}, its name {named.version}"
        raise Corrupt(found, uri=uri, version=named.version)
    try:
        check_readable(file.manifest)
    except LanceletError as error:
        raise error.where(uri=store.uri, version=file.manifest.version) from None
    return Snapshot(store, file, path, scheme, options or default_options())


def find_manifests(store: Store) -> Iterator[FoundManifest]:
    """The manifests in a store in the order of their names, detached ones left out: the newest first by V2 names."""
    for entry in store.list_from(f"{VERSIONS}/"):
        named = parse_manifest_name(entry.path)
        if named is not None and named.scheme is not None and entry.path.count("/") == 1:
            yield FoundManifest(named.version, entry.path, named.scheme, entry.size, entry.modified)


def find_latest(store: Store) -> FoundManifest | None:
    """The newest manifest; None if there is none. Unsupported where names of both schemes stand side by side."""
    names = _names(store)
    if names is not None:
        return _latest_named(store, names)
    found = find_manifests(store)
    first = next(found, None)
    if first is None:
        return None
    latest = first
    others = islice(found, _PAGE - 1) if first.scheme is NamingScheme.V2 else found
    for other in others:
        if other.scheme is not first.scheme:
            raise _named_by_both(store)
        if other.version > latest.version:
            latest = other
    return latest


def _names(store: Store) -> list[str] | None:
    """What is in the folder of manifests, where a store tells that without a listing."""
    return store.names(VERSIONS) if tells_names(store) else None


def _latest_named(store: Store, names: Sequence[str]) -> FoundManifest | None:
    """The same by names alone. All V2 names are of one length, so that few have to be taken apart."""
    by_v1 = [item for name in names if len(name) != _V2_LENGTH and (item := _history(name)) is not None]
    by_v2 = next((item for name in names if len(name) == _V2_LENGTH and (item := _history(name)) is not None), None)
    if by_v1 and by_v2:
        raise _named_by_both(store)
    latest = max(by_v1, key=lambda item: item.version) if by_v1 else by_v2
    if latest is None or latest.scheme is None:
        return None
    return FoundManifest(latest.version, manifest_path(latest.version, latest.scheme), latest.scheme)


def _history(name: str) -> ManifestName | None:
    """What a name says if it is that of a manifest of the history."""
    named = parse_manifest_name(name)
    return None if named is None or named.detached else named


def _named_by_both(store: Store) -> Unsupported:
    return Unsupported(
        "manifests are named by both schemes, so that the newest cannot be told",
        uri=join_uri(store.uri, VERSIONS),
        hint="finish the migration of manifest names with the tool that began it",
    )


def newer_manifests(store: Store, version: int) -> list[tuple[int, str, NamingScheme]]:
    """Manifests after a version. By V2 names they stand first in the listing, however long the history is."""
    names = _names(store)
    if names is not None:
        named = (item for name in names if (item := _history(name)) is not None)
        places = (
            (item.version, manifest_path(item.version, item.scheme), item.scheme) for item in named if item.scheme
        )
    else:
        places = ((item.version, item.path, item.scheme) for item in find_manifests(store))
    found = []
    for place in places:
        if place[2] is NamingScheme.V2 and place[0] <= version:
            break
        if place[0] > version:
            found.append(place)
    return found


def _transaction_in_file(store: Store, manifest: Manifest) -> Transaction | None:
    if not manifest.transaction_file:
        return None
    path = f"{TRANSACTIONS}/{manifest.transaction_file}"
    try:
        return parse_transaction(store.read_all(path))
    except NotFound:
        return None
    except LanceletError as error:
        raise error.where(uri=join_uri(store.uri, path), version=manifest.version) from None
