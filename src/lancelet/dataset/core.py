"""What every part of a dataset stands on: one version of a table, open, and where the table is.

A dataset changes only by being put at another version, and that is one assignment: threads that use it meanwhile see
the version before or the one after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import pyarrow.dataset as pads

# Schemas with blobs need its Arrow type to be registered.
import lancelet.blob  # noqa: F401
from lancelet.dataset.location import TableLocation, learn
from lancelet.errors import NotFound
from lancelet.format.manifest_file import parse_manifest_file
from lancelet.format.names import NamingScheme, manifest_path
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.commit import CommitLock
from lancelet.table.outcome import Committed, Outcome, committed
from lancelet.table.paths import Places, main_store
from lancelet.table.snapshot import Snapshot, open_snapshot, read_snapshot

__all__ = ["DatasetCore", "ScanDefaults"]

#: Options of every scan, by the names that a scanner takes.
ScanDefaults = Mapping[str, object]


class DatasetCore(pads.Dataset):  # type: ignore[misc]
    """One version of a table: the state of a dataset, and how it moves to another version."""

    _location: TableLocation
    _snapshot: Snapshot
    _places: Places
    _default_scan_options: ScanDefaults | None
    _read_params: Mapping[str, object] | None

    @classmethod
    def _open(
        cls,
        location: TableLocation,
        snapshot: Snapshot,
        *,
        scan_defaults: ScanDefaults | None = None,
        read_params: Mapping[str, object] | None = None,
    ) -> Self:
        """A dataset at a version. The base class cannot be made by its constructor, as pyarrow has it."""
        made: Self = cls.__new__(cls)
        made._location = location
        made._default_scan_options = scan_defaults
        made._read_params = read_params
        made._go_to(snapshot)
        return made

    def _go_to(self, snapshot: Snapshot) -> None:
        """Be at another version from now on."""
        learn(snapshot.store, snapshot.manifest.base_paths)
        self._places = Places.of(snapshot)
        self._snapshot = snapshot

    def _beside(self, snapshot: Snapshot) -> Self:
        """Another dataset over the same table, at a version."""
        location = self._location
        if snapshot.branch != self._snapshot.branch:
            location = location.at(snapshot.uri)
        return self._open(location, snapshot, scan_defaults=self._default_scan_options, read_params=self._read_params)

    @property
    def snapshot(self) -> Snapshot:
        """The version that the dataset is at, as the rooms below know it."""
        return self._snapshot

    @property
    def places(self) -> Places:
        """Where the files of the version are."""
        return self._places

    @property
    def location(self) -> TableLocation:
        """Where the table is, and how it is reached."""
        return self._location

    @property
    def uri(self) -> str:
        """The table's URI, as it was given."""
        return self._location.uri

    @property
    def version(self) -> int:
        """The number of the version that the dataset is at."""
        return self._snapshot.version

    def _main(self) -> Store:
        """The table's own folder, whatever branch the dataset is at."""
        snapshot = self._snapshot
        return main_store(snapshot.store, snapshot.branch)

    def _commit_lock(self) -> CommitLock | None:
        return self._location.commit_lock

    def _follow(self, outcome: Outcome) -> Committed:
        """Be at the version that a commit made; a conflict is raised."""
        made = committed(outcome, self.uri)
        self._go_to(self._committed(made))
        return made

    def _committed(self, made: Committed) -> Snapshot:
        """The version that a commit made, opened."""
        store, scheme = self._snapshot.store, self._snapshot.scheme
        try:
            return read_snapshot(store, manifest_path(made.version, scheme), scheme, options=self._location.options)
        except NotFound:
            # Migrated to other names meanwhile.
            return open_snapshot(store, version=made.version, options=self._location.options)

    def __reduce__(self) -> tuple[object, ...]:
        snapshot = self._snapshot
        at = (snapshot.store, bytes(snapshot.file.data), snapshot.path, snapshot.scheme)
        return _rebuild, (type(self), self._location, at, self._default_scan_options, self._read_params)

    def __copy__(self) -> Self:
        made: Self = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # All that a dataset holds is immutable, or is meant to be shared.
        return self.__copy__()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        snapshot = self._snapshot
        branch = "" if snapshot.branch is None else f", branch={snapshot.branch!r}"
        return f"{type(self).__name__}({self.uri!r}, version={snapshot.version}{branch})"


def _rebuild(
    kind: type[DatasetCore],
    location: TableLocation,
    at: tuple[Store, bytes, str, NamingScheme],
    scan_defaults: ScanDefaults | None,
    read_params: Mapping[str, object] | None,
) -> DatasetCore:
    """A dataset that came from another process; the manifest came along, so that nothing is read."""
    store, data, path, scheme = at
    file = parse_manifest_file(data, uri=join_uri(store.uri, path))
    snapshot = Snapshot(store, file, path, scheme, location.options)
    return kind._open(location, snapshot, scan_defaults=scan_defaults, read_params=read_params)
