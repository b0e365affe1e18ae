"""The history of a dataset: its versions, going back to one, and undoing what came after."""

from __future__ import annotations

from datetime import datetime
from typing import Self, TypedDict

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.references import Reference, local_time, version_number
from lancelet.errors import NotFound
from lancelet.format.names import DETACHED
from lancelet.table.commit import commit
from lancelet.table.migrate import migrate_manifest_names
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import FoundManifest, find_latest, open_snapshot
from lancelet.table.versions import (
    Summary,
    VersionInfo,
    list_versions,
    newest_first,
    restore_transaction,
    time_of,
)

__all__ = ["DatasetHistory", "Version", "VersionRef"]


class Version(TypedDict):
    """One version in the history; ``timestamp`` is in this machine's time zone."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """One version in the history, by its number alone."""

    version: int


class DatasetHistory(DatasetCore):
    """What a dataset tells of its versions."""

    def versions(self) -> list[Version]:
        """The versions there are, oldest first.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://history")
        >>> [(item["version"], item["metadata"]["total_rows"]) for item in dataset.versions()]
        [(1, '2')]
        """
        found = [_described(item) for item in list_versions(self._snapshot.store, options=self._location.options)]
        return found[::-1]

    def version_refs(self) -> list[VersionRef]:
        """The numbers of the versions there are, oldest first: one listing, no manifest is read."""
        return [VersionRef(version=item.version) for item in newest_first(self._snapshot.store)][::-1]

    def get_version(self) -> Version:
        """The version that the dataset is at."""
        snapshot = self._snapshot
        found = FoundManifest(snapshot.version, snapshot.path, snapshot.scheme)
        return _described(VersionInfo(found, snapshot.file))

    @property
    def latest_version(self) -> int:
        """The number of the newest version, of the branch that the dataset is at."""
        found = find_latest(self._snapshot.store)
        if found is None:
            raise NotFound("there is no table any more", uri=self.uri)
        return found.version

    def checkout_version(self, version: Reference) -> Self:
        """A dataset at another version: by its number, by a tag, or by branch and number.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://checkout")
        >>> dataset.insert({"x": [3]})
        >>> dataset.count_rows(), dataset.checkout_version(1).count_rows()
        (3, 2)
        """
        return self._beside(resolve_ref(self._snapshot, _checked(version)))

    def checkout_latest(self) -> None:
        """Be at the newest version of the branch from now on."""
        found = find_latest(self._snapshot.store)
        if found is None or found.version != self._snapshot.version or self._snapshot.version & DETACHED:
            self._go_to(open_snapshot(self._snapshot.store, options=self._location.options))

    def restore(self) -> None:
        """Make the version that the dataset is at the newest again; the versions between stay in the history.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://restored")
        >>> dataset.insert({"x": [3]})
        >>> old = dataset.checkout_version(1)
        >>> old.restore()
        >>> old.version, old.count_rows()
        (3, 2)
        """
        latest = open_snapshot(self._snapshot.store, options=self._location.options)
        transaction = restore_transaction(latest, self._snapshot.version)
        self._follow(commit(latest, transaction, commit_lock=self._commit_lock()))

    def migrate_manifest_paths_v2(self) -> None:
        """Give manifests the names by which the newest is found at once. Nobody may write meanwhile."""
        migrate_manifest_names(self._snapshot.store, options=self._location.options)
        self._go_to(open_snapshot(self._snapshot.store, version=self.version, options=self._location.options))


def _described(item: VersionInfo) -> Version:
    counts = item.summary
    names = (*Summary.__dataclass_fields__, "total_rows")
    metadata = {name: str(getattr(counts, name)) for name in sorted(names)}
    return Version(version=item.version, timestamp=local_time(time_of(item.manifest, item.found)), metadata=metadata)


def _checked(reference: Reference) -> Reference:
    return (
        reference if isinstance(reference, bool) or not hasattr(reference, "__index__") else version_number(reference)
    )
