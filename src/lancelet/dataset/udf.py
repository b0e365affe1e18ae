"""Functions that compute new columns batch by batch, and what else may give columns their values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias, cast

import pyarrow as pa

from lancelet.dataset.udf_checkpoint import BatchUDFCheckpoint
from lancelet.errors import InvalidInput
from lancelet.ops.guests import is_from
from lancelet.query.request import ROW_ADDRESS, ROW_ID
from lancelet.types import ReaderLike, reader_of

__all__ = ["BatchFunction", "BatchUDF", "Transforms", "batch_udf", "normalize_transform"]

#: A function of batches: it returns a batch, or a pandas data frame, with as many rows.
BatchFunction: TypeAlias = "Callable[[pa.RecordBatch], object]"


class BatchUDF:
    """A function of batches whose results are new columns; ``batch_udf`` makes one by decorating a function.

    >>> double = BatchUDF(lambda batch: pa.record_batch({"y": batch["x"]}))
    >>> double(pa.record_batch({"x": [1]}))["y"].to_pylist()
    [1]
    """

    def __init__(
        self,
        func: BatchFunction,
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """``checkpoint_file`` keeps results until they are committed, so that another run carries on from them."""
        self.func = func
        self.output_schema = output_schema
        self.cache = None if checkpoint_file is None else BatchUDFCheckpoint(checkpoint_file)

    def __call__(self, batch: pa.RecordBatch) -> object:
        return self.func(batch)


#: What may give new columns their values: SQL expressions by name, a function, or rows in the order of the table.
Transforms: TypeAlias = "Mapping[str, str] | BatchUDF | BatchFunction | ReaderLike"


class BatchSource(Protocol):
    """A dataset or a fragment, whose first row a function is tried on."""

    def to_batches(
        self, *, columns: list[str] | None, limit: int | None, with_row_id: bool, with_row_address: bool
    ) -> Iterator[pa.RecordBatch]:
        """Its rows."""


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | os.PathLike[str] | None = None
) -> Callable[[BatchFunction], BatchUDF]:
    """Decorate a function of batches for ``add_columns``; without a schema that of its first result is taken.

    >>> import lancelet
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1, 2]}), "memory://batch-udf")
    >>> @lancelet.batch_udf()
    ... def double(batch):
    ...     return pa.record_batch({"y": pa.compute.multiply(batch["x"], 2)})
    >>> dataset.add_columns(double)
    >>> dataset.to_table()["y"].to_pylist()
    [2, 4]
    """

    def inner(func: BatchFunction) -> BatchUDF:
        return BatchUDF(func, output_schema, checkpoint_file)

    return inner


def normalize_transform(
    udf_like: Transforms,
    data_source: BatchSource,
    read_columns: list[str] | None = None,
    reader_schema: pa.Schema | None = None,
) -> dict[str, str] | BatchUDF | pa.RecordBatchReader:
    """What columns are computed by, in one of three forms: expressions, a BatchUDF that knows its schema, a reader.

    >>> normalize_transform({"y": "x + 1"}, None)
    {'y': 'x + 1'}
    """
    if isinstance(udf_like, BatchUDF):
        if udf_like.output_schema is None:
            udf_like.output_schema = _tried(udf_like, data_source, read_columns)
        return udf_like
    # A mapping of columns of values is no mapping of expressions, but pylance takes none as rows either.
    if isinstance(udf_like, Mapping):
        return _expressions(udf_like)
    if callable(udf_like):
        made = BatchUDF(cast("BatchFunction", udf_like))
        try:
            made.output_schema = _tried(made, data_source, read_columns)
        except Exception as error:
            found = f"{type(udf_like).__name__} is callable, but gave an error when called with a batch"
            raise TypeError(f"{_EXPECTED}, {found}: {error}") from error
        return made
    try:
        return reader_of(udf_like, reader_schema)
    except TypeError as error:
        raise TypeError(f"{_EXPECTED}, got {type(udf_like).__name__}: {error}") from error


_EXPECTED = "new columns come from a BatchUDF, a dict of SQL expressions, a function of batches, or rows"


def _expressions(given: Mapping[str, object]) -> dict[str, str]:
    for name, text in given.items():
        if not isinstance(name, str):
            raise TypeError(f"Column names must be a string. Got {type(name)}")
        if not isinstance(text, str):
            raise TypeError(f"Column expressions must be a string. Got {type(text)}")
    return cast("dict[str, str]", dict(given))


def split_columns(read_columns: Iterable[str] | None) -> tuple[list[str] | None, bool, bool]:
    """The stored columns to read, whether row ids are wanted, and whether addresses.

    >>> split_columns(["x", "_rowid"])
    (['x'], True, False)
    """
    if read_columns is None:
        return None, False, False
    names = list(read_columns)
    stored = [name for name in names if name not in (ROW_ID, ROW_ADDRESS)]
    return stored, ROW_ID in names, ROW_ADDRESS in names


def _tried(udf: BatchUDF, source: BatchSource, read_columns: Sequence[str] | None) -> pa.Schema:
    """The schema of what a function makes of the first row."""
    columns, with_row_id, with_row_address = split_columns(read_columns)
    first = source.to_batches(columns=columns, limit=1, with_row_id=with_row_id, with_row_address=with_row_address)
    batch = next((item for item in first if item.num_rows), None)
    if batch is None:
        hint = "give output_schema"
        raise InvalidInput("there is no row that the function could be tried on", hint=hint)
    return as_batch(udf(batch)).schema


def as_batch(made: object) -> pa.RecordBatch:
    """What a function returned as a batch; InvalidInput where it is neither that nor a data frame."""
    if is_from(made, "pandas", "DataFrame"):
        return pa.RecordBatch.from_pandas(made)
    if not isinstance(made, pa.RecordBatch):
        found = f"the function returned a {type(made).__name__}"
        raise InvalidInput(f"{found}, expected a pyarrow.RecordBatch or a pandas.DataFrame")
    return made
