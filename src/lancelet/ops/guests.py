"""Rows held by objects of other libraries, which are known by their names: none of the libraries is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lancelet.errors import InvalidInput

__all__ = ["guest_reader", "is_from"]

#: Rows of a batch where the library makes batches of any size.
_ROWS = 8192


def is_from(source: object, library: str, *names: str) -> bool:
    """Whether an object is of a class of some name of a library.

    >>> is_from(pa.table({}), "pyarrow", "Table")
    True
    """
    kind = type(source)
    return kind.__name__ in names and kind.__module__.partition(".")[0] == library


def guest_reader(source: Any, schema: pa.Schema | None) -> pa.RecordBatchReader | None:
    """The rows of a frame of pandas or Polars, or of a dataset of Hugging Face, as a stream; None for all else.

    >>> guest_reader([1], None) is None
    True
    """
    if is_from(source, "pandas", "DataFrame"):
        return pa.Table.from_pandas(source, schema=schema).to_reader()
    if is_from(source, "polars", "DataFrame"):
        return source.to_arrow().to_reader()
    if is_from(source, "polars", "LazyFrame"):
        return _lazy(source)
    if is_from(source, "datasets", "DatasetDict", "IterableDatasetDict"):
        splits = ", ".join(map(repr, source))
        raise InvalidInput(f"a dictionary of datasets is no dataset: it holds {splits}", hint="give one of them")
    if is_from(source, "datasets", "Dataset", "IterableDataset"):
        return _hugging_face(source, schema)
    return None


def _lazy(frame: Any) -> pa.RecordBatchReader:
    """Polars works the query out while its rows are written."""
    schema = frame.collect_schema().to_frame().to_arrow().schema

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in frame.collect_batches():
            yield from piece.to_arrow().cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _hugging_face(dataset: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    if getattr(dataset, "features", None) is None and schema is None and hasattr(dataset, "_resolve_features"):
        # Found in the first rows.
        dataset = dataset._resolve_features()
    known = dataset.features.arrow_schema if schema is None else schema
    if getattr(dataset, "_indices", 0) is None:
        # Rows as they lie there, none left out or moved: nothing is copied.
        return pa.RecordBatchReader.from_batches(known, _cast(dataset.data.table, known))

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in dataset.with_format("arrow").iter(batch_size=_ROWS):
            yield from _cast(piece, known)

    return pa.RecordBatchReader.from_batches(known, batches())


def _cast(table: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = table.select(schema.names).cast(schema).to_batches()
    return batches
