"""Sources: rows in whatever form a caller has them, read as a stream of Arrow batches of one schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias, cast, runtime_checkable

import pyarrow as pa
import pyarrow.dataset as pads

from lancelet.errors import InvalidInput
from lancelet.ops.guests import guest_reader, is_from

__all__ = ["ArrowStream", "DataFrame", "Source", "is_materialized", "reader_of"]


@runtime_checkable
class ArrowStream(Protocol):
    """Anything that exports its rows as Arrow's C stream: Polars, DuckDB, pandas, readers of other libraries."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with the stream."""


class DataFrame(Protocol):
    """As much of a pandas data frame as tells it from others."""

    @property
    def columns(self) -> object:
        """Names of its columns."""

    @property
    def index(self) -> object:
        """Labels of its rows."""


#: What rows may come as. Mappings hold a list of values for each column; in a list, each mapping is a row.
Source: TypeAlias = (
    "pa.Table | pa.RecordBatch | pa.RecordBatchReader | pads.Dataset | pads.Scanner | ArrowStream | DataFrame"
    " | Mapping[str, object] | Iterable[pa.RecordBatch] | Iterable[pa.Table] | Iterable[Mapping[str, object]]"
)


def is_materialized(source: Source) -> bool:
    """Whether all rows are in memory already, so that they can be read again.

    >>> is_materialized(pa.table({"x": [1]})), is_materialized(pa.table({"x": [1]}).to_reader())
    (True, False)
    """
    if isinstance(source, pa.Table | pa.RecordBatch | Mapping | list):
        return True
    return is_from(source, "pandas", "DataFrame") or is_from(source, "polars", "DataFrame")


def reader_of(source: Source, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """The rows as a stream. With a ``schema``, batches of an iterable and plain Python values are made to fit it.

    >>> reader_of({"x": [1, 2]}).read_all().num_rows, reader_of([{"x": 1}]).schema.names
    (2, ['x'])
    >>> reader_of(iter([pa.record_batch({"x": [1]})]), pa.schema({"x": pa.int8()})).read_all()["x"].type
    DataType(int8)
    """
    if isinstance(source, pa.Table):
        return source.to_reader()
    if isinstance(source, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(source.schema, [source])
    if isinstance(source, pa.RecordBatchReader):
        return source
    if isinstance(source, pads.Dataset):
        return source.scanner().to_reader()
    if isinstance(source, pads.Scanner):
        return source.to_reader()
    guest = guest_reader(source, schema)
    if guest is not None:
        return guest
    if isinstance(source, ArrowStream):
        return pa.RecordBatchReader.from_stream(source)
    if isinstance(source, Mapping):
        return _whole(pa.RecordBatch.from_pydict(dict(source), schema=schema))
    if isinstance(source, list) and source and all(isinstance(row, Mapping) for row in source):
        return _whole(pa.RecordBatch.from_pylist(source, schema=schema))
    if isinstance(source, Iterable):
        return _of_batches(cast("Iterable[object]", source), schema)
    hint = "give an Arrow table, batches, a reader, a data frame, or a mapping of columns"
    raise InvalidInput(f"rows cannot be read from a {type(source).__name__}", hint=hint)


def _whole(batch: pa.RecordBatch) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def _of_batches(source: Iterable[object], schema: pa.Schema | None) -> pa.RecordBatchReader:
    if schema is None:
        raise InvalidInput("the schema of an iterable of batches is not known", hint="give the schema with it")
    return pa.RecordBatchReader.from_batches(schema, _fitted(source, schema))


def _fitted(source: Iterable[object], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for item in source:
        if isinstance(item, pa.RecordBatch):
            item = pa.Table.from_batches([item])
        if not isinstance(item, pa.Table):
            raise InvalidInput(f"the iterable holds a {type(item).__name__}, expected record batches or tables")
        if not item.schema.equals(schema, check_metadata=False):
            try:
                item = item.select(schema.names).cast(schema)
            except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise InvalidInput(f"a batch does not fit the schema: {error}", hint=f"expected {schema}") from None
        yield from item.to_batches()
