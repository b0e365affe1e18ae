"""Reading a dataset: scans, whole or in batches, and counts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.given import given
from lancelet.dataset.scan_options import (
    ColumnOrdering,
    Columns,
    Condition,
    ScanOptions,
    ScanStatistics,
    bind,
    checked_filter,
)
from lancelet.dataset.scanner import LanceScanner
from lancelet.dataset.scanner_builder import ScannerBuilder
from lancelet.dataset.shown import shown_schema
from lancelet.errors import InvalidInput, Unsupported
from lancelet.format.arrow import schema_to_arrow
from lancelet.ops.sources import DataFrame
from lancelet.query.count import count_request, count_rows

__all__ = ["DatasetScanning"]

#: Setters that are not called like the parameters of ``scanner``.
_SETTERS = {"fragments": "with_fragments", "index_segments": "with_index_segments"}


class DatasetScanning(DatasetCore):
    """What reads rows in the order of the table, or in another."""

    def scanner(
        self,
        columns: Columns | None = None,
        filter: Condition | Mapping[str, object] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, object] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[pads.Fragment] | None = None,
        index_segments: Iterable[str | UUID] | None = None,
        full_text_query: str | Mapping[str, object] | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], None] | None = None,
        strict_batch_size: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
    ) -> LanceScanner:
        """A scan of the version that the dataset is at; what each parameter means is told by ``ScannerBuilder``.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://scans")
        >>> dataset.scanner(columns={"y": "x * 2"}, filter="x > 1", with_row_id=True).to_table().to_pydict()
        {'y': [4, 6], '_rowid': [1, 2]}
        """
        return self._built(given(locals()))

    def _built(self, options: dict[str, object]) -> LanceScanner:
        """A scanner of the dataset's own defaults and of what was given."""
        builder = ScannerBuilder(self)
        if self._default_scan_options:
            builder.apply_defaults(self._default_scan_options)
        allowed, blocked = options.pop("row_addr_allowlist", None), options.pop("row_addr_blocklist", None)
        if allowed is not None or blocked is not None:
            builder.row_addr_prefilter(allowed, blocked)  # type: ignore[arg-type]
        nearest, text = options.pop("nearest", None), options.pop("full_text_query", None)
        orders = options.pop("order_by", None)
        if orders is not None:
            builder.order_by([ColumnOrdering(item) if isinstance(item, str) else item for item in orders])  # type: ignore[attr-defined]
        for name, value in options.items():
            if value is not None:
                getattr(builder, _SETTERS.get(name, name))(value)
        if text is not None:
            builder.full_text_search(text)
        if nearest is not None:
            if not isinstance(nearest, Mapping):
                raise TypeError(f"nearest must be a mapping with 'column' and 'q', got {type(nearest).__name__}")
            builder.nearest(**nearest)
        return builder.to_scanner()

    def to_table(
        self,
        columns: Columns | None = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, object] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: str | Mapping[str, object] | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
    ) -> pa.Table:
        """The rows of a scan, all at once.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3], "y": ["a", "b", None]}), "memory://tables")
        >>> dataset.to_table(columns=["y"], filter="y IS NOT NULL", limit=1).to_pydict()
        {'y': ['a']}
        """
        return self._built(given(locals())).to_table()

    def to_batches(
        self,
        columns: Columns | None = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, object] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        full_text_query: str | Mapping[str, object] | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        strict_batch_size: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: object,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a scan, batch by batch.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://batches")
        >>> [batch.num_rows for batch in dataset.to_batches(batch_size=2)]
        [2, 1]
        """
        options = given(locals(), "kwargs")
        return self._built({**options, **kwargs}).to_batches()

    def to_pandas(
        self,
        columns: Columns | None = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, object] | None = None,
        batch_size: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: str | Mapping[str, object] | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_mode: str = "lazy",
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        order_by: list[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **kwargs: object,
    ) -> DataFrame:
        """The rows of a scan as a data frame; ``kwargs`` are those of ``pyarrow.Table.to_pandas``.

        ``blob_mode`` is ``"lazy"`` (files that are read when they are used), ``"bytes"`` or ``"descriptions"``.
        """
        options = given(locals(), "blob_mode", "kwargs")
        return self._built(options).to_pandas(blob_mode=blob_mode, **kwargs)

    def head(self, num_rows: int, **kwargs: object) -> pa.Table:
        """The first rows; ``kwargs`` are those of ``scanner``."""
        return self._built({**kwargs, "limit": num_rows}).to_table()

    def slice(self, start: int, end: int, columns: Columns | None = None) -> pa.Table:
        """The rows from number ``start`` up to but not including ``end``."""
        if start < 0:
            raise InvalidInput(f"start is {start}, expected at least 0")
        if end < start:
            raise InvalidInput(f"end is {end}, expected at least start, which is {start}")
        return self.scanner(columns=columns, offset=start, limit=end - start).to_table()

    def count_rows(self, filter: Condition | None = None, **kwargs: object) -> int:
        """How many rows there are, or meet a condition.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://counted")
        >>> dataset.count_rows(), dataset.count_rows("x > 1"), len(dataset)
        (3, 2, 3)
        """
        if filter is None:
            return count_rows(self._snapshot, places=self._places)
        request = bind(self._snapshot, ScanOptions(columns=[], filters=(checked_filter(filter),)))
        return count_request(self._snapshot, request, places=self._places)

    def __len__(self) -> int:
        return self.count_rows()

    def sample(
        self, num_rows: int, columns: Columns | None = None, randomize_order: bool = True, **kwargs: object
    ) -> pa.Table:
        """So many rows drawn at random, none twice, in random order or in that of the table."""
        found = random.sample(range(self.count_rows()), num_rows)
        return self.take(found if randomize_order else sorted(found), columns, **kwargs)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows as Arrow's C stream, for any library that takes one."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns, with those that the default options of scans add."""
        if self._default_scan_options:
            return self.scanner().projected_schema
        return shown_schema(schema_to_arrow(self._snapshot.schema))

    @property
    def partition_expression(self) -> pc.Expression:
        """Not offered: tables are not partitioned."""
        raise Unsupported("tables are not partitioned")

    def filter(self, expression: pc.Expression) -> pads.Dataset:
        """Not offered: scans take conditions."""
        raise Unsupported("a dataset is not filtered by itself", hint="give the filter to the scan, or to count_rows")

    def sort_by(self, sorting: object, **kwargs: object) -> pads.Dataset:
        """Not offered: scans take an order."""
        raise Unsupported("a dataset is not sorted by itself", hint="give order_by to the scan")

    def join(
        self,
        right_dataset: object,
        keys: object,
        right_keys: object = None,
        join_type: str = "left outer",
        left_suffix: str | None = None,
        right_suffix: str | None = None,
        coalesce_keys: bool = True,
        use_threads: bool = True,
    ) -> pads.Dataset:
        """Not offered: DuckDB joins datasets, and ``merge`` adds columns by a key."""
        raise Unsupported("datasets are not joined", hint="query them with DuckDB, or add columns with merge")

    def join_asof(
        self, right_dataset: object, on: object, by: object, tolerance: object, **kwargs: object
    ) -> pads.Dataset:
        """Not offered: DuckDB joins datasets."""
        raise Unsupported("datasets are not joined", hint="query them with DuckDB")
