"""DuckDB: queries in SQL over one dataset, shut in: it sees neither files nor the network nor Python's variables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from lancelet.config import default_options
from lancelet.dataset.sql import SqlRequest
from lancelet.errors import InvalidInput, OverBudget

__all__ = ["run_sql"]

#: Integers of 128 bits, which Arrow has not; sums of integers are such.
_HUGE = ("HUGEINT", "UHUGEINT")
_PLAN = ["plan_type", "plan"]


def run_sql(request: SqlRequest) -> pa.RecordBatchReader:
    """The rows of a query as a stream. InvalidInput for what DuckDB does not understand, or what is no query."""
    connection = _connected()
    with _told():
        connection.register(request.table_name, request.view())
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        kind = _kind(connection, request.sql)
        found: Any = connection.sql(request.sql)
        types = [str(item) for item in found.types]
        # Called so before DuckDB 1.4.
        reader = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
        rows: pa.RecordBatchReader = reader(request.batch_size)
    names = _PLAN if kind == "EXPLAIN" else rows.schema.names
    fields = [
        item.with_name(name).with_type(pa.int64() if kind_of in _HUGE else item.type)
        for name, item, kind_of in zip(names, rows.schema, types, strict=True)
    ]
    schema = pa.schema(fields)
    return pa.RecordBatchReader.from_batches(schema, _batches(connection, rows, schema))


def _connected() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
    connection.execute(f"SET memory_limit = '{default_options().memory_budget}B'")
    # What does not fit goes below the system's folder for temporary files, as ours does.
    folder = tempfile.gettempdir().replace("'", "''")
    connection.execute(f"SET temp_directory = '{folder}/lancelet-duckdb'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _kind(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    statements = connection.extract_statements(sql)
    kinds = [item.type.name for item in statements]
    if kinds not in (["SELECT"], ["EXPLAIN"]):
        found = f"the text holds {len(kinds)} statements" if len(kinds) != 1 else f"the statement is a {kinds[0]}"
        raise InvalidInput(f"{found}, expected one SELECT or EXPLAIN")
    return kinds[0]


def _batches(
    connection: duckdb.DuckDBPyConnection, rows: pa.RecordBatchReader, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    try:
        with _told():
            for batch in rows:
                columns = [_narrow(column, field) for column, field in zip(batch.columns, schema, strict=True)]
                yield pa.record_batch(columns, schema=schema)
    finally:
        connection.close()


def _narrow(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid:
        hint = "cast it in the query: to DOUBLE, or to VARCHAR"
        raise InvalidInput("an integer does not fit into 64 bits", column=field.name, hint=hint) from None


@contextmanager
def _told() -> Iterator[None]:
    """DuckDB's errors as ours."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise OverBudget(f"the query does not fit into the memory budget: {error}") from error
    except duckdb.Error as error:
        raise InvalidInput(f"the query cannot be carried out: {error}") from error
    except OSError as error:
        # What a reader of a result that DuckDB cannot finish raises.
        if isinstance(error, pa.ArrowException) or type(error) is OSError:
            raise InvalidInput(f"the query cannot be carried out: {error}") from error
        raise
