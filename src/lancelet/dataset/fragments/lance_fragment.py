"""LanceFragment: one fragment of a dataset, to be read, and rewritten without committing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lancelet.dataset.fragments.changes import FragmentChanges
from lancelet.dataset.fragments.columns import FragmentColumns
from lancelet.dataset.fragments.convert import file_from_stored, from_stored
from lancelet.dataset.fragments.metadata import DataFile, FragmentMetadata
from lancelet.dataset.given import given
from lancelet.dataset.scan_options import ColumnOrdering, Columns, Condition
from lancelet.dataset.scanner import LanceScanner
from lancelet.dataset.scanner_builder import ScannerBuilder
from lancelet.dataset.shown import shown_schema
from lancelet.errors import InvalidInput, Unsupported
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.fragments import Fragment
from lancelet.format.names import deletion_path
from lancelet.ops.sources import DataFrame

if TYPE_CHECKING:
    from lancelet.dataset.lance_dataset import LanceDataset

__all__ = ["FragmentSession", "LanceFragment"]


class LanceFragment(FragmentChanges, FragmentColumns, pads.Fragment):  # type: ignore[misc]
    """The rows of a dataset that were written together.

    What changes a fragment returns what a manifest is to say of it then: ``LanceDataset.commit`` makes that true.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://fragments", max_rows_per_file=2)
    >>> [(item.fragment_id, item.count_rows()) for item in dataset.get_fragments()]
    [(0, 2), (1, 1)]
    """

    def __init__(self, dataset: LanceDataset, fragment_id: int | None, *, fragment: Fragment | None = None) -> None:
        if fragment is None:
            if fragment_id is None:
                raise InvalidInput("neither a fragment nor the id of one is given")
            fragments = dataset.snapshot.manifest.fragments
            place = fragments.place_of(fragment_id)
            if place is None:
                hint = f"there are {len(fragments)}: {dataset.fragment_ids()}"
                raise InvalidInput(f"there is no fragment {fragment_id}", uri=dataset.uri, hint=hint)
            fragment = fragments[place]
        # A dataset of its own: the fragment stays what it is when the dataset goes on.
        self._dataset = dataset.__copy__()
        self._fragment = fragment

    def __repr__(self) -> str:
        files = [item.path for item in self._fragment.files]
        deleted = self.deletion_file()
        return f"LanceFragment(id={self.fragment_id}, data_files={files}" + (
            ")" if deleted is None else f", deletion_file={deleted!r})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return LanceFragment, (self._dataset, self.fragment_id)

    @property
    def fragment_id(self) -> int:
        """The fragment's number in the table."""
        return self._fragment.id

    @property
    def metadata(self) -> FragmentMetadata:
        """What the manifest says of it."""
        return from_stored(self._fragment)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the dataset."""
        return shown_schema(schema_to_arrow(self._dataset.snapshot.schema))

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns of the dataset; those that no file of the fragment has are null."""
        return self.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """Not offered: tables are not partitioned."""
        raise Unsupported("tables are not partitioned")

    @property
    def physical_rows(self) -> int:
        """Rows in the files, deleted ones among them."""
        known = self._fragment.physical_rows
        return (
            self.scanner(columns=[], with_row_id=True, include_deleted_rows=True).count_rows()
            if known is None
            else known
        )

    @property
    def num_deletions(self) -> int:
        """Rows that are deleted."""
        known = self._fragment.num_deleted_rows
        return self.physical_rows - self.count_rows() if known is None else known

    def data_files(self) -> list[DataFile]:
        """The data files, side by side: each has some of the columns."""
        return [file_from_stored(item) for item in self._fragment.files]

    def deletion_file(self) -> str | None:
        """The path of the file that says what rows are deleted; None if none are."""
        found = self._fragment.deletion_file
        return None if found is None else deletion_path(self.fragment_id, found)

    def validate(self) -> None:
        """Raise Corrupt where the fragment's files do not fit together."""
        from lancelet.dataset.validation import validate_fragments

        validate_fragments(self._dataset.snapshot, self._dataset.places, [self._fragment])

    def count_rows(self, filter: Condition | None = None) -> int:
        """How many rows there are that are not deleted, or how many of them meet a condition."""
        if filter is None and self._fragment.num_rows is not None:
            return self._fragment.num_rows
        return self.scanner(filter=filter).count_rows()

    def scanner(
        self,
        *,
        columns: Columns | None = None,
        batch_size: int | None = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: str | None = None,
        order_by: list[ColumnOrdering] | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
    ) -> LanceScanner:
        """A scan of the fragment; what each parameter means is told by ``ScannerBuilder``."""
        return self._scanner(given(locals()))

    def _scanner(self, options: Mapping[str, object]) -> LanceScanner:
        builder = ScannerBuilder(self._dataset).with_fragments([self])
        for name, value in options.items():
            if value is not None:
                getattr(builder, name)(value)
        return builder.to_scanner()

    def to_table(
        self,
        columns: Columns | None = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: str | None = None,
        order_by: list[ColumnOrdering] | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
    ) -> pa.Table:
        """The fragment's rows, all at once."""
        return self._scanner(given(locals())).to_table()

    def to_batches(
        self,
        *,
        columns: Columns | None = None,
        batch_size: int | None = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: str | None = None,
        order_by: list[ColumnOrdering] | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The fragment's rows, batch by batch."""
        return self._scanner(given(locals())).to_batches()

    def to_pandas(
        self,
        columns: Columns | None = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_mode: str = "lazy",
        order_by: list[ColumnOrdering] | None = None,
        **kwargs: object,
    ) -> DataFrame:
        """The fragment's rows as a data frame; ``kwargs`` are those of ``pyarrow.Table.to_pandas``."""
        options = given(locals(), "blob_mode", "kwargs")
        return self._scanner(options).to_pandas(blob_mode=blob_mode, **kwargs)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows."""
        return self.scanner(limit=num_rows).to_table()

    def take(self, indices: Iterable[int], columns: Columns | None = None) -> pa.Table:
        """The rows with some numbers, counted among those of the fragment that are not deleted, in the order asked."""
        from lancelet.dataset.takes import take_of_fragment

        return take_of_fragment(self._dataset, self._fragment, indices, columns)

    def open_session(self, columns: Columns | None = None, with_row_address: bool | None = None) -> FragmentSession:
        """The fragment open for many takes of the same columns."""
        return FragmentSession(self, columns, bool(with_row_address))


class FragmentSession:
    """Takes of the same columns of one fragment, one after the other."""

    def __init__(self, fragment: LanceFragment, columns: Columns | None, with_row_address: bool) -> None:
        self._fragment = fragment
        self._columns = fragment.schema.names if columns is None else columns
        if with_row_address:
            self._columns = (
                {**self._columns, "_rowaddr": "_rowaddr"}
                if isinstance(self._columns, Mapping)
                else [*self._columns, "_rowaddr"]
            )

    def take(self, indices: Iterable[int]) -> pa.Table:
        """The rows with some numbers."""
        return self._fragment.take(indices, self._columns)
