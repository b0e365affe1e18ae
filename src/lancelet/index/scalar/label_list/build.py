"""Building a LABEL_LIST index: each item of each list beside its row, and from there on as a BITMAP index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.index.building import Built, Target
from lancelet.index.external_sort import IDS, VALUES, rows_of, sorted_rows
from lancelet.index.order import orderable
from lancelet.index.scalar.bitmap.build import bitmap_schema, write_bitmaps
from lancelet.index.scalar.bitmap.stored import FILE
from lancelet.index.scalar.label_list.search import NULL_LISTS
from lancelet.index.zones import NullRows
from lancelet.rows.row_sets import write_row_set

__all__ = ["TYPE_URL", "VERSION", "build_label_list", "is_labels"]

TYPE_URL = "/lance.table.LabelListIndexDetails"
VERSION = 1


def is_labels(kind: pa.DataType) -> bool:
    """Whether a type is a list of items that can be put in order.

    >>> is_labels(pa.list_(pa.string())), is_labels(pa.list_(pa.list_(pa.int8()))), is_labels(pa.string())
    (True, False, False)
    """
    return bool((pat.is_list(kind) or pat.is_large_list(kind)) and orderable(kind.value_type))


def build_label_list(rows: Iterable[pa.RecordBatch], kind: pa.DataType, target: Target) -> Built:
    """Write the index of rows that come in any order, each a list and a row id."""
    nulls = NullRows()
    items = sorted_rows(_items(rows, nulls), memory=target.memory)
    with target.file(FILE, bitmap_schema(kind.value_type)) as file:
        write_bitmaps(items, kind.value_type, file)
        file.add_schema_metadata(NULL_LISTS, str(file.add_global_buffer(write_row_set(nulls.rows()))))
    return target.built(TYPE_URL, VERSION)


def _items(rows: Iterable[pa.RecordBatch], nulls: NullRows) -> Iterator[pa.RecordBatch]:
    """Each item of each list, and the row that the list is of; lists that are null are noted."""
    for batch in rows:
        nulls.add(batch)
        lists, ids = batch.column(VALUES), batch.column(IDS).to_numpy()
        # Null lists may have items behind them that no one sees.
        counts = np.asarray(pc.list_value_length(lists).fill_null(0))
        yield rows_of(pc.list_flatten(lists), pa.array(np.repeat(ids, counts)))
