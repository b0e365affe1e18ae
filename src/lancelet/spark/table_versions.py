"""What the table object knows of versions: history and detail, going back, tags, branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Self

from pyspark.sql import DataFrame

from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.errors import InvalidInput
from lancelet.format.flags import STABLE_ROW_IDS
from lancelet.format.manifest import data_version
from lancelet.format.transaction import COMMIT_MESSAGE
from lancelet.ops.index.describe import described_indexes
from lancelet.spark.address import Address
from lancelet.spark.table_core import TableCore
from lancelet.table.branches import list_branches
from lancelet.table.commit import commit
from lancelet.table.outcome import committed
from lancelet.table.snapshot import Snapshot
from lancelet.table.tags import list_tags
from lancelet.table.versions import Summary, VersionInfo, list_versions, restore_transaction, time_of, version_at

__all__ = ["HISTORY", "RestoreFigures", "TableVersions", "history_rows", "tags_of"]

HISTORY = (
    "version long, timestamp timestamp, operation string, message string, read_version long, tags array<string>, "
    "metrics map<string, long>, properties map<string, string>"
)
_DETAIL = (
    "format string, uri string, branch string, version long, created_at timestamp, last_modified timestamp, "
    "num_rows long, num_deleted_rows long, num_fragments long, num_data_files long, size_bytes long, "
    "indexes array<string>, data_storage_version string, stable_row_ids boolean, "
    "config map<string, string>, metadata map<string, string>"
)


@dataclass(frozen=True, slots=True)
class RestoreFigures:
    """What going back brought: the version that it made, which one that is again, and what is in it."""

    version: int
    restored_version: int
    num_rows: int
    num_files: int
    num_bytes: int


class TableVersions(TableCore):
    """What concerns versions as a whole. Manifests are read by the process that calls; there is no job."""

    def history(self, limit: int | None = None) -> DataFrame:
        """The versions, newest first: when and how each was made, what was said about it, and what is in it.

        Columns are version, timestamp, operation, message, read_version (what the change was worked out from), tags,
        metrics (counts and bytes; ``num_rows_change`` is against the version before) and properties.

            table.history(10).where("operation = 'Append'").show()
        """
        if limit is not None and limit < 1:
            raise InvalidInput(f"limit is {limit}, expected at least 1")
        snapshot = self._snapshot()
        return self.sparkSession.createDataFrame(
            list(islice(history_rows(snapshot, tags_of(self._handle.address)), limit)), HISTORY
        )

    def detail(self) -> DataFrame:
        """One row: where the table is, what is in it, how it is stored and configured."""
        snapshot = self._snapshot()
        manifest = snapshot.manifest
        counts = Summary.of(manifest.fragments)
        found = [(item.version, item.timestamp) for item in list_versions(snapshot.store, options=snapshot.options)]
        modified = next((made for version, made in found if version == snapshot.version), None)
        row = (
            "lance",
            self.uri,
            snapshot.branch,
            snapshot.version,
            found[-1][1] if found else None,
            modified,
            counts.total_rows,
            counts.total_deletion_file_rows,
            counts.total_fragments,
            counts.total_data_files,
            counts.total_files_size,
            [item.name for item in described_indexes(snapshot)],
            data_version(manifest).label,
            bool(manifest.reader_flags & STABLE_ROW_IDS.value),
            dict(manifest.config),
            dict(manifest.table_metadata),
        )
        return self.sparkSession.createDataFrame([row], _DETAIL)

    def restoreToVersion(self, version: int, *, message: str | None = None) -> RestoreFigures:
        """Make an earlier version the newest again; those between stay in the history."""
        address = self._writable().address
        latest = address.open()
        transaction = restore_transaction(latest, version, message=message)
        made = committed(commit(latest, transaction), latest.uri)
        counts = Summary.of(made.manifest.fragments)
        return RestoreFigures(
            made.version, version, counts.total_rows, counts.total_data_files, counts.total_files_size
        )

    def restoreToTimestamp(self, timestamp: str | datetime, *, message: str | None = None) -> RestoreFigures:
        """Make the version that was the newest at a moment the newest again: ``2026-01-31T12:00:00+00:00``."""
        return self.restoreToVersion(self._version_at(timestamp), message=message)

    def tag(self, name: str, version: int | None = None, *, replace: bool = False) -> int:
        """Give a version a name, without ``version`` the one that is meant; it is kept by cleanups from then on.

        Returns the version. AlreadyExists where another version has the name, unless ``replace``.
        """
        dataset = self.dataset()
        here = (dataset.snapshot.branch, dataset.version if version is None else version)
        known = dataset.tags.list().get(name)
        if known is not None and replace:
            dataset.tags.update(name, here)
        elif known is None or (known["branch"], known["version"]) != here:
            dataset.tags.create(name, here)
        return here[1]

    def deleteTag(self, name: str) -> None:
        """Take a name away. NotFound if there is none."""
        self.dataset().tags.delete(name)

    def tags(self) -> DataFrame:
        """The names of versions: name, version, branch, created_at, updated_at."""
        schema = "name string, version long, branch string, created_at timestamp, updated_at timestamp"
        found = sorted(self.dataset().tags.list().items())
        rows = [(name, item["version"], item["branch"], item["created_at"], item["updated_at"]) for name, item in found]
        return self.sparkSession.createDataFrame(rows, schema)

    def branch(self, name: str, version: int | None = None) -> Self:
        """Start a branch at a version, without ``version`` the one that is meant; the table object of its newest.

        The branch shares all files with the table, and has commits of its own.
        """
        dataset = self.dataset()
        dataset.create_branch(name, None if version is None else (dataset.snapshot.branch, version))
        return self._on(Address(uri=self.uri, storage_options=self._handle.address.storage_options, branch=name))

    def branches(self) -> DataFrame:
        """The branches beside the main one: name, parent_branch, parent_version."""
        found = list_branches(self._handle.address.main_store())
        rows = [(name, item.parent_branch, item.parent_version) for name, item in sorted(found.items())]
        return self.sparkSession.createDataFrame(rows, "name string, parent_branch string, parent_version long")

    def deleteBranch(self, name: str) -> None:
        """Remove a branch with its versions and files. Conflict where tags or other branches refer to it."""
        address = self._handle.address
        LanceDataset(address.uri, storage_options=dict(address.storage_options) or None).branches.delete(name)

    def _on(self, address: Address) -> Self:
        return type(self)(replace(self._handle, address=address))

    def _version_at(self, timestamp: str | datetime) -> int:
        moment = timestamp
        if isinstance(moment, str):
            try:
                moment = datetime.fromisoformat(moment.strip())
            except ValueError:
                hint = "write it as 2026-01-31 or 2026-01-31T12:00:00+00:00"
                raise InvalidInput(f"timestamp is {timestamp!r}, which is no moment", hint=hint) from None
        return version_at(self._handle.address.store(), moment)


def tags_of(address: Address) -> dict[tuple[str | None, int], list[str]]:
    """The names of versions, by branch and number."""
    found: dict[tuple[str | None, int], list[str]] = {}
    for name, tag in sorted(list_tags(address.main_store()).items()):
        found.setdefault((tag.branch, tag.version), []).append(name)
    return found


def history_rows(snapshot: Snapshot, tags: dict[tuple[str | None, int], list[str]]) -> Iterator[tuple[object, ...]]:
    """The history up to a version as rows. Each is told once the one before it is known."""
    newer: tuple[VersionInfo, Summary] | None = None
    for item in list_versions(snapshot.store, options=snapshot.options):
        if item.version > snapshot.version:
            continue
        counts = item.summary
        if newer is not None:
            yield _row(snapshot, *newer, counts.total_rows, tags)
        newer = item, counts
    if newer is not None:
        before = 0 if newer[0].version == 1 else None
        yield _row(snapshot, *newer, before, tags)


def _row(
    snapshot: Snapshot,
    item: VersionInfo,
    counts: Summary,
    rows_before: int | None,
    tags: dict[tuple[str | None, int], list[str]],
) -> tuple[object, ...]:
    made = Snapshot(snapshot.store, item.file, item.found.path, item.found.scheme, snapshot.options).transaction()
    metrics = {
        "num_rows": counts.total_rows,
        "num_deleted_rows": counts.total_deletion_file_rows,
        "num_fragments": counts.total_fragments,
        "num_data_files": counts.total_data_files,
        "size_bytes": counts.total_files_size,
    }
    if rows_before is not None:
        metrics["num_rows_change"] = counts.total_rows - rows_before
    properties = {} if made is None else dict(made.properties)
    return (
        item.version,
        time_of(item.manifest, item.found),
        None if made is None else type(made.operation).__name__,
        properties.pop(COMMIT_MESSAGE, None),
        None if made is None else made.read_version,
        tags.get((item.manifest.branch, item.version), []),
        metrics,
        properties,
    )
