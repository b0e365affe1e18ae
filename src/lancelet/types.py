"""What rows may come as, under the names that users import."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

import pyarrow as pa
import pyarrow.dataset as pads

from lancelet.ops.guests import is_from
from lancelet.ops.sources import ArrowStream, Source, is_materialized
from lancelet.ops.sources import reader_of as _reader_of

__all__ = ["ReaderLike", "checked_source", "is_materialized", "reader_of"]

#: What rows may come as: Arrow data and streams, data frames, datasets, mappings of columns, lists of rows, and
#: iterables of batches with a schema.
ReaderLike: TypeAlias = Source


def checked_source(source: object) -> ReaderLike:
    """``source`` itself if rows can be read from such a thing; TypeError if not.

    >>> checked_source(5)
    Traceback (most recent call last):
    TypeError: rows cannot be read from int: give an Arrow table, batches, a reader, a data frame, a mapping of columns
    """
    if isinstance(source, Iterable | pads.Dataset | pads.Scanner | pa.RecordBatchReader | ArrowStream):
        return source
    if is_from(source, "polars", "LazyFrame"):
        return cast("ReaderLike", source)
    hint = "give an Arrow table, batches, a reader, a data frame, a mapping of columns"
    raise TypeError(f"rows cannot be read from {type(source).__name__}: {hint}")


def reader_of(source: ReaderLike, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """The rows as a stream; the schema is that of iterables, which do not tell their own.

    >>> reader_of({"x": [1, 2]}).read_all().num_rows
    2
    """
    return _reader_of(checked_source(source), schema)
