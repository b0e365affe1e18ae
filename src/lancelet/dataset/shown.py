"""Rows as users see them: JSON columns as Arrow's JSON type, of which files store another form."""

from __future__ import annotations

import pyarrow as pa

from lancelet.encodings.json import holds_json, shown_field, with_shown_json

__all__ = ["shown_batch", "shown_schema", "shown_table"]

#: Releases of pyarrow that know no JSON type show the bytes that are stored.
_KNOWS_JSON = hasattr(pa, "json_")


def shown_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of what is handed out.

    >>> shown_schema(pa.schema({"x": pa.int8()})).names
    ['x']
    """
    if not _KNOWS_JSON or not any(map(holds_json, schema)):
        return schema
    return pa.schema([shown_field(field) for field in schema], schema.metadata)


def shown_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch as it is handed out."""
    schema = shown_schema(batch.schema)
    if schema is batch.schema:
        return batch
    columns = [with_shown_json(column, field) for column, field in zip(batch.columns, batch.schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def shown_table(table: pa.Table) -> pa.Table:
    """A table as it is handed out."""
    schema = shown_schema(table.schema)
    if schema is table.schema:
        return table
    columns = []
    for column, field, shown in zip(table.columns, table.schema, schema, strict=True):
        chunks = [with_shown_json(chunk, field) for chunk in column.chunks]
        columns.append(column if shown is field else pa.chunked_array(chunks, shown.type))
    return pa.Table.from_arrays(columns, schema=schema)
