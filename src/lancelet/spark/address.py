"""Addresses: a table and one of its versions, named so that every process can open the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial

from lancelet.config import Options
from lancelet.errors import InvalidInput, NotFound
from lancelet.storage import open_store
from lancelet.storage.paths import local_path, split_uri
from lancelet.storage.store import Store
from lancelet.table.branches import MAIN, get_branch
from lancelet.table.external.tables import open_table_store
from lancelet.table.paths import Opener, Places, branch_store
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.table.tags import get_tag
from lancelet.table.versions import version_at

__all__ = ["Address", "moment", "opened"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a table is, and which version of it is meant: the newest of the main branch where nothing is said.

    >>> Address(uri="/t", version=3, tag="x")
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: version and tag are both given [uri=/t]; give one of them
    """

    uri: str
    #: Credentials among them, so that they are never shown.
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    branch: str | None = None
    version: int | None = None
    tag: str | None = None
    timestamp: str | None = None
    #: What tells the version from one of the same number in a table that was made anew at the same place.
    stamp: str | None = None

    def __post_init__(self) -> None:
        said = [name for name in ("version", "tag", "timestamp") if getattr(self, name) is not None]
        if self.tag is not None and self.branch is not None:
            said = ["branch", "tag"]
        if len(said) > 1:
            raise InvalidInput(f"{said[0]} and {said[1]} are both given", uri=self.uri, hint="give one of them")

    def absolute(self) -> Address:
        """The same by an absolute path where the table is on this machine: tasks run in other folders."""
        scheme, _ = split_uri(self.uri)
        if scheme == "":
            return replace(self, uri=os.path.abspath(self.uri))
        return replace(self, uri=local_path(self.uri)) if scheme == "file" else self

    def opener(self) -> Opener:
        """Opens what the table names elsewhere with the same credentials."""
        return partial(open_store, storage_options=self.storage_options)

    def main_store(self) -> Store:
        """The table's own folder."""
        return open_table_store(self.uri, storage_options=self.storage_options)

    def store(self) -> Store:
        """The folder of the branch that is meant."""
        main = self.main_store()
        name = get_tag(main, self.tag).branch if self.tag is not None else self.branch
        return branch_store(main, None if name == MAIN else name)

    def open(self, options: Options | None = None) -> Snapshot:
        """The version that is meant. NotFound if there is none."""
        store = self.store()
        version = self.version
        if self.tag is not None:
            version = get_tag(self.main_store(), self.tag).version
        if self.timestamp is not None:
            version = version_at(store, moment("timestamp", self.timestamp))
        try:
            return open_snapshot(store, version=version, options=options)
        except NotFound:
            if self.branch is not None and self.branch != MAIN:
                # Which of the two is missing, the branch or the version, is only asked once something is.
                get_branch(self.main_store(), self.branch)
            raise

    def pinned(self, snapshot: Snapshot) -> Address:
        """The address of just this version."""
        stamp = f"{snapshot.manifest.timestamp}-{snapshot.manifest.transaction_file}"
        return Address(
            uri=self.uri,
            storage_options=self.storage_options,
            branch=snapshot.branch,
            version=snapshot.version,
            stamp=stamp,
        )

    def newest(self) -> Address:
        """The address of the newest version of the same branch."""
        return replace(self, version=None, tag=None, timestamp=None, stamp=None)


def moment(name: str, text: str) -> datetime:
    """The moment that an option says.

    >>> moment("timestamp", "2026-01-31").year
    2026
    """
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        hint = "write it as 2026-01-31 or 2026-01-31T12:00:00+00:00"
        raise InvalidInput(f"{name} is {text!r}, which is no moment", hint=hint) from None


@lru_cache(maxsize=64)
def opened(address: Address) -> tuple[Snapshot, Places]:
    """A pinned version, opened once in each process: tasks of a worker share it.

    >>> opened(Address(uri="/nowhere"))
    Traceback (most recent call last):
    lancelet.errors.InvalidInput: the address names no version [uri=/nowhere]
    """
    if address.version is None:
        raise InvalidInput("the address names no version", uri=address.uri)
    snapshot = address.open()
    if address.stamp is not None and address.pinned(snapshot).stamp != address.stamp:
        found = f"version {address.version} is not the one that was planned for: the table was made anew meanwhile"
        raise NotFound(found, uri=address.uri, version=address.version)
    return snapshot, Places.of(snapshot, opener=address.opener())
