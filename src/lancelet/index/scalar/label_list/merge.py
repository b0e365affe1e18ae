"""Merging LABEL_LIST indexes: the sets of each item as BITMAP indexes have them, and the rows whose list is null."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lancelet.errors import LanceletError
from lancelet.index.building import Built, Target
from lancelet.index.merging import Part, new_rows_as_part
from lancelet.index.scalar.bitmap.build import bitmap_schema
from lancelet.index.scalar.bitmap.merge import write_merged
from lancelet.index.scalar.bitmap.stored import FILE
from lancelet.index.scalar.label_list.build import TYPE_URL, VERSION, build_label_list
from lancelet.index.scalar.label_list.search import NULL_LISTS
from lancelet.rows.row_sets import RowSet, parse_row_set, union_all, write_row_set

__all__ = ["merge_label_lists"]


def merge_label_lists(
    parts: Sequence[Part], rows: Iterable[pa.RecordBatch], kind: pa.DataType, target: Target
) -> Built:
    """Write the index of what segments hold and of new rows.

    Where an old segment does not say which of its lists are null, the merged one does not either.
    """
    with new_rows_as_part(rows, target, lambda new, inner: build_label_list(new, kind, inner)) as added:
        every = [*parts, *added]
        nulls = [_null_lists(part) for part in every]
        known = [found for found in nulls if found is not None]
        with target.file(FILE, bitmap_schema(kind.value_type)) as file:
            write_merged(every, kind.value_type, file)
            if len(known) == len(nulls):
                file.add_schema_metadata(NULL_LISTS, str(file.add_global_buffer(write_row_set(union_all(known)))))
    return target.built(TYPE_URL, VERSION)


def _null_lists(part: Part) -> RowSet | None:
    table = part.files.open(FILE)
    data = table.buffer(NULL_LISTS)
    try:
        return None if data is None else part.row_set(parse_row_set(data, what="set of null lists"))
    except LanceletError as error:
        raise error.where(uri=table.uri) from None
