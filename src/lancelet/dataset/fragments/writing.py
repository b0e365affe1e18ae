"""Writing fragments that no version names yet: many processes write, and one of them commits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from lancelet.dataset.base_path import DatasetBasePath
from lancelet.dataset.fragments.convert import from_stored
from lancelet.dataset.fragments.metadata import FragmentMetadata
from lancelet.dataset.given import given
from lancelet.dataset.location import StorageOptions
from lancelet.dataset.operation import Transaction
from lancelet.dataset.progress import FragmentWriteProgress, ProgressListener
from lancelet.dataset.stored_operation import transaction_from_stored
from lancelet.dataset.writing import BYTES_PER_FILE, WriteRequest, mode_of, target_of
from lancelet.format.fragments import Fragment
from lancelet.format.transaction import Transaction as Stored
from lancelet.ops.writing import write_uncommitted
from lancelet.session import Session
from lancelet.types import ReaderLike, checked_source

if TYPE_CHECKING:
    from lancelet.dataset.lance_dataset import LanceDataset

__all__ = ["write_fragment_files", "write_fragments"]


def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | LanceDataset,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    max_rows_per_file: int = 1024 * 1024,
    max_rows_per_group: int | None = 1024,
    max_bytes_per_file: int = BYTES_PER_FILE,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: FragmentWriteProgress | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: StorageOptions | None = None,
    enable_stable_row_ids: bool = False,
    target_bases: list[str] | None = None,
    target_all_bases: bool | None = None,
    initial_bases: list[DatasetBasePath] | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    namespace_client: object | None = None,
    table_id: list[str] | None = None,
    session: Session | None = None,
) -> list[FragmentMetadata] | Transaction:
    """Write rows as new fragments, without committing them: what a manifest is to say of each, or what commits all.

    Nothing of them can be seen before ``LanceDataset.commit``. What the parameters mean is told by ``write_dataset``.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://appended")
    >>> transaction = write_fragments(pa.table({"x": [3]}), dataset, return_transaction=True)
    >>> dataset.count_rows(), lancelet.LanceDataset.commit(dataset, transaction).count_rows()
    (2, 3)
    """
    request = WriteRequest(**given(locals(), "data", "dataset_uri", "return_transaction"))
    transaction, fragments = write_fragment_files(data, dataset_uri, request)
    if return_transaction:
        return transaction_from_stored(transaction)
    return [from_stored(item) for item in fragments]


def write_fragment_files(
    data: ReaderLike, dataset_uri: object, request: WriteRequest
) -> tuple[Stored, tuple[Fragment, ...]]:
    """The same in the words of the rooms below: what would commit the files, and the fragments."""
    source, mode = checked_source(data), mode_of(request.mode)
    target = target_of(
        dataset_uri, request.storage_options, request.base_store_params, None, request.session, what="dataset_uri"
    )
    return write_uncommitted(
        target.place,
        source,
        mode,
        schema=request.schema,
        options=request.options(None),
        progress=None if request.progress is None else ProgressListener(request.progress),
    )
