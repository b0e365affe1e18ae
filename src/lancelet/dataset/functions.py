"""The two functions that users begin with: opening a table, and writing rows into one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import pyarrow as pa

from lancelet.dataset.base_path import DatasetBasePath
from lancelet.dataset.core import ScanDefaults
from lancelet.dataset.given import given
from lancelet.dataset.lance_dataset import LanceDataset
from lancelet.dataset.location import StorageOptions
from lancelet.dataset.progress import FragmentWriteProgress
from lancelet.dataset.writing import BYTES_PER_FILE, AutoCleanupConfig, WriteRequest, write_rows
from lancelet.errors import InvalidInput
from lancelet.session import Session
from lancelet.table.commit import CommitLock
from lancelet.table.versions import version_at
from lancelet.types import ReaderLike
from lancelet.util import sanitize_ts

__all__ = ["dataset", "write_dataset"]


def dataset(
    uri: str | os.PathLike[str] | None = None,
    version: int | str | None = None,
    asof: datetime | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: StorageOptions | None = None,
    default_scan_options: ScanDefaults | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: Mapping[str, object] | None = None,
    session: Session | None = None,
    namespace_client: object | None = None,
    table_id: list[str] | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
) -> LanceDataset:
    """Open the table at a URI or path: its newest version, or the one of a number, a tag or a moment (``asof``).

    ``default_scan_options`` are what every scan is given unless the scan says otherwise; columns such as ``_rowid``
    that they ask for are part of the schema. ``storage_options`` are for remote stores; ``base_<id>.<key>`` among
    them is for one base path alone, as are ``base_store_params``, by the base paths' URIs. ``block_size`` is the gap
    between two ranges up to which they are read together. ``commit_lock`` is for stores whose conditional writes
    cannot be trusted. NotFound where there is no table.

    >>> import lancelet
    >>> _ = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://opened")
    >>> lancelet.dataset("memory://opened").to_table().to_pydict()
    {'x': [1, 2]}
    """
    if uri is None:
        raise InvalidInput("no uri is given", hint="give a path or a URI")
    opened = LanceDataset(
        uri,
        version,
        block_size,
        commit_lock=commit_lock,
        index_cache_size=index_cache_size,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        metadata_cache_size_bytes=metadata_cache_size_bytes,
        index_cache_size_bytes=index_cache_size_bytes,
        read_params=read_params,
        session=session,
        namespace_client=namespace_client,
        table_id=table_id,
        base_store_params=base_store_params,
    )
    if version is not None or asof is None:
        return opened
    found = version_at(opened.snapshot.store, sanitize_ts(asof), options=opened.location.options)
    return opened.checkout_version(found)


def write_dataset(
    data_obj: ReaderLike,
    uri: str | os.PathLike[str] | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = 1024 * 1024,
    max_rows_per_group: int = 1024,
    max_bytes_per_file: int = BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    commit_lock: CommitLock | None = None,
    progress: FragmentWriteProgress | None = None,
    storage_options: StorageOptions | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: AutoCleanupConfig | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: int | None = None,
    namespace_client: object | None = None,
    table_id: list[str] | None = None,
    session: Session | None = None,
) -> LanceDataset:
    """Write rows into a table, and commit them; a dataset at the version that was made.

    ``mode`` is ``"create"`` (AlreadyExists where there is a table), ``"append"`` or ``"overwrite"``, which make the
    table where there is none. Rows come as Arrow data, a reader, an iterable of batches (with ``schema``), a data
    frame, a dataset, a mapping of columns, or a list of rows; streams are never held whole.

    >>> import lancelet
    >>> made = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://made")
    >>> lancelet.write_dataset([{"x": 3}], made, mode="append").to_table()["x"].to_pylist()
    [1, 2, 3]
    """
    request = WriteRequest(**given(locals(), "data_obj", "uri"))
    if uri is None:
        raise InvalidInput("no uri is given", hint="give a path or a URI")
    return LanceDataset._open(*write_rows(data_obj, uri, request))
