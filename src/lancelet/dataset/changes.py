"""Changes of a dataset's rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TypedDict

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.location import StorageOptions, TableLocation, uri_of
from lancelet.dataset.merge_insert import MergeInsertBuilder
from lancelet.dataset.scan_options import Condition, condition_of
from lancelet.dataset.writing import WriteRequest, write_rows
from lancelet.errors import InvalidInput, NotFound
from lancelet.format.names import VERSIONS, parse_manifest_name
from lancelet.ops.attempts import Attempts
from lancelet.ops.committing import CommitOptions
from lancelet.ops.deletion import delete_where, truncate
from lancelet.ops.update import update
from lancelet.types import ReaderLike

__all__ = ["DatasetChanges", "DeleteResult", "UpdateResult"]

_PATIENCE = timedelta(seconds=30)


class DeleteResult(TypedDict):
    """How many rows were deleted."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """How many rows got new values."""

    num_rows_updated: int


class DatasetChanges(DatasetCore):
    """What changes rows. Each change is a commit, at whose version the dataset is then."""

    def insert(self, data: ReaderLike, *, mode: str = "append", **kwargs: object) -> None:
        """Write rows into the table: behind those there are, or instead of them (``mode="overwrite"``).

        The options are those of ``write_dataset``.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://inserted")
        >>> dataset.insert(pa.table({"x": [3]}))
        >>> dataset.version, dataset.count_rows()
        (2, 3)
        """
        request = WriteRequest(mode=mode, **kwargs)  # type: ignore[arg-type]
        self._go_to(write_rows(data, self, request)[1])

    def delete(
        self,
        predicate: Condition,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _PATIENCE,
    ) -> DeleteResult:
        """Delete the rows that meet a condition; where it is null a row stays.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, None]}), "memory://deleting")
        >>> dataset.delete("x > 1"), dataset.to_table()["x"].to_pylist()
        ({'num_deleted_rows': 1}, [1, None])
        """
        done = delete_where(
            self._snapshot,
            condition_of(self._snapshot, predicate),
            attempts=Attempts(conflict_retries, retry_timeout.total_seconds()),
            options=self._commit_options(),
        )
        self._follow(done.committed)
        return DeleteResult(num_deleted_rows=done.num_deleted_rows)

    def update(
        self,
        updates: Mapping[str, str],
        where: Condition | None = None,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _PATIENCE,
        data_storage_version: str | None = None,
    ) -> UpdateResult:
        """Give columns new values, SQL expressions over the old ones, in the rows that meet a condition.

        >>> import lancelet, pyarrow as pa
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://updating")
        >>> dataset.update({"x": "x * 10"}, where="x > 1"), sorted(dataset.to_table()["x"].to_pylist())
        ({'num_rows_updated': 2}, [1, 20, 30])
        """
        if not isinstance(updates, Mapping):
            raise TypeError(f"updates must be a dict of expressions by column, got {type(updates).__name__}")
        odd = next((value for value in updates.values() if not isinstance(value, str)), None)
        if odd is not None:
            raise TypeError(f"new values are SQL expressions as text, got {odd!r}: write it as a literal")
        done = update(
            self._snapshot,
            dict(updates),
            None if where is None else condition_of(self._snapshot, where),
            data_storage_version=data_storage_version,
            attempts=Attempts(conflict_retries, retry_timeout.total_seconds()),
            options=self._commit_options(),
        )
        self._follow(done.committed)
        return UpdateResult(num_rows_updated=done.num_updated_rows)

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """A merge of other rows into the table by key: see :class:`MergeInsertBuilder`."""
        return MergeInsertBuilder(self, on)

    def truncate_table(self) -> None:
        """Delete all rows; the columns stay."""
        self._follow(truncate(self._snapshot, options=self._commit_options()))

    def _commit_options(self) -> CommitOptions:
        return CommitOptions(commit_lock=self._commit_lock())

    @staticmethod
    def drop(
        base_uri: str | os.PathLike[str],
        storage_options: StorageOptions | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Remove a table with all its versions and files. InvalidInput for a folder that holds no table.

        >>> import lancelet, pyarrow as pa
        >>> _ = lancelet.write_dataset(pa.table({"x": [1]}), "memory://dropped")
        >>> lancelet.LanceDataset.drop("memory://dropped")
        """
        store = TableLocation(uri=uri_of(base_uri), storage_options=storage_options).open()
        entries = list(store.list_from(""))
        if not entries and not ignore_not_found:
            raise NotFound("there is no table", uri=store.uri)
        if not entries:
            return
        if not any(parse_manifest_name(item.path) for item in entries if item.path.startswith(f"{VERSIONS}/")):
            hint = "check that the path is that of the table and not of a folder above it"
            raise InvalidInput(
                "there is no manifest below the folder, so that it is no table", uri=store.uri, hint=hint
            )
        # Manifests go first: what is left of a removal that is broken off is no table any more.
        paths = sorted((item.path for item in entries), key=lambda path: not path.startswith(f"{VERSIONS}/"))
        store.delete(paths)
