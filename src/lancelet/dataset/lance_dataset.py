"""LanceDataset: one version of a table, to be read, searched and changed; put together from its parts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

from lancelet.config import default_options
from lancelet.dataset.blobs import DatasetBlobs
from lancelet.dataset.changes import DatasetChanges
from lancelet.dataset.cleanup import DatasetCleanup
from lancelet.dataset.clones import DatasetClones
from lancelet.dataset.columns import DatasetColumns
from lancelet.dataset.core import ScanDefaults
from lancelet.dataset.delta import DatasetDeltas
from lancelet.dataset.history import DatasetHistory
from lancelet.dataset.index_segments import DatasetIndexSegments
from lancelet.dataset.indexes import DatasetIndexes
from lancelet.dataset.inspection import DatasetInspection
from lancelet.dataset.location import StorageOptions, TableLocation, refuse_namespace, uri_of
from lancelet.dataset.models import DatasetModels
from lancelet.dataset.opening import open_version
from lancelet.dataset.optimizing import DatasetOptimizer
from lancelet.dataset.scanning import DatasetScanning
from lancelet.dataset.settings import DatasetSettings
from lancelet.dataset.sql import DatasetSql
from lancelet.dataset.takes import DatasetTakes
from lancelet.dataset.transactions import DatasetTransactions
from lancelet.errors import Unsupported
from lancelet.session import Session
from lancelet.table.commit import CommitLock

__all__ = ["LanceDataset"]

#: What an entry of the index cache was counted as, when its size was given in entries.
_ENTRY = 20 * 2**20


class LanceDataset(
    DatasetHistory,
    DatasetClones,
    DatasetSettings,
    DatasetCleanup,
    DatasetDeltas,
    DatasetTransactions,
    DatasetChanges,
    DatasetColumns,
    DatasetModels,
    DatasetScanning,
    DatasetTakes,
    DatasetSql,
    DatasetBlobs,
    DatasetIndexes,
    DatasetIndexSegments,
    DatasetInspection,
):
    """A table at one of its versions.

    Reading it never changes what it shows: other writers' versions are seen after ``checkout_latest``. A change made
    through it is a commit, at whose version it is then. Threads may share it; processes get their own by fork or
    pickle. As a pyarrow dataset it is queried by DuckDB and Polars.

    >>> import lancelet, pyarrow as pa
    >>> lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://dataset")
    LanceDataset('memory://dataset', version=1)
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        version: int | str | None = None,
        block_size: int | None = None,
        index_cache_size: int | None = None,
        metadata_cache_size: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: StorageOptions | None = None,
        serialized_manifest: bytes | None = None,
        default_scan_options: ScanDefaults | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_size_bytes: int | None = None,
        read_params: Mapping[str, object] | None = None,
        session: Session | None = None,
        namespace_client: object | None = None,
        table_id: list[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: dict[str, dict[str, str]] | None = None,
    ) -> None:
        """Open a table; see ``lancelet.dataset``, which is how it is usually done."""
        refuse_namespace(namespace_client, table_id, namespace_client_managed_versioning)
        if serialized_manifest is not None:
            raise Unsupported("a dataset is not made of a serialized manifest", hint="pickle the dataset instead")
        if index_cache_size is not None:
            text = "index_cache_size is deprecated, use index_cache_size_bytes instead: an entry counts 20 MiB"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            index_cache_size_bytes = index_cache_size_bytes or index_cache_size * _ENTRY
        if session is None and (metadata_cache_size or metadata_cache_size_bytes or index_cache_size_bytes):
            session = Session(index_cache_size_bytes, metadata_cache_size_bytes)
        options = default_options()
        if block_size is not None:
            options = options.with_(coalesce_gap=_block_size(block_size))
        self._location = TableLocation(
            uri=uri_of(uri),
            storage_options=storage_options,
            base_store_params=base_store_params,
            commit_lock=commit_lock,
            session=session or Session(),
            options=options,
        )
        self._default_scan_options = default_scan_options
        self._read_params = read_params
        self._go_to(open_version(self._location, version))

    @property
    def optimize(self) -> DatasetOptimizer:
        """What makes the table faster to read and changes none of its rows."""
        return DatasetOptimizer(self)


def _block_size(size: object) -> int:
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"block_size must be an int, got {type(size).__name__}")
    return size
