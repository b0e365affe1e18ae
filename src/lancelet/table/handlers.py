"""Commit handlers: how one manifest of many becomes a version, and how the newest is found.

PutIfAbsentHandler   the store decides: an object is put if it is absent
ExternalHandler      a database decides; the manifest is staged before and moved to its name after
LockHandler          another handler, while a lock of the caller's is held
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lancelet.errors import AlreadyExists, Conflict, Corrupt, LanceletError, NotFound
from lancelet.events import emit
from lancelet.format.names import DETACHED, NamingScheme, manifest_path, parse_manifest_name, staging_path
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Data, Store, as_bytes
from lancelet.table.external.contract import ManifestRecord, ManifestStore
from lancelet.table.snapshot import FoundManifest, find_latest
from lancelet.table.versions import find_version

__all__ = [
    "CommitHandler",
    "ExternalHandler",
    "LockHandler",
    "Lost",
    "Published",
    "PutIfAbsentHandler",
]

#: A staging name is the final one, a dash and a UUID.
_UUID_PART = 1 + 36


@dataclass(frozen=True, slots=True)
class Published:
    """The manifest is the version's, for ever."""

    found: FoundManifest


@dataclass(frozen=True, slots=True)
class Lost:
    """Somebody else's manifest is the version's; nothing of ours is visible."""

    version: int


@runtime_checkable
class CommitHandler(Protocol):
    """How the manifests of one table, or of one branch, are published and found.

    All writers of a table have to use the same kind.
    """

    def settle(self) -> None:
        """Finish a half-done commit, if there is one: from then on a listing of the store shows every version."""

    def latest(self) -> FoundManifest | None:
        """The newest version's manifest, at its final name; None if there is no table."""

    def resolve(self, version: int) -> FoundManifest:
        """A version's manifest, at its final name. NotFound if there is none."""

    def publish(self, version: int, data: Data, *, scheme: NamingScheme = NamingScheme.V2) -> Published | Lost:
        """Make a manifest the version's if it has none.

        Raises Storage where it is left open whether that was done.
        """


@dataclass(frozen=True, slots=True)
class PutIfAbsentHandler:
    """The habit of stores that can put an object if it is absent, which all of lancelet's can.

    >>> from lancelet.storage.memory import MemoryStore
    >>> handler = PutIfAbsentHandler(MemoryStore("memory://handlers/plain"))
    >>> handler.publish(1, b"ours").found.version, handler.publish(1, b"theirs"), handler.latest().version
    (1, Lost(version=1), 1)
    """

    store: Store

    def settle(self) -> None:
        """Nothing: one put is never half-done."""

    def latest(self) -> FoundManifest | None:
        """By one listing."""
        return find_latest(self.store)

    def resolve(self, version: int) -> FoundManifest:
        """By asking for its names."""
        return find_version(self.store, version)

    def publish(self, version: int, data: Data, *, scheme: NamingScheme = NamingScheme.V2) -> Published | Lost:
        """By one conditional put."""
        path = manifest_path(version, scheme)
        try:
            self.store.put_if_absent(path, data)
        except AlreadyExists:
            return Lost(version)
        return Published(FoundManifest(version, path, scheme, as_bytes(data).nbytes, 0.0))


@dataclass(frozen=True, slots=True)
class LockHandler:
    """Another handler, which publishes while a lock is held: pylance's ``commit_lock``.

    ``lock`` is given the version, and returns a context manager; it says by a Conflict that somebody else has the
    version. Of a commit that was overtaken the context manager is told by a Conflict, too.
    """

    inner: CommitHandler
    lock: Callable[[int], AbstractContextManager[object]]

    def settle(self) -> None:
        """As the inner handler, without the lock."""
        self.inner.settle()

    def latest(self) -> FoundManifest | None:
        """As the inner handler."""
        return self.inner.latest()

    def resolve(self, version: int) -> FoundManifest:
        """As the inner handler."""
        return self.inner.resolve(version)

    def publish(self, version: int, data: Data, *, scheme: NamingScheme = NamingScheme.V2) -> Published | Lost:
        """As the inner handler, under the lock."""
        outcome: Published | Lost = Lost(version)
        # A Conflict that the lock raises when it is given back does not undo what was published.
        with suppress(Conflict), self.lock(version):
            outcome = self.inner.publish(version, data, scheme=scheme)
            if isinstance(outcome, Lost):
                raise Conflict("another writer published the version first", version=version, retryable=True)
        return outcome


@dataclass(frozen=True, slots=True)
class ExternalHandler:
    """A database says which manifest is a version's: the protocol of Lance's external manifest stores.

        1  put the manifest at a staging name            nobody sees it
        2  put the staging name's record if absent       the moment of truth
        3  copy the manifest to its final name           plain readers see it
        4  put the final name's record, drop the staging one

    Whoever finds a version between 2 and 4, reader or writer, carries out the rest before using it. So at most the
    newest version can be half-done, and a copy of the table's folder is a table.
    """

    store: Store
    manifests: ManifestStore
    #: The table's name in the database; paths in records begin with it.
    base: str

    def settle(self) -> None:
        """By asking the database for the newest version."""
        self._newest()

    def latest(self) -> FoundManifest | None:
        """By asking the database; by one listing where it does not know the table, which may be older than its use."""
        return self._newest() or find_latest(self.store)

    def resolve(self, version: int) -> FoundManifest:
        """By asking the database, then the store."""
        record = self.manifests.get(self.base, version) if version < DETACHED else None
        return find_version(self.store, version) if record is None else self._settled(record)

    def publish(self, version: int, data: Data, *, scheme: NamingScheme = NamingScheme.V2) -> Published | Lost:
        """By the four steps. The version is published by the second; what fails later is left for who comes next."""
        size = as_bytes(data).nbytes
        path = manifest_path(version, scheme)
        staged = staging_path(path)
        record = ManifestRecord(version, self._recorded(staged), size)
        self.store.put(staged, data)
        try:
            self.manifests.put_if_absent(self.base, record)
        except AlreadyExists:
            # Clients repeat requests whose answers were lost, so the record in the way may be our own.
            if not self._is_ours(record, data):
                with suppress(LanceletError):
                    self.store.delete([staged])
                return Lost(version)
        try:
            self._settled(record)
        except LanceletError as error:
            emit("commit.unfinished", uri=self.store.uri, version=version, error=str(error))
        return Published(FoundManifest(version, path, scheme, size, 0.0))

    def _newest(self) -> FoundManifest | None:
        known = None
        while (record := self.manifests.latest(self.base)) is not None:
            try:
                return self._settled(record)
            except NotFound:
                # Others may have finished it, gone on and cleaned it up since it was asked for.
                if record == known:
                    raise self._gone(record) from None
            known = record
        return None

    def _is_ours(self, record: ManifestRecord, data: Data) -> bool:
        there = self.manifests.get(self.base, record.version)
        if there is None or there.path == record.path:
            return there is not None
        try:
            # Under its final name it is anybody's; the bytes tell, because they hold the transaction's UUID.
            return bytes(self.store.read_all(self._settled(there).path)) == bytes(as_bytes(data))
        except NotFound:
            return False

    def _settled(self, record: ManifestRecord) -> FoundManifest:
        """Steps 3 and 4, where they are left. NotFound where the manifest is gone."""
        path = self._relative(record)
        named = parse_manifest_name(path)
        staged = None
        if named is None:
            staged, path = path, path[:-_UUID_PART]
            named = parse_manifest_name(path)
        if named is None or named.scheme is None or named.version != record.version:
            raise Corrupt(
                f"the external store has {record.path!r} as the manifest of the version",
                uri=self.store.uri,
                version=record.version,
            )
        if staged is not None:
            self._finish(record, staged, path)
        size = self.store.size(path) if record.size is None else record.size
        return FoundManifest(record.version, path, named.scheme, size, 0.0)

    def _finish(self, record: ManifestRecord, staged: str, path: str) -> None:
        try:
            self.store.copy(staged, path)
            size = record.size
        except NotFound:
            # Somebody else has moved it: it is at its final name, or gone from there as well.
            size = self.store.size(path)
        # Without an e-tag: that of a copy need not be that of what was copied.
        self.manifests.put_if_exists(self.base, ManifestRecord(record.version, self._recorded(path), size))
        with suppress(LanceletError):
            self.store.delete([staged])

    def _recorded(self, path: str) -> str:
        return f"{self.base}/{path}"

    def _relative(self, record: ManifestRecord) -> str:
        if not record.path.startswith(f"{self.base}/"):
            found = f"the external store has {record.path!r} as a manifest of {self.base!r}"
            raise Corrupt(found, uri=self.store.uri, version=record.version)
        return record.path[len(self.base) + 1 :]

    def _gone(self, record: ManifestRecord) -> Corrupt:
        uri = join_uri(self.store.uri, self._relative(record))
        hint = "if the table was dropped, delete its records from the external store, too"
        return Corrupt(
            "the external store names a manifest that is not there", uri=uri, version=record.version, hint=hint
        )
