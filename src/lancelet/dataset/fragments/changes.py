"""What a fragment becomes by a change: files are written, and nothing is committed."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lancelet.dataset.fragments.convert import from_stored
from lancelet.dataset.fragments.existing import describe_file
from lancelet.dataset.fragments.metadata import FragmentMetadata
from lancelet.dataset.fragments.writing import write_fragment_files
from lancelet.dataset.location import StorageOptions
from lancelet.dataset.progress import FragmentWriteProgress
from lancelet.dataset.scan_options import Condition
from lancelet.dataset.writing import WriteRequest
from lancelet.errors import InvalidInput
from lancelet.format.fragments import Fragment
from lancelet.ops.delete import plan_delete, run_delete
from lancelet.query.request import ROW_ADDRESS
from lancelet.rows.addresses import join
from lancelet.session import Session
from lancelet.types import ReaderLike

if TYPE_CHECKING:
    from lancelet.dataset.lance_dataset import LanceDataset

__all__ = ["FragmentChanges"]


class FragmentChanges:
    """A fragment's changes, each as what a manifest is to say of it afterwards."""

    _dataset: LanceDataset
    _fragment: Fragment

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str],
        data: ReaderLike,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = 1024,
        progress: FragmentWriteProgress | None = None,
        mode: str = "append",
        *,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        storage_options: StorageOptions | None = None,
        namespace_client: object | None = None,
        table_id: list[str] | None = None,
        session: Session | None = None,
    ) -> FragmentMetadata:
        """Write rows as one fragment, whatever their number, which no version names yet.

        It gets its id when it is committed, unless one is given.
        """
        request = WriteRequest(
            schema=schema,
            mode=mode,
            max_rows_per_group=max_rows_per_group,
            max_rows_per_file=2**63 - 1,
            max_bytes_per_file=2**63 - 1,
            progress=progress,
            data_storage_version=data_storage_version,
            use_legacy_format=use_legacy_format,
            storage_options=storage_options,
            namespace_client=namespace_client,
            table_id=table_id,
            session=session,
        )
        _, fragments = write_fragment_files(data, dataset_uri, request)
        if len(fragments) != 1:
            raise InvalidInput("there are no rows to make a fragment of")
        return from_stored(replace(fragments[0], id=fragment_id or 0))

    @staticmethod
    def create_from_file(filename: str, dataset: LanceDataset, fragment_id: int) -> FragmentMetadata:
        """A fragment of a data file that lies among those of the dataset, its columns known by their names."""
        file, rows = describe_file(dataset, filename)
        return FragmentMetadata(fragment_id, [file], rows)

    def delete(self, predicate: Condition) -> FragmentMetadata | None:
        """Delete the rows that meet a condition; what is left of the fragment, None where nothing is."""
        scan = self._dataset.scanner(
            columns=[],
            filter=predicate,
            with_row_address=True,
            fragments=[self],
        )
        addresses = scan.to_table()[ROW_ADDRESS]
        return self._without(np.asarray(addresses).astype(np.uint64))

    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Delete rows by their numbers in the files; what is left of the fragment, None where nothing is."""
        numbers = [operator.index(item) for item in offsets]
        if numbers and (min(numbers) < 0 or max(numbers) >= 2**32):
            odd = min(numbers) if min(numbers) < 0 else max(numbers)
            raise InvalidInput(f"there is no row {odd} in fragment {self._fragment.id}", fragment=self._fragment.id)
        return self._without(join(self._fragment.id, np.array(numbers, np.uint64)))

    def _without(self, addresses: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> FragmentMetadata | None:
        if not len(addresses):
            return from_stored(self._fragment)
        result = run_delete(plan_delete(self._dataset.snapshot, addresses), self._dataset.places)
        if result.gone:
            return None
        return from_stored(result.updated[0] if result.updated else self._fragment)
