"""Spilled lineage: row ids and versions that lie in columns of data files, read for commits that need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelet.encodings.shape import Leaf
from lancelet.errors import Corrupt
from lancelet.file.opening import open_any
from lancelet.file.reading import read_columns
from lancelet.format import operations as op
from lancelet.format.fragments import SPILLED_CREATED_AT, SPILLED_LAST_UPDATED_AT, SPILLED_ROW_IDS, Fragment
from lancelet.format.row_ids import PackedArray, PlainArray, write_row_ids
from lancelet.table.lineage import written_versions
from lancelet.table.paths import Places

__all__ = ["needed_lineage", "with_inline_lineage"]

UInt64s = npt.NDArray[np.uint64]

_NAMES = {
    SPILLED_ROW_IDS: "_rowid",
    SPILLED_CREATED_AT: "_row_created_at_version",
    SPILLED_LAST_UPDATED_AT: "_row_last_updated_at_version",
}


def needed_lineage(places: Places, fragments: Iterable[Fragment], operation: op.Operation) -> Mapping[int, Fragment]:
    """The fragments, by id, out of which an operation moves rows, or of which it changes some, if they spilled.

    Their ids and versions come inline, as if they had never been spilled. An empty mapping, and no request, mostly.
    """
    if not isinstance(operation, op.Update):
        return {}
    touched = {item.id for item in operation.updated_fragments} | set(operation.removed_fragment_ids)
    return {item.id: with_inline_lineage(places, item) for item in fragments if item.id in touched and _spilled(item)}


def _spilled(item: Fragment) -> bool:
    columns = (item.column_row_ids, item.column_created_at_versions, item.column_last_updated_at_versions)
    return any(column is not None for column in columns)


def with_inline_lineage(places: Places, fragment: Fragment) -> Fragment:
    """The fragment with what its data files hold of row ids and versions in the form that manifests hold."""
    result = fragment
    if fragment.column_row_ids is not None:
        ids = PlainArray(PackedArray.of(_column(places, fragment, SPILLED_ROW_IDS)))
        result = replace(result, inline_row_ids=write_row_ids([ids]), column_row_ids=None)
    if fragment.column_created_at_versions is not None:
        versions = written_versions(_column(places, fragment, SPILLED_CREATED_AT))
        result = replace(result, inline_created_at_versions=versions, column_created_at_versions=None)
    if fragment.column_last_updated_at_versions is not None:
        versions = written_versions(_column(places, fragment, SPILLED_LAST_UPDATED_AT))
        result = replace(result, inline_last_updated_at_versions=versions, column_last_updated_at_versions=None)
    return result


def _column(places: Places, fragment: Fragment, number: int) -> UInt64s:
    name, rows = _NAMES[number], fragment.physical_rows or 0
    for item in fragment.files:
        if number not in item.fields:
            continue
        store, path = places.data_file(item)
        file = open_any(store, path, size=item.file_size)
        leaf = Leaf(pa.field(name, pa.uint64(), nullable=False), item.column_indices[item.fields.index(number)])
        (column,) = read_columns(file, [leaf], slice(0, rows))
        return np.asarray(column.combine_chunks()).astype(np.uint64)
    raise Corrupt(f"the manifest says that {name} of fragment {fragment.id} is in a data file, but none has it")
