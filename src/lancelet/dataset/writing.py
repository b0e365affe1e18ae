"""Writing datasets: how users say what they want of a write, and the write itself."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

import pyarrow as pa

from lancelet.dataset.base_path import DatasetBasePath
from lancelet.dataset.core import DatasetCore
from lancelet.dataset.location import StorageOptions, TableLocation, refuse_namespace, uri_of
from lancelet.dataset.progress import FragmentWriteProgress, ProgressListener
from lancelet.errors import InvalidInput, Unsupported
from lancelet.format.names import NamingScheme
from lancelet.format.transaction import COMMIT_MESSAGE
from lancelet.ops.committing import CommitOptions
from lancelet.ops.data_files import Limits
from lancelet.ops.write import Mode
from lancelet.ops.writing import WriteOptions, write
from lancelet.session import Session
from lancelet.storage.store import Store
from lancelet.table.cleanup_policy import auto_cleanup_config
from lancelet.table.commit import CommitLock
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.types import ReaderLike, checked_source

__all__ = ["BYTES_PER_FILE", "AutoCleanupConfig", "Target", "WriteRequest", "mode_of", "target_of", "write_rows"]

BYTES_PER_FILE = 90 * 2**30


class AutoCleanupConfig(TypedDict):
    """After how many versions old ones are cleaned up, and how many seconds old those are."""

    interval: int
    older_than_seconds: int


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows are written: a table that is open, or the place of one that may be there."""

    location: TableLocation
    place: Store | Snapshot


def target_of(
    target: object,
    storage_options: StorageOptions | None,
    base_store_params: Mapping[str, StorageOptions] | None,
    commit_lock: CommitLock | None,
    session: Session | None,
    *,
    what: str,
) -> Target:
    """Where a write goes. TypeError for what is neither a URI, nor a path, nor a dataset."""
    if commit_lock is not None and not callable(commit_lock):
        raise TypeError(f"commit_lock must be a function, got {type(commit_lock)}")
    if isinstance(target, DatasetCore):
        if session is not None and not session.is_same_as(target.location.session):
            raise InvalidInput("the session is not the dataset's own", hint="leave it out")
        return Target(target.location.given(storage_options, base_store_params, commit_lock), target.snapshot)
    if not isinstance(target, str | os.PathLike):
        raise TypeError(f"{what} must be a str, Path, or LanceDataset. Got {type(target)}")
    location = TableLocation(
        uri=uri_of(target),
        storage_options=storage_options,
        base_store_params=base_store_params,
        commit_lock=commit_lock,
        session=session or Session(),
    )
    return Target(location, location.open())


def mode_of(mode: str) -> Mode:
    """The mode that a word means; InvalidInput if it means none."""
    try:
        return Mode(mode)
    except ValueError:
        raise InvalidInput(f"the mode is {mode!r}, expected 'create', 'append' or 'overwrite'") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """A write as users ask for it, parameter by parameter."""

    schema: pa.Schema | None = None
    mode: str = "create"
    max_rows_per_file: int = 2**20
    #: Means something in files of version 0.1 alone, which are not written.
    max_rows_per_group: int | None = 1024
    max_bytes_per_file: int = BYTES_PER_FILE
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    commit_lock: CommitLock | None = None
    progress: FragmentWriteProgress | None = None
    storage_options: StorageOptions | None = None
    data_storage_version: str | None = None
    use_legacy_format: bool | None = None
    enable_v2_manifest_paths: bool = True
    enable_stable_row_ids: bool = False
    auto_cleanup_options: AutoCleanupConfig | None = None
    commit_message: str | None = None
    transaction_properties: Mapping[str, str] | None = None
    initial_bases: Sequence[DatasetBasePath] | None = None
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None
    base_store_params: Mapping[str, StorageOptions] | None = None
    external_blob_mode: str = "reference"
    allow_external_blob_outside_bases: bool = False
    blob_pack_file_size_threshold: int | None = None
    namespace_client: object | None = None
    table_id: Sequence[str] | None = None
    session: Session | None = None

    def options(self, commit_lock: CommitLock | None) -> WriteOptions:
        """The same in the words of the operation. InvalidInput or Unsupported for what cannot be done."""
        refuse_namespace(self.namespace_client, self.table_id)
        if self.external_blob_mode not in ("reference", "ingest"):
            raise InvalidInput(f"external_blob_mode is {self.external_blob_mode!r}, expected 'reference' or 'ingest'")
        if self.external_blob_mode == "ingest":
            raise Unsupported("blobs behind URIs are not copied into the table", hint="give their bytes")
        properties = dict(self.transaction_properties or {})
        if self.commit_message is not None:
            properties[COMMIT_MESSAGE] = self.commit_message
        return WriteOptions(
            limits=Limits(
                rows_per_file=self.max_rows_per_file,
                bytes_per_file=self.max_bytes_per_file,
                cache_bytes=self.data_cache_bytes,
                page_bytes=self.max_page_bytes,
            ),
            data_storage_version=self._version(),
            stable_row_ids=self.enable_stable_row_ids,
            naming=NamingScheme.V2 if self.enable_v2_manifest_paths else NamingScheme.V1,
            config=self._config(),
            bases=tuple(item.to_stored() for item in self.initial_bases or ()),
            target_bases=self.target_bases,
            target_all_bases=self.target_all_bases,
            commit=CommitOptions(properties=properties, commit_lock=commit_lock),
        )

    def _version(self) -> str | None:
        """The data file version that is asked for, in the way of today or of old."""
        if self.use_legacy_format is None:
            return self.data_storage_version
        text = "use_legacy_format is deprecated, use data_storage_version instead"
        warnings.warn(text, DeprecationWarning, stacklevel=5)
        return "legacy" if self.use_legacy_format else "stable"

    def _config(self) -> Mapping[str, str]:
        given = self.auto_cleanup_options
        if given is None:
            return {}
        return auto_cleanup_config(given["interval"], older_than=timedelta(seconds=given["older_than_seconds"]))


def write_rows(data_obj: ReaderLike, uri: object, request: WriteRequest) -> tuple[TableLocation, Snapshot]:
    """Write rows and commit them; where the table is now, and the version that was made."""
    source, mode = checked_source(data_obj), mode_of(request.mode)
    target = target_of(
        uri, request.storage_options, request.base_store_params, request.commit_lock, request.session, what="dest"
    )
    place, location = target.place, target.location
    made = write(
        place,
        source,
        mode,
        schema=request.schema,
        options=request.options(location.commit_lock),
        progress=None if request.progress is None else ProgressListener(request.progress),
    )
    store = place.store if isinstance(place, Snapshot) else place
    return location, open_snapshot(store, version=made.version, options=location.options)
