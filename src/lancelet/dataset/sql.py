"""Queries in SQL over a dataset: put together step by step, and carried out by DuckDB with our scans below it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Protocol, Self, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.scanner import LanceScanner
from lancelet.errors import InvalidInput, NotFound
from lancelet.query.request import ROW_ADDRESS, ROW_ID

__all__ = ["DatasetSql", "SqlQuery", "SqlQueryBuilder", "SqlRequest", "SqlView"]

_BATCH, _MOST = 8192, 2**32 - 1
_BLOBS = ("all_binary", "blobs_descriptions", "all_descriptions")


class _Scanned(Protocol):
    """As much of a dataset as a query needs."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    def scanner(self, **options: object) -> LanceScanner:
        """A scan of it."""


class SqlView(pads.Dataset):  # type: ignore[misc]
    """A dataset as a query sees it: with row ids if asked for, and with what scans are told besides."""

    _dataset: _Scanned
    _options: Mapping[str, object]
    _extra: tuple[str, ...]

    @classmethod
    def of(cls, dataset: _Scanned, options: Mapping[str, object], extra: tuple[str, ...]) -> Self:
        """The view; the base class cannot be made by its constructor, as pyarrow has it."""
        made: Self = cls.__new__(cls)
        made._dataset, made._options, made._extra = dataset, options, extra
        return made

    @property
    def schema(self) -> pa.Schema:
        """The columns, those of row ids last."""
        return self.scanner().projected_schema

    def scanner(
        self, columns: list[str] | None = None, filter: pc.Expression | None = None, **options: object
    ) -> LanceScanner:
        """A scan of the columns that a query needs, and of the rows that its conditions let through."""
        wanted = [*self._dataset.schema.names, *self._extra] if columns is None else columns
        return self._dataset.scanner(columns=wanted, filter=filter, **{**options, **self._options})


@dataclass(frozen=True, slots=True)
class SqlRequest:
    """A query over one dataset."""

    dataset: _Scanned
    sql: str
    table_name: str = "dataset"
    #: Columns of rows themselves that the query may name.
    extra: tuple[str, ...] = ()
    batch_size: int = _BATCH
    #: What scans are told.
    options: Mapping[str, object] = field(default_factory=dict, hash=False)

    def view(self) -> SqlView:
        """The dataset as the query sees it."""
        return SqlView.of(self.dataset, self.options, self.extra)


class SqlQuery:
    """A query that can be carried out, once or more often."""

    def __init__(self, query: SqlRequest) -> None:
        """See ``LanceDataset.sql``."""
        self._query = query

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """The rows, all of them in memory.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://sql-batches")
        >>> query = dataset.sql("SELECT x FROM dataset WHERE x > 1").build()
        >>> query.to_batch_records()[0].to_pydict()
        {'x': [2, 3]}
        """
        return [batch for batch in self.to_stream_reader() if batch.num_rows]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream, worked out while it is read."""
        return _engine().run_sql(self._query)


class SqlQueryBuilder:
    """Collects what a query is to be like; each method but the last returns the builder itself."""

    def __init__(self, builder: SqlRequest) -> None:
        """See ``LanceDataset.sql``."""
        self._request = builder

    def table_name(self, table_name: str) -> Self:
        """By what name the query calls the dataset; ``dataset`` if nothing is said."""
        if not isinstance(table_name, str) or not table_name:
            raise InvalidInput(f"the table is to be called {table_name!r}", hint="give a name")
        return self._with(table_name=table_name)

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Whether the query may name ``_rowid``, which is then also among all columns."""
        return self._extra(ROW_ID, with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> Self:
        """Whether the query may name ``_rowaddr``, which is then also among all columns."""
        return self._extra(ROW_ADDRESS, with_row_addr)

    def blob_handling(self, blob_handling: str) -> Self:
        """What blobs are: bytes (``"all_binary"``), or where they lie (``"blobs_descriptions"``)."""
        if blob_handling not in _BLOBS:
            raise InvalidInput(f"blob_handling is {blob_handling!r}, expected one of {', '.join(_BLOBS)}")
        return self._option("blob_handling", blob_handling)

    def batch_size(self, batch_size: int) -> Self:
        """The most rows of a batch."""
        size = operator.index(batch_size)
        if not 1 <= size <= _MOST:
            raise InvalidInput(f"batch_size is {size}, expected 1 to {_MOST}")
        return self._with(batch_size=size)._option("batch_size", size)

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """About the most bytes of a batch of a scan."""
        return self._option("batch_size_bytes", operator.index(batch_size_bytes))

    def build(self) -> SqlQuery:
        """The query."""
        return SqlQuery(self._request)

    def _with(self, **changes: object) -> Self:
        self._request = replace(self._request, **changes)  # type: ignore[arg-type]
        return self

    def _option(self, name: str, value: object) -> Self:
        return self._with(options={**self._request.options, name: value})

    def _extra(self, name: str, wanted: bool) -> Self:
        # In the order in which scans hand them out.
        names = {*self._request.extra, name} if wanted else {*self._request.extra} - {name}
        return self._with(extra=tuple(item for item in (ROW_ID, ROW_ADDRESS) if item in names))


class DatasetSql(DatasetCore):
    """What queries a dataset in SQL."""

    def sql(self, sql: str) -> SqlQueryBuilder:
        """A query in SQL over the version that the dataset is at, which it calls ``dataset``; DuckDB carries it out.

        Scans read only the columns and rows that the query needs. It is DuckDB's dialect; nothing but the dataset can
        be queried, neither files nor variables. Needs the extra ``duckdb``.

        >>> import lancelet
        >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2, 3]}), "memory://sql")
        >>> query = dataset.sql("SELECT sum(x) AS total FROM dataset WHERE x > 1").build()
        >>> query.to_batch_records()[0].to_pylist()
        [{'total': 5}]
        """
        if not isinstance(sql, str):
            raise TypeError(f"a query is text, got {type(sql).__name__}")
        return SqlQueryBuilder(SqlRequest(cast("_Scanned", self), sql))


class _Engine(Protocol):
    """What carries queries out."""

    def run_sql(self, request: SqlRequest) -> pa.RecordBatchReader:
        """The rows of a query."""


def _engine() -> _Engine:
    try:
        return cast("_Engine", import_module("lancelet.integrations.duckdb"))
    except ModuleNotFoundError as error:
        if error.name != "duckdb":
            raise
        raise NotFound("queries in SQL need DuckDB", hint="pip install 'lancelet[duckdb]'") from None
